"""Attacks: what someone could find out from the release, tried out, beside what guessing gives."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app import charts
from fedanon.app.pages.result import chosen
from fedanon.app.project import ReleaseFolder
from fedanon.app.shell import State, go, render

KIND = "attacks"


def show(state: State, request: Request, error: str = "") -> Response:
    """The page."""
    release = chosen(state, request)
    found = release.read("attacks")
    figures = charts.draw(state, charts.attack_figure(found, state.say)) if found.get("results") else {}
    return render(
        state,
        "attacks",
        step="attacks",
        error=error,
        release=release,
        releases=state.project.releases(),
        found=found,
        figures=figures,
        job=state.jobs.last(KIND, release.number),
        command_words=_words(state, release),
    )


def run(state: State, request: Request, form: FormData) -> Response:
    """Try all attacks on a release."""
    release = chosen(state, request)
    state.jobs.start(KIND, [_words(state, release)], about=release.number)
    return go(f"/attacks/{release.number}")


def _words(state: State, release: ReleaseFolder) -> list[str]:
    folder = state.project.relative(release.path)
    return [
        "attack",
        *release.source_options(),
        "--schema",
        f"{folder}/schema.toml",
        *release.missing_options(),
        "--release",
        state.project.relative(release.file),
        "--row-key",
        state.project.relative(release.row_key),
        "--suite",
        "release",
        "-o",
        f"{folder}/attacks.json",
        "--force",
        "--audit",
        "audit.jsonl",
    ]
