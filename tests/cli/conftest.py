"""Running the command line in this process, as a person would run it in a shell."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fedanon.cli.__main__ import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fedanon", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


SCHEMA = """
name = "ward"
target = "diagnosis"
person_id = "patient"
missing_values = ["?"]
[attributes.patient]
role = "identifying"
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
integer = true
[attributes.sex]
role = "quasi_identifying"
type = "categorical"
values = ["F", "M"]
[attributes.unit]
role = "quasi_identifying"
type = "categorical"
[attributes.unit.taxonomy]
Surgery = ["cardiac", "orthopaedics"]
Medicine = ["oncology", "general"]
[attributes.diagnosis]
role = "sensitive"
type = "text"
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "ward.toml"
    path.write_text(SCHEMA, encoding="utf-8")
    return path


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    """Forty patients."""
    units = ["cardiac", "orthopaedics", "oncology", "general"]
    lines = ["patient,age,sex,unit,diagnosis"]
    lines += [
        f"P{i:03d},{20 + (i * 7) % 60},{'FM'[i % 2]},{units[i % 4]},{'=cmd' if i == 3 else 'flu'}" for i in range(40)
    ]
    path = tmp_path / "ward.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
