"""Experiments: result sets of a folder, filtered, and the figures of their reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from fedanon.app.pages.report import SANDBOX
from fedanon.app.shell import FormError, PageView, State, go, text_of, view

KIND = "experiments"
_NAME = re.compile(r"\w[\w .-]{0,99}")


def show(state: State, request: Request) -> PageView:
    """The page: all result sets, or one of them."""
    folder = _folder(state)
    found: list[dict[str, Any]] = state.desk.ask("experiments", folder=str(folder)) if folder else []
    name = str(request.path_params.get("name", ""))
    chosen = next((one for one in found if one["name"] == name), None)
    if name and chosen is None:
        raise FormError(state, "experiments.none_such")
    filters = {key: str(request.query_params.get(key, "")) for key in ("dataset", "method", "measure")}
    numbers = None
    if chosen is not None:
        numbers = state.desk.ask("results", folder=str(chosen["folder"]), filters=filters)
    report = state.project.folder / "reports" / f"{name}.html"
    return view(
        "experiments",
        folder=folder,
        found=found,
        chosen=chosen,
        numbers=numbers,
        filters=filters,
        report=bool(name) and report.exists(),
        job=state.jobs.last(KIND, name),
        command_words=_words(chosen) if chosen else [],
    )


def choose(state: State, request: Request, form: FormData) -> Response:
    """Browse another folder."""
    folder = Path(text_of(form, "folder")).expanduser().absolute()
    if not text_of(form, "folder") or not folder.is_dir():
        raise FormError(state, "experiments.no_folder")
    state.project.save("experiments", folder=str(folder))
    return go("/experiments")


def _folder(state: State) -> Path | None:
    kept = state.project.settings["experiments"].get("folder")
    usual = Path("experiments/results").absolute()
    return Path(kept) if kept else usual if usual.is_dir() else None


def make(state: State, request: Request, form: FormData) -> Response:
    """Make the report of a result set, with its figures."""
    name, folder = str(request.path_params["name"]), _folder(state)
    found = state.desk.ask("experiments", folder=str(folder)) if folder else []
    chosen = next((one for one in found if one["name"] == name), None)
    if chosen is None or not _NAME.fullmatch(name):
        raise FormError(state, "experiments.none_such")
    (state.project.folder / "reports").mkdir(parents=True, exist_ok=True)
    here = f"/experiments/{name}"
    state.jobs.start(KIND, [_words(chosen)], about=name, page=here)
    return go(here)


def _words(chosen: dict[str, Any]) -> list[str]:
    return ["report", chosen["folder"], "-o", f"reports/{chosen['name']}.html", "--force"]


def file(state: State, request: Request) -> Response:
    """The report of a result set, inside our page."""
    name = str(request.path_params["name"])
    path = state.project.folder / "reports" / f"{name}.html"
    if not _NAME.fullmatch(name) or not path.is_file():
        raise FormError(state, "report.no_file")
    headers = {"Content-Security-Policy": SANDBOX, "X-Frame-Options": "SAMEORIGIN"}
    return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)
