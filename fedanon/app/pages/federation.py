"""Federation: a simulation with its scores as they come, and a look at a real server's folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app import charts
from fedanon.app.jobs import Job
from fedanon.app.shell import State, go, render, text_of
from fedanon.data.schema import Schema
from fedanon.errors import ConfigError
from fedanon.io.atomic import atomic_write

KIND, STATUS = "federation", "federation_status"
MODELS, METHODS = ("lr", "xgboost"), ("mondrian", "gfkmc", "k_member", "oka", "identity")
MOST_NODES, MOST_ROUNDS = 50, 500
#: scores that are drawn by round, as far as there are any
CURVES = ("accuracy", "auc_pooled", "log_loss", "mae", "r2")
#: what is shown of a node's release
MEASURES = ("k_reached", "ncp", "linkage_expected_share", "truthfulness")
_NAME = re.compile(r"[0-9]{3,6}")


def show(state: State, request: Request, error: str = "") -> Response:
    """The page."""
    job, results = state.jobs.last(KIND), _results(state)
    asked = request.query_params.get("run", "")
    chosen = asked if asked in results else next(iter(results), "")
    document = json.loads((_folder(state) / f"{chosen}.json").read_text(encoding="utf-8")) if chosen else None
    points = document["rounds"] if document else []
    if job is not None and job.state == "running":
        document, points = None, [line["scores"] for line in job.progress() if "scores" in line]
    usual = state.project.settings["federation"]
    return render(
        state,
        "federation",
        step="federation",
        error=error,
        job=job,
        status_job=state.jobs.last(STATUS),
        found=state.federation,
        results=results,
        chosen=chosen,
        document=document,
        figures=charts.draw(state, charts.curves(points, list(CURVES), state.say)) if points else {},
        examples=[one["name"] for one in state.desk.ask("examples")],
        own=_own_target(state),
        models=MODELS,
        methods=METHODS,
        measures=MEASURES,
        asked={"dataset": "adult", "nodes": 4, "rounds": 20, "k": 5, "method": "mondrian", "model": "lr", **usual},
        most={"nodes": MOST_NODES, "rounds": MOST_ROUNDS},
    )


def _own_target(state: State) -> bool:
    """Whether the table that is open says what a model predicts."""
    return state.project.has_schema and Schema.read(state.project.schema).target is not None


def _folder(state: State) -> Path:
    return state.project.folder / "federations"


def _results(state: State) -> list[str]:
    folder = _folder(state)
    found = [one.stem for one in folder.glob("*.json") if _NAME.fullmatch(one.stem)] if folder.is_dir() else []
    return sorted(found, reverse=True)


def run(state: State, request: Request, form: FormData) -> Response:
    """Simulate a federation."""
    numbers = {name: text_of(form, name) for name in ("nodes", "rounds", "k")}
    if not all(value.isdigit() and len(value) < 6 for value in numbers.values()):
        raise ConfigError(state.say("app.federation.bad_number"))
    asked: dict[str, Any] = {name: int(value) for name, value in numbers.items()}
    if not (2 <= asked["nodes"] <= MOST_NODES and 1 <= asked["rounds"] <= MOST_ROUNDS and 2 <= asked["k"] <= 1000):
        raise ConfigError(state.say("app.federation.bad_number"))
    asked |= {name: text_of(form, name) for name in ("dataset", "method", "model")}
    known = {one["name"] for one in state.desk.ask("examples")} | ({""} if _own_target(state) else set())
    if asked["dataset"] not in known or asked["method"] not in METHODS or asked["model"] not in MODELS:
        raise ConfigError(state.say("app.federation.bad_choice"))
    state.project.save("federation", **asked)
    table = ["--dataset", asked["dataset"]]
    if not asked["dataset"]:
        table = [*state.project.source_options(), "--schema", "schema.toml", *state.project.missing_options]
    words = ["simulate", *table, "--nodes", str(asked["nodes"]), "--rounds", str(asked["rounds"]), "--model"]
    words += [asked["model"], "--method", asked["method"]]
    words += [] if asked["method"] == "identity" else ["--k", str(asked["k"])]
    number = f"{max(map(int, _results(state)), default=0) + 1:03}"

    def finish(job: Job) -> None:
        _folder(state).mkdir(parents=True, exist_ok=True)
        json.loads(job.output())
        atomic_write(_folder(state) / f"{number}.json", job.output())

    state.jobs.start(KIND, [[*words, "--json"]], about=number, finish=finish)
    return go("/federation")


def live(state: State, request: Request) -> Response:
    """The scores so far: a part of the page."""
    job = state.jobs.last(KIND)
    points = [] if job is None else [line["scores"] for line in job.progress() if "scores" in line]
    figures = charts.draw(state, charts.curves(points, list(CURVES), state.say)) if points else {}
    return render(state, "federation_curves", figures=figures, job=job)


def look(state: State, request: Request, form: FormData) -> Response:
    """Look at the folder of a real server."""
    named = text_of(form, "folder")
    if not named:
        raise ConfigError(state.say("app.federation.no_folder"))
    folder = Path(named).expanduser().absolute()
    state.federation = None

    def finish(job: Job) -> None:
        state.federation = json.loads(job.output())

    words = ["federation", "status", str(folder), *(["--insecure"] if text_of(form, "insecure") else []), "--json"]
    state.jobs.start(STATUS, [words], finish=finish)
    return go("/federation#server")
