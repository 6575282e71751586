"""Result: the verdict on a release, recounted from its file; classes, losses, and rows beside the original."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app import charts
from fedanon.app.project import ReleaseFolder
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.errors import FedanonError


def chosen(state: State, request: Request) -> ReleaseFolder:
    """The release an address names."""
    release = state.project.release(str(request.path_params["number"]))
    if release is None:
        raise FormError(state, "result.none")
    return release


def of_release(state: State, release: ReleaseFolder, template: str, **values: object) -> PageView:
    """A page about a release, which leads to those of the others."""
    return view(template, release=release, releases=state.project.releases(), **values)


def show(state: State, request: Request) -> PageView:
    """The page."""
    release = chosen(state, request)
    facts, made = release.read("facts"), release.made
    check_words = ["check", release.file, "--original", *release.original_words()]  # counts again what is shown
    return of_release(
        state,
        release,
        "result",
        facts=facts,
        made=made,
        figures=charts.draw(state, charts.release_figures(facts, state.say)),
        command_words=[made["command"], check_words],
    )


def rows(state: State, request: Request, form: FormData) -> PageView:
    """Records as they were and as they are published: a part of the page."""
    release = chosen(state, request)
    given = text_of(form, "start", "1")
    start = int(given) if given.isdigit() and len(given) < 10 else 1
    try:
        found = state.desk.ask("rows", **state.release_files(release), start=max(0, start - 1))
    except FedanonError as failure:
        return view("result_rows", found=None, error=str(failure))
    return view("result_rows", found=found)


def newest(state: State, request: Request) -> Response:
    """Go to the newest release."""
    releases = state.project.releases()
    return go(f"/result/{releases[0].number}" if releases else "/protect")
