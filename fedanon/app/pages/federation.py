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
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.errors import FedanonError
from fedanon.io.atomic import atomic_write

KIND, STATUS = "federation", "federation_status"
MODELS, METHODS = ("lr", "xgboost"), ("mondrian", "gfkmc", "k_member", "oka", "identity")
MOST_NODES, MOST_ROUNDS = 50, 500
#: scores that are drawn by round, as far as there are any
CURVES = ("accuracy", "auc_pooled", "log_loss", "mae", "r2")
#: what is shown of a node's release
MEASURES = ("k_reached", "ncp", "linkage_expected_share", "truthfulness")
_NAME = re.compile(r"[0-9]{3,6}")


def show(state: State, request: Request) -> PageView:
    """The page."""
    job, results = state.jobs.last(KIND), _results(state)
    asked = request.query_params.get("run", "")
    chosen = asked if asked in results else next(iter(results), "")
    document = json.loads((_folder(state) / f"{chosen}.json").read_text(encoding="utf-8")) if chosen else None
    points = document["rounds"] if document else []
    if job is not None and job.state == "running":
        document, points = None, _scores(job)
    usual = state.project.settings["federation"]
    return view(
        "federation",
        job=job,
        status_job=state.jobs.last(STATUS),
        results=results,
        chosen=chosen,
        document=document,
        figures=_curves(state, points),
        examples=[one["name"] for one in state.desk.ask("examples")],
        own=_own_target(state),
        models=MODELS,
        methods=METHODS,
        measures=MEASURES,
        asked={"dataset": "adult", "nodes": 4, "rounds": 20, "k": 5, "method": "mondrian", "model": "lr", **usual},
        most={"nodes": MOST_NODES, "rounds": MOST_ROUNDS},
        **_watched(state),
    )


def _scores(job: Job) -> list[dict[str, Any]]:
    return [line["scores"] for line in job.progress() if "scores" in line]


def _curves(state: State, points: list[dict[str, Any]], prefix: str = "") -> dict[str, Any]:
    drawn = charts.draw(state, charts.curves(points, CURVES, state.say, prefix)) if points else {}
    return {name.removeprefix(prefix): figure for name, figure in drawn.items()}


def _own_target(state: State) -> bool:
    """Whether the table that is open says what a model predicts."""
    return state.project.has_schema and state.project.read_schema().target is not None


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
        raise FormError(state, "federation.bad_number")
    asked: dict[str, Any] = {name: int(value) for name, value in numbers.items()}
    if not (2 <= asked["nodes"] <= MOST_NODES and 1 <= asked["rounds"] <= MOST_ROUNDS and 2 <= asked["k"] <= 1000):
        raise FormError(state, "federation.bad_number")
    asked |= {name: text_of(form, name) for name in ("dataset", "method", "model")}
    known = {one["name"] for one in state.desk.ask("examples")} | ({""} if _own_target(state) else set())
    if asked["dataset"] not in known or asked["method"] not in METHODS or asked["model"] not in MODELS:
        raise FormError(state, "federation.bad_choice")
    state.project.save("federation", **asked)
    table = ["--dataset", asked["dataset"]]
    if not asked["dataset"]:
        table = state.project.table_words()
    words = ["simulate", *table, "--nodes", str(asked["nodes"]), "--rounds", str(asked["rounds"]), "--model"]
    words += [asked["model"], "--method", asked["method"]]
    words += [] if asked["method"] == "identity" else ["--k", str(asked["k"])]
    number = f"{max(map(int, _results(state)), default=0) + 1:03}"

    def finish(job: Job) -> None:
        _folder(state).mkdir(parents=True, exist_ok=True)
        json.loads(job.output())
        atomic_write(_folder(state) / f"{number}.json", job.output())

    state.jobs.start(KIND, [[*words, "--json"]], about=number, page="/federation", finish=finish)
    return go("/federation")


def live(state: State, request: Request) -> PageView:
    """The scores so far: a part of the page."""
    job = state.jobs.last(KIND)
    return view("federation_curves", figures={} if job is None else _curves(state, _scores(job)), job=job)


# ---- a real server -------------------------------------------------------------------------------


def watch(state: State, request: Request, form: FormData) -> Response:
    """Have the folder of a real server before one's eyes, if it is one."""
    folder = _named(state, form)
    state.desk.ask("server", folder=str(folder))
    state.project.save("federation", folder=str(folder))
    state.federation = None
    return go("/federation#server")


def server(state: State, request: Request) -> PageView:
    """What the folder says now: a part of the page, asked for again and again."""
    return view("federation_server", **_watched(state))


def _watched(state: State) -> dict[str, Any]:
    """What is shown of the server's folder that is watched, if one is; who is online was asked for apart."""
    folder, found, error = state.project.settings["federation"].get("folder", ""), None, ""
    if folder:
        try:
            found = state.desk.ask("server", folder=folder)
        except FedanonError as failure:
            error = str(failure)
    figures = _curves(state, found["scores"], "server-") if found else {}
    asked = state.federation
    online = None if asked is None else [one["name"] for one in asked["nodes"] if one["status"] == "online"]
    words = ["federation", "status", folder]
    return {
        "folder": folder,
        "found": found,
        "server_error": error,
        "server_figures": figures,
        "online": online,
        "status_words": words,
    }


def look(state: State, request: Request, form: FormData) -> Response:
    """Ask a running server who is connected."""
    folder = _named(state, form)
    state.federation = None

    def finish(job: Job) -> None:
        state.federation = json.loads(job.output())

    words = ["federation", "status", str(folder), *(["--insecure"] if text_of(form, "insecure") else []), "--json"]
    state.jobs.start(STATUS, [words], page="/federation", finish=finish)
    return go("/federation#server")


def _named(state: State, form: FormData) -> Path:
    named = text_of(form, "folder")
    if not named:
        raise FormError(state, "federation.no_folder")
    return Path(named).expanduser().absolute()
