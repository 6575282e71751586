"""Risk before: how many records are unique by what an attacker may know, and which columns make them so."""

from __future__ import annotations

import json

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app import charts
from fedanon.app.jobs import Job
from fedanon.app.project import AUDIT
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.data.schema import Role, Schema

KIND = "risk"
#: the largest combination of columns that is looked for
MAX_SIZE = 3


def show(state: State, request: Request) -> PageView | Response:
    """The page."""
    if not state.project.has_schema:
        return go("/open")
    risk = state.project.measured(KIND)
    return view(
        "risk",
        columns=_quasi(state.project.read_schema()),
        risk=risk,
        figures=charts.draw(state, charts.risk_histogram(risk, state.say)) if risk else {},
        job=state.jobs.last(KIND),
        command_words=_command(state, []),
    )


def _quasi(schema: Schema) -> list[str]:
    return [a.name for a in schema.attributes if a.role is Role.QUASI_IDENTIFYING]


def run(state: State, request: Request, form: FormData) -> Response:
    """Measure, by the columns that are chosen."""
    schema = state.project.read_schema()
    schema.refuse_undecided()
    offered = _quasi(schema)
    numbers = [value for value in form.getlist("key") if isinstance(value, str)]
    keys = [offered[int(n)] for n in numbers if n.isdigit() and int(n) < len(offered)]
    if not keys:
        raise FormError(state, "risk.no_keys")
    if len(keys) < len(offered) and any("," in key for key in keys):
        raise FormError(state, "risk.comma")

    table = state.project.table_identity

    def finish(job: Job) -> None:
        state.project.keep_measured(KIND, table, json.loads(job.output()))

    state.jobs.start(KIND, [_command(state, keys if len(keys) < len(offered) else [])], page="/risk", finish=finish)
    return go("/risk" if not text_of(form, "next") else "/protect")


def _command(state: State, keys: list[str]) -> list[str]:
    words = ["sdc", "risk", *state.project.table_words(), *(["--keys", ",".join(keys)] if keys else [])]
    return [*words, "--max-size", str(MAX_SIZE), "--audit", AUDIT, "--json"]
