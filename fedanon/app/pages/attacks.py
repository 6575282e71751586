"""Attacks: what someone could find out from the release, tried out, beside what guessing gives."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app import charts
from fedanon.app.pages.result import chosen, of_release
from fedanon.app.project import AUDIT, ReleaseFolder
from fedanon.app.shell import PageView, State, go

KIND = "attacks"


def show(state: State, request: Request) -> PageView:
    """The page."""
    release = chosen(state, request)
    found = release.read("attacks")
    return of_release(
        state,
        release,
        "attacks",
        found=found,
        figures=charts.draw(state, charts.attack_figure(found, state.say)) if found.get("results") else {},
        job=state.jobs.last(KIND, release.number),
        command_words=_words(release),
    )


def run(state: State, request: Request, form: FormData) -> Response:
    """Try all attacks on a release."""
    release = chosen(state, request)
    here = f"/attacks/{release.number}"
    state.jobs.start(KIND, [_words(release)], about=release.number, page=here)
    return go(here)


def _words(release: ReleaseFolder) -> list[str]:
    words = ["attack", *release.original_words(), "--release", release.file, "--suite", "release"]
    return [*words, "-o", release.relative("attacks.json"), "--force", "--audit", AUDIT]
