"""Report: its fields, its languages, its files; the history of releases and the audit log."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from fedanon.app.jobs import Job
from fedanon.app.pages.result import chosen
from fedanon.app.project import AUDIT, LANGUAGES, ReleaseFolder
from fedanon.app.shell import State, go, render, text_of
from fedanon.data.schema_toml import toml_value
from fedanon.errors import ConfigError, FedanonError
from fedanon.io.atomic import atomic_write
from fedanon.io.audit import read_chain
from fedanon.report.privacy.impact_fields import BY_HAND, LONGEST_FIELD

KIND = "report"
FIELDS_FILE = "fields.toml"
#: the report is a page of its own with its own style; its script does not run inside ours
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"


def show(state: State, request: Request, error: str = "") -> Response:
    """The page."""
    release = chosen(state, request)
    asked = str(request.query_params.get("language", state.say.code))
    wanted = asked if asked in LANGUAGES else state.say.code
    page = f"report-{wanted}.html"
    return render(
        state,
        "report",
        step="report",
        error=error,
        release=release,
        releases=state.project.releases(),
        wanted=wanted,
        languages=LANGUAGES,
        page=page if (release.path / page).exists() else "",
        fields=BY_HAND,
        longest=LONGEST_FIELD,
        filled=state.project.settings["report"],
        downloads=release.downloads(),
        audit=_audit(state),
        job=state.jobs.last(KIND, release.number),
        command_words=_words(state, release, wanted, attacks=True, fields=bool(state.project.settings["report"])),
    )


def make(state: State, request: Request, form: FormData) -> Response:
    """Write the report as a page, as PDF and as data."""
    release, wanted = chosen(state, request), text_of(form, "language", "en")
    if wanted not in LANGUAGES:
        raise ConfigError(state.say("app.report.bad_language"))
    filled = {name: text_of(form, name).replace("\r\n", "\n")[:LONGEST_FIELD] for name in BY_HAND}
    state.project.save("report", **{name: text or None for name, text in filled.items()})
    if any(filled.values()):
        lines = [f"{name} = {toml_value(text)}" for name, text in filled.items() if text]
        atomic_write(release.path / FIELDS_FILE, "\n".join(lines) + "\n")
    words = _words(state, release, wanted, attacks=bool(text_of(form, "attacks")), fields=any(filled.values()))

    def finish(job: Job) -> None:
        atomic_write(release.path / f"report-{wanted}.evidence.json", job.output())

    state.jobs.start(KIND, [words], about=release.number, finish=finish)
    return go(f"/report/{release.number}?language={wanted}")


def _words(state: State, release: ReleaseFolder, wanted: str, *, attacks: bool, fields: bool) -> list[str]:
    folder = state.project.relative(release.path)
    return [
        "report",
        "--privacy",
        state.project.relative(release.file),
        "--schema",
        f"{folder}/schema.toml",
        "--original",
        *release.source_options(),
        *release.missing_options(),
        "--row-key",
        state.project.relative(release.row_key),
        *(["--fields", f"{folder}/{FIELDS_FILE}"] if fields else []),
        *([] if attacks else ["--no-attacks"]),
        "--language",
        wanted,
        "-o",
        f"{folder}/report-{wanted}.html",
        "--pdf",
        f"{folder}/report-{wanted}.pdf",
        "--force",
        "--audit",
        AUDIT,
        "--json",
    ]


def _audit(state: State) -> dict[str, Any] | None:
    """How many lines the audit log has, and whether they follow one from another."""
    log = state.project.folder / AUDIT
    if not log.exists():
        return None
    try:
        chain, _ = read_chain(log)
    except FedanonError as failure:
        return {"lines": 0, "head": "", "broken": str(failure)}
    return {"lines": chain.lines, "head": chain.head, "broken": chain.reason if chain.broken is not None else ""}


def file(state: State, request: Request) -> Response:
    """A file of a release, one of those that may be handed on."""
    release, name = chosen(state, request), str(request.path_params["name"])
    if name not in release.downloads():
        raise ConfigError(state.say("app.report.no_file"))
    path = release.path / name
    if path.suffix == ".html" and "view" in request.query_params:
        headers = {"Content-Security-Policy": SANDBOX, "X-Frame-Options": "SAMEORIGIN"}
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)
    return FileResponse(path, filename=name, content_disposition_type="attachment")
