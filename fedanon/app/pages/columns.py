"""Columns: the role of each with the reason for it, undecided ones first; who is a person; what is missing."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app.shell import State, go, render, text_of
from fedanon.data.schema import FreeText, Role, Schema, type_name
from fedanon.data.schema_toml import schema_toml
from fedanon.errors import ConfigError
from fedanon.io.atomic import atomic_write

ROLES = tuple(str(role) for role in (Role.UNDECIDED, *(role for role in Role if role is not Role.UNDECIDED)))
MISSING = ("error", "category", "wildcard")
#: what says whose row it is, beside the names of columns
NOBODY, ONE_ROW = "records", "one_row"


def show(state: State, request: Request, error: str = "") -> Response:
    """The page."""
    if not state.project.source:
        return go("/open")
    look_at_columns(state)
    schema = Schema.read(state.project.schema)
    known = {one["name"]: one for one in state.columns or []}
    rows = [
        {
            "index": i,
            "name": attribute.name,
            "role": str(attribute.role),
            "type": type_name(attribute),
            "facts": known.get(attribute.name),
        }
        for i, attribute in enumerate(schema.attributes)
    ]
    rows.sort(key=lambda row: row["role"] != Role.UNDECIDED)
    lacking = [
        one["name"]
        for one in known.values()
        if one["missing"] and one["name"] in schema.names and schema[one["name"]].role is Role.QUASI_IDENTIFYING
    ]
    return render(
        state,
        "columns",
        step="columns",
        error=error,
        rows=rows,
        roles=ROLES,
        undecided=schema.undecided,
        person=schema.person_id or (ONE_ROW if schema.one_row_per_person else NOBODY),
        identifying=[name for name in schema.names if schema[name].role is Role.IDENTIFYING],
        quasi=[a.name for a in schema.attributes if a.role is Role.QUASI_IDENTIFYING],
        lacking=lacking,
        policies=MISSING,
        missing=state.missing,
        command_words=[
            "schema",
            "check",
            "schema.toml",
            *state.project.source_options(),
            *state.project.missing_options,
        ],
    )


def look_at_columns(state: State) -> None:
    """Propose a schema if there is none, and find out what the columns hold."""
    if state.columns is None or not state.project.schema.exists():
        wanted = None if state.project.schema.exists() else str(state.project.schema)
        state.columns = state.desk.ask("columns", source=state.source(), schema=wanted)


def propose(state: State, request: Request, form: FormData) -> Response:
    """Propose roles for the table that is open."""
    look_at_columns(state)
    return go("/columns")


def save(state: State, request: Request, form: FormData) -> Response:
    """Keep the roles; go on only if all are decided and the table fits them."""
    schema = Schema.read(state.project.schema)
    roles = [text_of(form, f"role_{i}", str(a.role)) for i, a in enumerate(schema.attributes)]
    if not set(roles) <= set(ROLES):
        raise ConfigError(state.say("app.columns.bad_role"))
    write_schema(state, _with_people(_with_roles(state, schema, roles), text_of(form, "person", NOBODY)))
    policy = text_of(form, "missing", state.missing)
    if policy in MISSING:
        state.project.save("protect", missing=None if policy == "error" else policy)
    if not text_of(form, "next"):
        return go("/columns")
    Schema.read(state.project.schema).refuse_undecided()
    state.desk.ask("prepare", **state.table())
    return go("/risk")


def write_schema(state: State, schema: Schema) -> None:
    """Write schema.toml with the reasons above the columns."""
    reasons = {
        one["name"]: one["reason"]
        for one in state.columns or []
        if one["name"] in schema.names and one["proposed"] == schema[one["name"]].role
    }
    atomic_write(state.project.schema, schema_toml(schema, reasons=reasons))
    state.forget_roles()


def _with_roles(state: State, schema: Schema, roles: list[str]) -> Schema:
    """The schema with other roles; a text that is to be a quasi-identifier gets the type its values have."""
    document = schema.to_dict()
    chosen = dict(zip(schema.names, roles, strict=True))
    untyped = [
        a.name
        for a in schema.attributes
        if chosen[a.name] == Role.QUASI_IDENTIFYING and (isinstance(a, FreeText) or not getattr(a, "has_range", True))
    ]
    typed: dict[str, Any] = state.desk.ask("typed", source=state.source(), names=untyped) if untyped else {}
    for name, role in chosen.items():
        document["attributes"][name] = {**typed.get(name, document["attributes"][name]), "role": role}
    if document.get("person_id") and chosen[document["person_id"]] != Role.IDENTIFYING:
        del document["person_id"]
    return Schema.from_dict(document)


def _with_people(schema: Schema, person: str) -> Schema:
    """The schema with the column that says whose row it is, which becomes identifying."""
    document = schema.to_dict()
    document.pop("person_id", None)
    document.pop("one_row_per_person", None)
    if person == ONE_ROW:
        document["one_row_per_person"] = True
    elif person.startswith("column:"):
        name = person.removeprefix("column:")
        schema[name]
        document["person_id"] = name
        document["attributes"][name] = {"role": str(Role.IDENTIFYING), "type": "text"}
    return Schema.from_dict(document)
