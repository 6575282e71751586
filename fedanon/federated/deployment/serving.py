"""The server app: wait for the nodes, run, and write the result beside the checkpoints.

Flower starts it in a process of its own. What concerns this machine only (folders, security) comes by the environment
of `fedanon server`, since a run config travels to all nodes. On a SuperLink that somebody else runs, or in Flower's
simulation, there is no such environment, and the run config says all.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedanon._version import __version__
from fedanon.data.schema import Schema
from fedanon.errors import FedanonError, InfeasibleError
from fedanon.federated import wire
from fedanon.federated.deployment.config import ServerConfig
from fedanon.federated.deployment.folders import private_folder, write_private
from fedanon.federated.deployment.presence import present
from fedanon.federated.deployment.processes import die_with_parent
from fedanon.federated.deployment.server_folder import checkpoints_in, result_path
from fedanon.federated.deployment.steady_grid import SteadyGrid
from fedanon.federated.handshake import Attendance
from fedanon.federated.server import FederatedRun, wait_for_nodes
from fedanon.io.audit import audit
from fedanon.io.manifest import file_sha256
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.model_card import make_card
from fedanon.learning.rounds import RunResult, scored_on
from fedanon.learning.saved_model import needed_schema, write_model
from fedanon.learning.settings import RunSettings
from fedanon.models.outcome import Outcome

log = logging.getLogger("fedanon")

FOLDER_VARIABLE = "FEDANON_SERVER_FOLDER"
SECURITY_VARIABLE = "FEDANON_SECURITY"
#: names the process of a run
RUN_PID_FILE = "run.pid"
MODELS = "models"
#: how long a run waits for the process of an earlier one, which is being stopped
STOP_SECONDS = 60.0
#: how long a round waits for a node that goes away, where no server.toml says
RETURN_SECONDS = 30.0

#: scores of a round that are shown while it runs
SHOWN = (
    *("log_loss", "accuracy", "auc_client_mean", "mae", "r2"),
    *("log_loss_released", "accuracy_released", "auc_client_mean_released", "mae_released", "r2_released"),
    *("log_loss_private", "accuracy_private", "auc_private"),
    "epsilon_spent",
)


def deployed_server_app() -> ServerApp:
    """The app `fedanon server run` and `flwr run` start."""
    app = ServerApp()
    app.main()(_main)
    return app


def model_path(folder: Path, settings: RunSettings) -> Path:
    """Where the model of a run lies."""
    return folder / MODELS / result_path(folder, settings).stem


def result(settings: RunSettings, outcome: RunResult, security: str) -> dict[str, Any]:
    """All that may be published of a run; the same for the same seed and tables."""
    return {
        "security": security,
        "version": __version__,
        "settings": wire.encode_settings(settings, simulated=False),
        "rounds": outcome.rounds,
        "scored_on": scored_on(outcome.rounds),
        "counted": outcome.counted,
        "outcome": Outcome(next(iter(outcome.facts.values())).classes).kind,
        "nodes": {str(number): outcome.names[number] for number in sorted(outcome.names)},
        "facts": {str(number): outcome.facts[number].to_dict() for number in sorted(outcome.facts)},
        "rejected": outcome.rejected,
        "unresponsive": outcome.unresponsive,
        "suspects": outcome.suspects,
        **({"joint": outcome.joint} if outcome.joint else {}),
        **({"dp": outcome.dp} if outcome.dp else {}),
    }


def _main(grid: Grid, context: Context) -> None:
    if FOLDER_VARIABLE not in os.environ:
        _run_elsewhere(grid, context)
        return
    # without its parent it would go on against the next SuperLink
    if (parent := os.getppid()) == 1:
        raise InfeasibleError("The process that started this run has ended.")
    die_with_parent(parent)
    folder = Path(os.environ[FOLDER_VARIABLE])
    with present(folder / RUN_PID_FILE, "A run of this server", seconds=STOP_SECONDS):
        _run(grid, context, folder)


def _run(grid: Grid, context: Context, folder: Path) -> None:
    config = ServerConfig.read(folder)
    steady = SteadyGrid(grid, config.return_seconds)
    settings = wire.decode_settings(context.run_config)
    audit("run started", settings=wire.encode_settings(settings), security=os.environ.get(SECURITY_VARIABLE, "none"))
    wait_for_nodes(steady, config.nodes, config.wait_seconds)
    private_folder(folder / "checkpoints")
    federation = FederatedRun(
        steady,
        settings,
        checkpoints=checkpoints_in(folder),
        on_round=_report,
        timeout=config.reply_seconds,
        forgetful=True,
        attendance=Attendance(nodes=config.nodes, seconds=config.wait_seconds, look=steady.look),
        ask_egress=True,
    )
    security, outcome = os.environ.get(SECURITY_VARIABLE, "none"), federation.run()
    private_folder(folder / MODELS)
    card, schema = make_card(settings, outcome, security=security), _schema(folder / config.schema, settings, outcome)
    write_model(model_path(folder, settings), card, outcome.parameters, schema, replace=True)
    content = result(settings, outcome, security)
    path = result_path(folder, settings)
    private_folder(path.parent)
    write_private(path, json.dumps(content, indent=2, sort_keys=True) + "\n")
    left_out = {name: content[name] for name in ("rejected", "unresponsive")}
    audit("run finished", result=path.name, result_sha256=file_sha256(path), **left_out)


def _schema(path: Path, settings: RunSettings, outcome: RunResult) -> Schema | None:
    """What applying the model needs of the schema, if the server's people have put that of the nodes here."""
    if not path.is_file():
        return None
    try:
        schema = Schema.read(path)
        if schema.sha256 == next(iter(outcome.facts.values())).schema_sha256:
            return needed_schema(schema, settings)
        reason = "it is not that of the nodes"
    except FedanonError as error:
        reason = str(error)
    log.warning("The schema %s is not kept with the model: %s", path.name, reason)
    return None


def _run_elsewhere(grid: Grid, context: Context) -> None:
    """A run by its run config alone."""
    config = context.run_config
    settings = wire.decode_settings(config)
    wait_for_nodes(grid, settings.nodes, float(config.get("wait-seconds", 60)))
    steady = SteadyGrid(grid, RETURN_SECONDS)
    federation = FederatedRun(
        steady,
        settings,
        checkpoints=Checkpoints.at(str(config.get("checkpoint-folder", ""))),
        on_round=_report,
        forgetful=True,
        attendance=Attendance(nodes=settings.nodes, seconds=RETURN_SECONDS, look=steady.look),
        ask_egress=True,
    )
    outcome = federation.run()
    if folder := str(config.get("model-folder", "")):
        write_model(Path(folder), make_card(settings, outcome, security="unknown"), outcome.parameters)


def _report(scores: dict[str, Any]) -> None:
    print(_line(scores), flush=True)
    audit("round", **scores)


def _line(scores: dict[str, Any]) -> str:
    shown = {name: scores[name] for name in SHOWN if name in scores}
    return f"round {scores['round']}: " + ", ".join(f"{name} {value:.4f}" for name, value in shown.items())
