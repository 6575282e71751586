"""The JSON of the commands, a hash for every key on top, so that a change shows where it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.snapshot import house
from tests.snapshot.conftest import Snapshots
from tests.snapshot.steady import DROPPED, steady_json

PATIENTS = ("--schema", "patients.toml", "--missing", "category")
VISITS = ("--schema", "visits.toml", "--missing", "wildcard")
#: a random order would leave open what depends on who is who, and differently each time
KEPT = "--keep-order"
RELEASED = {
    "patients.released.csv": ("patients.csv", *PATIENTS, "--k", "4", "--require", "l=2:diagnosis", "--seed", "1", KEPT),
    "visits.released.csv": ("visits.csv", *VISITS, "--method", "k_member", "--k", "3", "--seed", "1", KEPT),
}
SIMULATED = ("--dataset", "nhanes", "--nodes", "3")
COMMANDS = {
    "check": ("check", "patients.released.csv", *PATIENTS),
    "check --original": ("check", "patients.released.csv", *PATIENTS, "--original", "patients.csv"),
    "check --original, people": ("check", "visits.released.csv", *VISITS, "--original", "visits.csv"),
    "verify --original": ("verify", "patients.released.csv", "--original", "patients.csv"),
    "verify --original, people": ("verify", "visits.released.csv", "--original", "visits.csv"),
    "attack --suite release": ("attack", "patients.csv", *PATIENTS, "--suite", "release", "--k", "4", "--seed", "1"),
    # trees: the sums of the other models differ between processors, see test_models.py
    "simulate": ("simulate", *SIMULATED, "--k", "5", "--model", "xgb", "--rounds", "3", "--seed", "1"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables lie where the command is run, so that no path of this machine is in an answer."""
    here = tmp_path / "here"
    shutil.copytree(house.TABLES, here)
    monkeypatch.chdir(here)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", COMMANDS)
def test_answers_are_as_they_were(name: str, run: house.Run, snapshots: Snapshots) -> None:
    for released in set(RELEASED) & set(COMMANDS[name]):
        made = run("anonymize", *RELEASED[released], "-o", released)
        assert made.code == 0, made.err
    told = run(*COMMANDS[name], "--json")
    assert told.code == 0, told.err
    snapshots.check({f"{name}/{key}": text for key, text in by_key(told).items()}, group=name)


def by_key(told: house.Outcome) -> dict[str, str]:
    """The text of every key on top, by its name of old."""
    known = {house.old_name(key): value for key, value in told.json.items()}
    return {key: steady_json(value, house.RENAMED) for key, value in known.items() if key not in DROPPED}


def test_no_command_is_gone(snapshots: Snapshots) -> None:
    snapshots.check_groups(set(COMMANDS))
