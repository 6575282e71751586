"""The tables of the README are what the harness prints from the stored results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run, run

__all__ = ["run"]

ROOT = Path(__file__).parents[1]
TABLES = re.findall(
    r"<!-- (fedanon experiment show .*?) -->\n(.*?)<!-- end -->", (ROOT / "README.md").read_text(), flags=re.DOTALL
)


def test_there_is_a_table() -> None:
    assert TABLES


@pytest.mark.parametrize(("command", "table"), TABLES)
def test_tables_come_from_stored_results(command: str, table: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run(*command.split()[1:]).out == table
