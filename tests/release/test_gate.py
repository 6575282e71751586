"""The gate evaluates a release once, and refuses one that was changed since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.cells import Intervals
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import PrivacyViolationError
from fedanon.io.release_file import write_release
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.gate import verify


@pytest.fixture
def table() -> Table:
    return load("adult").select_rows(np.arange(200))


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A line per evaluation of a k."""
    seen: list[int] = []
    check = KAnonymity.check

    def counted(self: KAnonymity, *args: object) -> None:
        seen.append(self.k)
        check(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(KAnonymity, "check", counted)
    return seen


def test_a_release_is_evaluated_once(table: Table, evaluated: list[int], tmp_path: Path) -> None:
    release = verify(Mondrian(k=5).anonymize(table, rng=0), table)
    write_release(release, table, tmp_path / "out.csv")
    assert evaluated == [5]


def test_a_copy_or_another_table_is_evaluated_anew(table: Table, evaluated: list[int]) -> None:
    release = Mondrian(k=5).anonymize(table, rng=0)
    verify(replace(release), table)
    verify(release, load("adult").select_rows(np.arange(200)))
    assert evaluated == [5, 5, 5]
    with pytest.raises(PrivacyViolationError, match="claims 50-anonymity"):
        verify(replace(release, claim=KAnonymity(k=50)), table)


@pytest.mark.parametrize("part", ["cells", "columns"])
def test_what_was_changed_in_place_is_refused(part: str, table: Table) -> None:
    release = Mondrian(k=5).anonymize(table, rng=0)
    if part == "cells":
        ages = release.cells["age"]
        assert isinstance(ages, Intervals)
        ages.low[0] -= 1
    else:
        release.passthrough.loc[release.passthrough.index[0], "income"] = "changed"
    with pytest.raises(PrivacyViolationError, match="changed after it had been verified"):
        verify(release, table)
