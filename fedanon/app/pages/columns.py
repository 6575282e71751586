"""Columns: the role of each with the reason for it, undecided ones first; who is a person; what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app.project import DEFAULTS, SCHEMA, source_options
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.data.rules.dates import DateRule
from fedanon.data.schema import FreeText, Role, Schema, type_name
from fedanon.data.schema_toml import schema_toml
from fedanon.io.atomic import atomic_write
from fedanon.io.person_key import new_person_key, read_person_key

ROLES = tuple(str(role) for role in (Role.UNDECIDED, *(role for role in Role if role is not Role.UNDECIDED)))
MISSING = ("error", "category", "wildcard")
#: what says whose row it is, beside the names of columns
NOBODY, ONE_ROW = "records", "one_row"
#: how far dates can be moved, in days
MOST_DAYS = 3650


def show(state: State, request: Request) -> PageView | Response:
    """The page."""
    if not state.project.source:
        return go("/open")
    look_at_columns(state)
    schema = state.project.read_schema()
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
    quasi = [a.name for a in schema.attributes if a.role is Role.QUASI_IDENTIFYING]
    return view(
        "columns",
        rows=sorted(rows, key=lambda row: row["role"] != Role.UNDECIDED),
        roles=ROLES,
        undecided=schema.undecided,
        person=schema.person_id or (ONE_ROW if schema.one_row_per_person else NOBODY),
        identifying=schema.identifying,
        quasi=quasi,
        lacking=[one["name"] for one in known.values() if one["missing"] and one["name"] in quasi],
        policies=MISSING,
        follows=schema.pseudonym is not None,
        shift=next((a.rule.shift_days for a in schema.shifted if isinstance(a.rule, DateRule)), 0),
        most_days=MOST_DAYS,
        fingerprint=schema.key_fingerprint,
        in_series=state.project.series.fits(schema),
        command_words=["schema", "check", SCHEMA, *source_options(state.project.source)],
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
    schema = state.project.read_schema()
    roles = [text_of(form, f"role_{i}", str(a.role)) for i, a in enumerate(schema.attributes)]
    if not set(roles) <= set(ROLES):
        raise FormError(state, "columns.bad_role")
    document = schema.to_dict()
    _set_roles(state, schema, document, dict(zip(schema.names, roles, strict=True)))
    _set_people(document, text_of(form, "person", NOBODY))
    _set_keys(state, document, form)
    write_schema(state, Schema.from_dict(document))
    policy = text_of(form, "missing", state.project.missing)
    if policy in MISSING:
        state.project.save("protect", missing=None if policy == "error" else policy)
    if not text_of(form, "next"):
        return go("/columns")
    state.project.read_schema().refuse_undecided()
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
    state.settings = []


def _set_roles(state: State, schema: Schema, document: dict[str, Any], chosen: dict[str, str]) -> None:
    """Give the columns other roles; a text that is to be a quasi-identifier gets the type its values have."""
    untyped = [
        a.name
        for a in schema.attributes
        if chosen[a.name] == Role.QUASI_IDENTIFYING and (isinstance(a, FreeText) or not getattr(a, "has_range", True))
    ]
    typed: dict[str, Any] = state.desk.ask("typed", source=state.source(), names=untyped) if untyped else {}
    for name, role in chosen.items():
        document["attributes"][name] = {**typed.get(name, document["attributes"][name]), "role": role}


def _set_people(document: dict[str, Any], person: str) -> None:
    """Say which column names the person, which becomes identifying, or that every row is one."""
    document.pop("person_id", None)
    document.pop("one_row_per_person", None)
    if person == ONE_ROW:
        document["one_row_per_person"] = True
    elif person.startswith("column:"):
        name = person.removeprefix("column:")
        document["person_id"] = name
        document["attributes"][name] = {"role": str(Role.IDENTIFYING), "type": "text"}


def _set_keys(state: State, document: dict[str, Any], form: FormData) -> None:
    """Have the person's rows followed by a pseudonym, and all dates that are published moved; both need a key."""
    given = text_of(form, "shift", "0")
    if not given.isdigit() or int(given) > MOST_DAYS:
        raise FormError(state, "columns.bad_shift", n=MOST_DAYS)
    person, needed = document.get("person_id"), False
    for name, entry in document["attributes"].items():
        entry.pop("pseudonym", None)
        if entry.pop("shift_days", 0) or (person and int(given)):
            _shift(state, name, entry, int(given) if person else 0)
            needed = needed or "shift_days" in entry
    if person and text_of(form, "pseudonym"):
        document["attributes"][person]["pseudonym"] = needed = True
    document.pop("key_fingerprint", None)
    if needed:
        document["key_fingerprint"] = _key_fingerprint(state, text_of(form, "key") or state.project.key)


def _shift(state: State, name: str, entry: dict[str, Any], days: int) -> None:
    """Have the dates of a column moved if they are published as dates; what is moved needs a range."""
    hidden = (Role.IDENTIFYING, Role.UNDECIDED)
    if days and entry["type"] == "date" and "age_at" not in entry and entry["role"] not in hidden:
        entry["shift_days"] = days
        entry.pop("level", None)  # what is moved by days is published by days
        if "range" not in entry:
            entry["range"] = state.desk.ask("rule", source=state.source(), name=name, kind="date")["range"]


def _key_fingerprint(state: State, place: str) -> str:
    """That of the key; the first one is made, since one that was lost cannot be made again."""
    path = state.project.folder / Path(place).expanduser()
    if place == DEFAULTS["keys"]["person"] and not path.exists():
        state.project.secret_folder()
        new_person_key(path)
    fingerprint = read_person_key(path).fingerprint
    state.project.save("keys", person=place)
    return fingerprint
