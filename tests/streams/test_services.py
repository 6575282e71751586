"""The systemd unit and the compose file name commands there are, and give no more than is needed."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from fedanon.cli.app import app

FOLDER = Path(__file__).parents[2] / "docker"
UNIT = FOLDER / "fedanon-gateway.service"


def is_command(words: list[str]) -> bool:
    """Whether the first words name a command of the CLI, and the others are its arguments."""
    found: Any = get_command(app)
    while words and hasattr(found, "commands"):
        if words[0] not in found.commands:
            return False
        found, words = found.commands[words[0]], words[1:]
    return not hasattr(found, "commands") and len(words) == 1


def test_the_unit_runs_a_command_that_is_there() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(UNIT, encoding="utf-8")
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/fedanon")
    assert is_command(words)
    assert unit["Service"]["Restart"] == "always"
    assert unit["Service"]["DynamicUser"] == unit["Service"]["NoNewPrivileges"] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8").replace("/opt/fedanon/bin/fedanon", "/bin/true")
    (tmp_path / UNIT.name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / UNIT.name], capture_output=True, text=True, check=False
    )
    assert UNIT.name not in done.stderr, done.stderr


def test_the_node_of_the_ward_sees_windows_and_no_readings() -> None:
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((FOLDER / "gateway.compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"broker", "gateway", "node"}
    for name in ("gateway", "node"):
        assert is_command(services[name]["command"])
        assert services[name]["read_only"]
        assert services[name]["cap_drop"] == ["ALL"]
    assert not set(services["node"]["networks"]) & set(services["broker"]["networks"])
    assert not any("gateway" in volume for volume in services["node"]["volumes"])
    assert "./state/windows:/windows:ro" in services["node"]["volumes"]
