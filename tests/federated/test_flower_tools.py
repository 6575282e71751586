"""Flower's own commands with our app: in its simulation, against our server, and on a SuperLink somebody else runs."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.deployment.processes import QUIET
from fedanon.learning.saved_model import SavedModel
from tests.cli.conftest import run
from tests.federated.deployed import PATIENCE, deployed, end_group, free_port, wait_until, write_tables
from tests.federated.test_deployment import lets_in

__all__ = ["run"]

ROOT = Path(__file__).parents[2]
BESIDE = Path(sys.executable).parent
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


class Flower:
    """Flower's commands with a folder of their own, and processes that end."""

    def __init__(self, home: Path, config: str = "") -> None:
        self.home = home
        home.mkdir(exist_ok=True)
        if config:
            (home / "config.toml").write_text(config, encoding="utf-8")
        path = os.pathsep.join([str(BESIDE), os.environ["PATH"]])
        self.env = {**os.environ, **QUIET, "FLWR_HOME": str(home), "PATH": path, "PYTHONPATH": str(ROOT)}

    def call(self, *arguments: object) -> str:
        command = [str(BESIDE / "flwr"), *map(str, arguments)]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def json(self, *arguments: object) -> dict[str, Any]:
        said = self.call(*arguments, "--format", "json")
        found: dict[str, Any] = json.loads(said[said.index("{") :])
        return found

    @contextlib.contextmanager
    def running(self, *command: object) -> Iterator[subprocess.Popen[bytes]]:
        with (self.home / "log").open("ab") as log:
            arguments = [str(BESIDE / str(command[0])), *map(str, command[1:])]
            process = subprocess.Popen(arguments, env=self.env, stdout=log, stderr=log, start_new_session=True)
        try:
            yield process
        finally:
            end_group(process)


def other_superlink(tmp_path: Path) -> tuple[Flower, list[object]]:
    port = free_port()
    flower = Flower(tmp_path / "flower", f'[superlink.other]\naddress = "127.0.0.1:{port}"\ninsecure = true\n')
    options = ["--insecure", "--port", port, "--database", tmp_path / "state.db", *DISABLED]
    return flower, ["flower-superlink", "--host", "127.0.0.1", *options]


DISABLED = ["--disable-runtime-dependency-installation"]


def wait_for_superlink(flower: Flower, alive: subprocess.Popen[bytes]) -> None:
    def answers() -> bool:
        with contextlib.suppress(AssertionError, ValueError):
            return "runs" in flower.json("list", "other")  # an error is an answer too
        return False

    wait_until(answers, "no SuperLink", alive=alive)


def test_flowers_simulation_runs_the_app(tmp_path):
    flower, superlink = other_superlink(tmp_path)
    settings = f'nodes=3 rounds=2 model-folder="{tmp_path / "model"}"'
    with flower.running(*superlink, "--simulation") as link:
        wait_for_superlink(flower, link)
        said = flower.call(
            "run", ROOT, "other", "--run-config", settings, "--federation-config", "num-supernodes=3", "--stream"
        )
    assert "round 2: log_loss" in said
    assert len(SavedModel.read(tmp_path / "model").card["nodes"]) == 3


def test_flowers_simulation_runs_an_app_from_our_template(tmp_path, run):
    assert run("federation", "app", tmp_path / "mine", "--k", "7").code == 0
    flower, superlink = other_superlink(tmp_path)
    settings = f'nodes=3 rounds=2 model-folder="{tmp_path / "model"}"'
    with flower.running(*superlink, "--simulation") as link:
        wait_for_superlink(flower, link)
        arguments = ("--run-config", settings, "--federation-config", "num-supernodes=3", "--stream")
        said = flower.call("run", tmp_path / "mine", "other", *arguments)
    assert "round 2: log_loss" in said
    assert SavedModel.read(tmp_path / "model").card["settings"]["method_settings"] == {"k": 7}
    assert run("federation", "app", tmp_path / "mine").code == 2


def test_flowers_nodes_and_ours_run_the_app_on_any_superlink(tmp_path):
    """The policies of `fedanon node init` are in force here too; the SuperLink knows Flower's requests alone."""
    flower, superlink = other_superlink(tmp_path)
    tables, address = write_tables(tmp_path, 2, 300), f"127.0.0.1:{superlink[5]}"
    settings = f'nodes=2 rounds=2 model-folder="{tmp_path / "model"}"'
    theirs, ours = (
        NodeFolder.init(
            tmp_path / f"node{number}",
            NodeConfig(server=address, data=str(table), schema=str(tmp_path / "schema.toml"), number=number),
            None,
        )
        for number, table in enumerate(tables)
    )
    config = " ".join(f"{name}={json.dumps(value)}" for name, value in theirs.config.for_flower(theirs.folder).items())
    options = ["--superlink", address, "--port", free_port(), "--node-config", config]
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(flower.running(*superlink))
        wait_for_superlink(flower, link)
        stack.enter_context(flower.running("flower-supernode", "--insecure", "--host", "127.0.0.1", *options))
        stack.enter_context(flower.running("fedanon", "node", "run", ours.folder, "--insecure"))
        said = flower.call("run", ROOT, "other", "--run-config", settings, "--stream")
    assert "round 2: log_loss_released" in said
    assert len(SavedModel.read(tmp_path / "model").card["nodes"]) == 2


def test_flowers_commands_work_with_our_server(tmp_path):
    with deployed(tmp_path, "rounds = 2\n", nodes=2) as found:
        server = found.start("server", "serve", found.server.folder, log="server.log")
        wait_until(lambda: lets_in(found, 2), "the keys are not known", alive=server)
        for number in range(2):
            found.start_node(number)
        flower = Flower(found.server.folder / "flower")
        first = flower.json("run", ROOT, "fedanon", "--run-config", "rounds=2")["run-id"]
        wait_until(lambda: status(flower, first) == "finished:completed", "it does not end", alive=server)
        assert "round 2: log_loss" in flower.call("log", first, "fedanon", "--show")
        second = flower.json("run", ROOT, "fedanon", "--run-config", "rounds=500")["run-id"]
        wait_until(lambda: status(flower, second) == "running", "it does not start", alive=server)
        flower.call("stop", second, "fedanon")
        wait_until(lambda: status(flower, second) == "finished:stopped", "it does not stop", alive=server)
        assert len(list((found.server.folder / "models").iterdir())) == 1


def status(flower: Flower, run: str) -> str:
    runs = {str(entry["run-id"]): str(entry["status"]) for entry in flower.json("list", "fedanon")["runs"]}
    return runs[str(run)]
