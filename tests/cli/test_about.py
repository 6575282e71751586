"""`fedanon --version --verbose` and shell completion."""

from __future__ import annotations

import getpass
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import fedanon
from tests.cli.conftest import Run


def test_the_version_alone(run: Run) -> None:
    assert run("--version").out == f"{fedanon.__version__}\n"


def test_a_report_of_a_bug_says_what_is_installed_and_not_where(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDANON_DATA", "/secret/place")
    said = run("--version", "--verbose").out
    for words in (f"fedanon {fedanon.__version__}", platform.python_version(), "numpy ", "FEDANON_DATA", "edge"):
        assert words in said
    for secret in ("/secret/place", str(Path.home()), platform.node()):
        assert secret not in said
    assert f"/{getpass.getuser()}/" not in said


def test_without_a_command_it_is_an_error(run: Run) -> None:
    assert run("--verbose").code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands(shell: str) -> None:
    """As the installed script asks: by variables of the environment."""
    tool = Path(sys.executable).parent / "fedanon"
    script = subprocess.run(
        [tool], env={"PATH": "/usr/bin:/bin", "_FEDANON_COMPLETE": f"source_{shell}"}, capture_output=True, text=True
    )
    assert "fedanon" in script.stdout
    asked = {"COMP_WORDS": "fedanon anony", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "fedanon anony"}
    done = subprocess.run(
        [tool],
        env={
            "PATH": "/usr/bin:/bin",
            "_FEDANON_COMPLETE": f"complete_{shell}",
            **asked,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
        capture_output=True,
        text=True,
    )
    assert "anonymize" in done.stdout
