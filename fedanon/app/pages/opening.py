"""Open: a file, a folder, a database, FHIR resources or an example; its first rows, and how it was read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app.shell import State, go, render, text_of
from fedanon.errors import ConfigError, FedanonError

ENCODINGS = ("auto", "utf-8", "cp1252", "latin-1", "utf-16")
HEADERS = {"auto": None, "yes": True, "no": False}


def show(state: State, request: Request, error: str = "") -> Response:
    """The page."""
    if state.project.source and state.opened is None and not error:
        try:
            state.opened = state.desk.ask("open", source=state.source())
        except FedanonError as failure:
            error = str(failure)
    words = ["schema", "infer", *state.project.source_options(), "-o", "schema.toml"] if state.opened else []
    return render(
        state,
        "open",
        step="open",
        error=error,
        opened=state.opened,
        encodings=ENCODINGS,
        headers=list(HEADERS),
        header=next(name for name, value in HEADERS.items() if value == state.project.source.get("header")),
        command_words=words,
    )


def examples(state: State, request: Request) -> Response:
    """The examples that are at hand: a part of the page, which comes when the helper process is there."""
    return render(state, "open_examples", examples=state.desk.ask("examples"))


def upload(state: State, request: Request, form: FormData) -> Response:
    """Take a file that was chosen or dropped; it is copied into the project."""
    given = form.get("file")
    if not isinstance(given, UploadFile) or not given.filename:
        raise ConfigError(state.say("app.open.no_file"))
    place = state.project.new_data_file(given.filename)
    try:
        with place.open("xb") as out:
            shutil.copyfileobj(given.file, out)
        _open(state, {"data": [state.project.relative(place)]})
    except (FedanonError, OSError):
        place.unlink(missing_ok=True)
        raise
    return go("/open#preview")


def place(state: State, request: Request, form: FormData) -> Response:
    """Open what is named: a file or folder of this machine, or a database with a query."""
    named = text_of(form, "place")
    if not named:
        raise ConfigError(state.say("app.open.no_place"))
    source: dict[str, Any] = {"data": [named if "://" in named else str(Path(named).expanduser().absolute())]}
    if text_of(form, "query"):
        source["query"] = text_of(form, "query")
    views = [line.strip() for line in text_of(form, "views").splitlines() if line.strip()]
    if views:
        source["views"] = [str(Path(view).expanduser().absolute()) for view in views]
    _open(state, source)
    return go("/open#preview")


def reading(state: State, request: Request, form: FormData) -> Response:
    """Read the same table in another way."""
    source = {name: value for name, value in state.project.source.items() if name in ("data", "query", "views")}
    if text_of(form, "encoding", "auto") in ENCODINGS[1:]:
        source["encoding"] = text_of(form, "encoding")
    header = HEADERS.get(text_of(form, "header", "auto"))
    if header is not None:
        source["header"] = header
    if text_of(form, "sheet"):
        source["sheet"] = text_of(form, "sheet")
    _open(state, source)
    return go("/open#preview")


def example(state: State, request: Request, form: FormData) -> Response:
    """Write an example into the project, as a file with its schema, and open it."""
    name = text_of(form, "name")
    if name not in {one["name"] for one in state.desk.ask("examples")}:
        raise ConfigError(state.say("app.open.no_example"))
    state.project.folder.mkdir(parents=True, exist_ok=True)
    file = state.project.new_data_file(f"{name}.csv")
    made = state.desk.ask("export", name=name, data=str(file), schema=str(state.project.schema))
    _open(state, {"data": [state.project.relative(file)]}, keep_schema=True)
    state.project.save("protect", missing=made["missing"])
    return go("/columns")


def _open(state: State, source: dict[str, Any], *, keep_schema: bool = False) -> None:
    """Read it first, so that a table that cannot be read replaces none."""
    before = state.project.settings["source"]
    state.project.settings["source"] = source
    try:
        opened = state.desk.ask("open", source=state.source())
    except FedanonError:
        state.project.settings["source"] = before
        raise
    state.forget_table()
    state.opened = opened
    state.project.settings["source"] = {}
    state.project.save("source", **source)
    state.project.save("protect", missing=None)
    if not keep_schema:
        state.project.schema.unlink(missing_ok=True)
