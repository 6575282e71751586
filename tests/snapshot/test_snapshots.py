"""The snapshots themselves: a change is named and shown, a renaming is none, and only recording writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.snapshot.conftest import Snapshots, short_hash
from tests.snapshot.steady import steady_json, steady_text


@pytest.fixture
def held(tmp_path: Path) -> Snapshots:
    path = tmp_path / "held.json"
    path.write_text(json.dumps({"a/1": short_hash("one"), "a/2": short_hash("two"), "b/1": short_hash("three")}))
    return Snapshots(path, tmp_path)


def test_what_is_the_same_passes(held: Snapshots) -> None:
    held.check({"a/1": "one", "a/2": "two"}, group="a")
    held.check({"a/1": "one", "a/2": "two", "b/1": "three"})
    held.check_groups({"a", "b", "c"})


def test_a_change_is_named_and_shown(held: Snapshots) -> None:
    before = held.path.read_bytes()
    with pytest.raises(pytest.fail.Exception) as told:
        held.check({"a/1": "another", "a/3": "new"}, group="a")
    shown = held.scratch / "held" / "a" / "1.txt"
    assert f"a/1: changed {shown}" in str(told.value)
    assert shown.read_text() == "another"
    assert "a/2: is gone" in str(told.value)
    assert "a/3: has no hash yet" in str(told.value)
    assert "b/1" not in str(told.value)
    with pytest.raises(pytest.fail.Exception, match="what is gone: b"):
        held.check_groups({"a"})
    assert held.path.read_bytes() == before


def test_recording_keeps_the_other_groups(held: Snapshots) -> None:
    Snapshots(held.path, held.scratch, record=True).check({"a/1": "another"}, group="a")
    assert json.loads(held.path.read_text()) == {"a/1": short_hash("another"), "b/1": short_hash("three")}


def test_renaming_and_machine_facts_change_nothing() -> None:
    before = {"loss": [{"ncp": 0.1 + 0.2, "k": 5}], "seconds": 1.0}
    after = {"cost": [{"k": 5, "loss_of_cells": 0.3}], "seconds": 2.0}
    assert steady_json(before, {}) == steady_json(after, {"cost": "loss", "loss_of_cells": "ncp"})
    assert steady_json(before, {}) != steady_json(after, {"cost": "loss"})


def test_only_the_last_digits_of_fractions_are_left_out() -> None:
    assert steady_text("[0.30000000000000004, 12345678901234], -1.5e-17") == "[0.3, 12345678901234], 0"
    assert steady_text("0.30000001") != steady_text("0.3")
