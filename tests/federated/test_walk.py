"""From nothing to a trained model of four hospitals, by the commands people type."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.federated.deployed import PATIENCE, end_group, free_port

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


class Shell:
    """Runs commands and counts them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.typed = 0
        self.begun: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        self.typed += 1
        with (self.folder / "log").open("ab") as log:
            arguments = [sys.executable, "-m", "fedanon.cli", *command]
            process = subprocess.Popen(arguments, cwd=self.folder, stdout=log, stderr=log, start_new_session=True)
        self.begun.append(process)
        return process

    def run(self, *command: str) -> None:
        assert self.start(*command).wait(PATIENCE) == 0, (self.folder / "log").read_text(errors="replace")


def test_four_hospitals_by_seven_commands(tmp_path):
    shell, port, begin = Shell(tmp_path), str(free_port()), time.perf_counter()
    try:
        shell.run("federation", "init", "trial", "--nodes", "4", "--dataset", "adult", "--port", port)
        for number in range(4):
            shell.start("node", "run", f"trial/hospital-{number}")
        shell.run("server", "run", "trial/server")
        print(f"{time.perf_counter() - begin:.1f} seconds, {shell.typed} commands")
        [model] = (tmp_path / "trial" / "server" / "models").iterdir()
        rows = "trial/hospital-0/data.csv"
        shell.run("predict", str(model), rows, "-o", "out.csv")
    finally:
        for process in reversed(shell.begun):
            end_group(process)
    assert shell.typed == 7
    card = json.loads((model / "card.json").read_text(encoding="utf-8"))
    assert [node["name"] for node in card["nodes"]] == [f"hospital-{number}" for number in range(4)]
    assert all(card["egress"][str(number)]["updates"] == 10 for number in range(4))
    # nodes as `init` makes them score on a release of their test people
    assert card["metrics"]["accuracy_released"] > 0.76, "better than always saying no"
    assert len(pd.read_csv(tmp_path / "out.csv")) == len(pd.read_csv(tmp_path / rows))
