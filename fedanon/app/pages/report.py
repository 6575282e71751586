"""Report: its fields, its languages, its files; the history of releases and the audit log."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from fedanon.app.jobs import Job
from fedanon.app.pages.result import chosen, of_release
from fedanon.app.project import AUDIT, LANGUAGES, ReleaseFolder
from fedanon.app.shell import FormError, PageView, State, go, text_of
from fedanon.data.schema_toml import toml_value
from fedanon.errors import FedanonError
from fedanon.io.atomic import atomic_write
from fedanon.io.audit import read_chain
from fedanon.report.privacy.impact_fields import BY_HAND, LONGEST_FIELD

KIND = "report"
FIELDS_FILE = "fields.toml"
#: releases whose losses are compared
COMPARED = 6
#: lines of the audit log that are shown
AUDIT_LINES = 20
#: the report is a page of its own with its own style; its script does not run inside ours
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"


def show(state: State, request: Request) -> PageView:
    """The page."""
    release = chosen(state, request)
    asked = str(request.query_params.get("language", state.say.code))
    wanted = asked if asked in LANGUAGES else state.say.code
    page = f"report-{wanted}.html"
    return of_release(
        state,
        release,
        "report",
        wanted=wanted,
        languages=LANGUAGES,
        page=page if (release.path / page).exists() else "",
        fields=BY_HAND,
        longest=LONGEST_FIELD,
        filled=state.project.settings["report"],
        downloads=release.downloads(),
        audit=_audit(state),
        ledger=_ledger(state),
        losses=_losses(state.project.releases()[:COMPARED]),
        job=state.jobs.last(KIND, release.number),
        command_words=_words(release, wanted, attacks=True, fields=bool(state.project.settings["report"])),
    )


def make(state: State, request: Request, form: FormData) -> Response:
    """Write the report as a page, as PDF and as data."""
    release, wanted = chosen(state, request), text_of(form, "language", "en")
    if wanted not in LANGUAGES:
        raise FormError(state, "report.bad_language")
    filled = {name: text_of(form, name).replace("\r\n", "\n")[:LONGEST_FIELD] for name in BY_HAND}
    state.project.save("report", **{name: text or None for name, text in filled.items()})
    if any(filled.values()):
        lines = [f"{name} = {toml_value(text)}" for name, text in filled.items() if text]
        atomic_write(release.path / FIELDS_FILE, "\n".join(lines) + "\n")
    words = _words(release, wanted, attacks=bool(text_of(form, "attacks")), fields=any(filled.values()))

    def finish(job: Job) -> None:
        atomic_write(release.path / f"report-{wanted}.evidence.json", job.output())

    here = f"/report/{release.number}?language={wanted}"
    state.jobs.start(KIND, [words], about=release.number, page=here, finish=finish)
    return go(here)


def _words(release: ReleaseFolder, wanted: str, *, attacks: bool, fields: bool) -> list[str]:
    words = ["report", "--privacy", release.file, "--original", *release.original_words()]
    words += ["--fields", release.relative(FIELDS_FILE)] if fields else []
    words += [] if attacks else ["--no-attacks"]
    words += ["--language", wanted, "-o", release.relative(f"report-{wanted}.html")]
    return [*words, "--pdf", release.relative(f"report-{wanted}.pdf"), "--force", "--audit", AUDIT, "--json"]


def _ledger(state: State) -> dict[str, Any] | None:
    """What the ledger of the series says, if there is one; whether its seal holds is found by reading it."""
    if not state.project.series.has_begun:
        return None
    try:
        return {"entries": state.desk.ask("ledger", schema=str(state.project.series.schema)), "broken": ""}
    except FedanonError as failure:
        return {"entries": [], "broken": str(failure)}


def _losses(releases: list[ReleaseFolder]) -> dict[str, Any] | None:
    """What each column lost in the last releases, side by side."""
    by_release = [{one["column"]: one for one in release.read("facts")["evidence"]["losses"]} for release in releases]
    names = dict.fromkeys(name for found in by_release for name in found)
    rows = [(name, [_loss(found.get(name)) for found in by_release]) for name in names]
    return {"releases": [{"n": release.number} for release in releases], "rows": rows} if len(releases) > 1 else None


def _loss(one: dict[str, Any] | None) -> float | None:
    return None if one is None else one["loss"] if one["measured"] is None else one["measured"]


def _audit(state: State) -> dict[str, Any] | None:
    """The last lines of the audit log, how many there are, and whether they follow one from another."""
    log = state.project.folder / AUDIT
    if not log.exists():
        return None
    try:
        chain, _ = read_chain(log)
    except FedanonError as failure:
        return {"lines": 0, "head": "", "broken": str(failure), "last": []}
    lines = log.read_text(encoding="utf-8").splitlines()[: chain.lines][-AUDIT_LINES:]
    broken = chain.reason if chain.broken is not None else ""
    return {"lines": chain.lines, "head": chain.head, "broken": broken, "last": [json.loads(one) for one in lines]}


def file(state: State, request: Request) -> Response:
    """A file of a release, one of those that may be handed on."""
    release, name = chosen(state, request), str(request.path_params["name"])
    if name not in release.downloads():
        raise FormError(state, "report.no_file")
    path = release.path / name
    if path.suffix == ".html" and "view" in request.query_params:
        headers = {"Content-Security-Policy": SANDBOX, "X-Frame-Options": "SAMEORIGIN"}
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)
    return FileResponse(path, filename=name, content_disposition_type="attachment")
