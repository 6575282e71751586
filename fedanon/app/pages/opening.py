"""Open: a file, a folder, a database, FHIR resources or an example; its first rows, and how it was read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app.project import source_options
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.errors import FedanonError

#: what can be said of how a text file is read, beside finding it out; the first is what stands for that
AUTO = "auto"
CHOICES: dict[str, dict[str, Any]] = {
    "separator": {AUTO: "", "comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"},
    "decimal": {AUTO: "", "point": ".", "comma": ","},
    "encoding": {AUTO: "", "utf-8": "utf-8", "cp1252": "cp1252", "latin-1": "latin-1", "utf-16": "utf-16"},
    "header": {AUTO: None, "yes": True, "no": False},
}


def show(state: State, request: Request) -> PageView:
    """The page."""
    error, source = "", state.project.source
    if source and state.opened is None:
        try:
            state.opened = state.desk.ask("open", source=state.source())
        except FedanonError as failure:
            error = str(failure)
    chosen = {
        name: next((one for one, value in known.items() if value == source.get(name, known[AUTO])), AUTO)
        for name, known in CHOICES.items()
    }
    return view(
        "open",
        error=error,
        opened=state.opened,
        choices=CHOICES,
        reading=chosen,
        command_words=["schema", "infer", *source_options(source), "-o", "schema.toml"] if state.opened else [],
    )


def examples(state: State, request: Request) -> PageView:
    """The examples that are at hand: a part of the page, which comes when the helper process is there."""
    return view("open_examples", examples=state.desk.ask("examples"))


def upload(state: State, request: Request, form: FormData) -> Response:
    """Take a file that was chosen or dropped; it is copied into the project."""
    given = form.get("file")
    if not isinstance(given, UploadFile) or not given.filename:
        raise FormError(state, "open.no_file")
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
        raise FormError(state, "open.no_place")
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
    for name, known in CHOICES.items():
        wanted = text_of(form, name, AUTO)
        if wanted != AUTO and wanted in known:
            source[name] = known[wanted]
    if text_of(form, "sheet"):
        source["sheet"] = text_of(form, "sheet")
    _open(state, source)
    return go("/open#preview")


def example(state: State, request: Request, form: FormData) -> Response:
    """Write an example into the project, as a file with its schema, and open it."""
    name = text_of(form, "name")
    if name not in {one["name"] for one in state.desk.ask("examples")}:
        raise FormError(state, "open.no_example")
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
    if state.project.series.is_of(opened["columns"]):
        shutil.copyfile(state.project.series.schema, state.project.schema)
    elif not keep_schema:
        state.project.schema.unlink(missing_ok=True)
