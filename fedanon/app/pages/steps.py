"""Steps: disclosure control one step at a time, with a history that can be undone; risk and loss before and after."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app.pages.protect import Made, output_words, release_to_be, start_release
from fedanon.app.project import AUDIT
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.errors import FedanonError

#: offered by name, with parameters as an example; any other method can be written
OFFERED = (
    "local_suppression:k=3",
    "global_recoding:COLUMN,width=10",
    "top_bottom_coding:COLUMN,top_share=0.02",
    "rounding:COLUMN,base=5",
    "additive_noise:COLUMN,c=0.1",
    "rank_swapping:COLUMN",
    "pram:COLUMN,keep=0.9",
    "mondrian:k=5",
)
#: seconds the steps may take on the sample
PATIENCE = 60.0


def _taken(state: State) -> list[str]:
    return list(state.project.settings["steps"].get("taken", []))


def _measure(state: State, taken: list[str]) -> dict[str, Any]:
    state.desk.ask("prepare", **state.table())
    return dict(state.desk.ask("steps", **state.table(), steps=taken, patience=PATIENCE))


def show(state: State, request: Request) -> PageView | Response:
    """The page."""
    if not state.project.has_schema:
        return go("/open")
    if state.project.read_schema().undecided:
        return go("/columns")
    taken, found, error = _taken(state), None, ""
    try:
        found = _measure(state, taken)
    except FedanonError as failure:
        error = str(failure)
    return view(
        "steps",
        step="protect",
        error=error,
        taken=taken,
        found=found,
        offered=OFFERED,
        job=state.jobs.last("release"),
        command_words=_words(state, taken, release_to_be(state)),
    )


def add(state: State, request: Request, form: FormData) -> Response:
    """Take one more step, unless it cannot be taken."""
    step = text_of(form, "step")
    if not step or len(step) > 500:
        raise FormError(state, "steps_page.no_step")
    taken = [*_taken(state), step]
    _measure(state, taken)
    state.project.save("steps", taken=taken)
    return go("/steps")


def undo(state: State, request: Request, form: FormData) -> Response:
    """Take the last step back."""
    state.project.save("steps", taken=_taken(state)[:-1] or None)
    return go("/steps")


def run(state: State, request: Request, form: FormData) -> Response:
    """Make the release of all rows."""
    taken = _taken(state)
    if not taken:
        raise FormError(state, "steps_page.no_step")
    asked = {"method": " → ".join(step.partition(":")[0] for step in taken), "k": None, "seed": 0}
    start_release(state, asked, lambda made: _words(state, taken, made), page="/steps")
    return go("/steps")


def _words(state: State, taken: list[str], made: Made) -> list[str]:
    words = ["sdc", "apply", *state.project.table_words(made["schema"], publishes=True)]
    for step in taken:
        words += ["--step", step]
    return [*words, "--seed", "0", *output_words(made), "--audit", AUDIT, "--json"]
