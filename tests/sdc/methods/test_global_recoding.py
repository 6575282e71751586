"""Global recoding: levels of a taxonomy, intervals of numbers."""

from __future__ import annotations

import pytest

from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.sdc.methods.recoding import GlobalRecoding
from tests.sdc.methods.keyed import key_table, published

UNITS = key_table(unit=["cardiac", "orthopaedics", "oncology", "general"])


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (0, ["cardiac", "orthopaedics", "oncology", "general"]),
        (1, ["Surgery", "Surgery", "Medicine", "Medicine"]),
        (2, ["*"] * 4),
    ],
)
def test_levels(level: int, expected: list[str]) -> None:
    assert published(UNITS, GlobalRecoding(level=level))["unit"].tolist() == expected


def test_uneven_trees_rise_together() -> None:
    """Private lies beside Government, a group of height 1: only level 2 takes both into Employee."""
    table = load("adult").select_rows(range(300))
    by_level = {
        level: published(table, GlobalRecoding(level=level, columns="workclass"))["workclass"] for level in (1, 2)
    }
    government = table.frame["workclass"].isin(["Federal-gov", "Local-gov", "State-gov"])
    private = table.frame["workclass"] == "Private"
    assert set(by_level[1][government]) == {"Government"}
    assert set(by_level[1][private]) == {"Private"}
    assert set(by_level[2][government | private]) == {"Employee"}


def test_cuts_and_widths() -> None:
    table = key_table(age=[0, 17.5, 18, 64, 100])
    cut = published(table, GlobalRecoding(cuts="18,65"))["age"].tolist()
    assert cut == ["[0, 18]", "[0, 18]", "[18, 65]", "[18, 65]", "[65, 100]"]
    wide = published(table, GlobalRecoding(width=50))["age"].tolist()
    assert wide == ["[0, 50]", "[0, 50]", "[0, 50]", "[50, 100]", "[50, 100]"]


def test_whole_numbers_end_before_the_next_cut() -> None:
    table = load("adult").select_rows(range(50))
    ages = published(table, GlobalRecoding(columns="age", cuts="30,50"))["age"]
    assert set(ages) == {"[17, 29]", "[30, 49]", "[50, 90]"}


def test_missing_numbers_stay_missing() -> None:
    table = key_table("category", age=[1, None])
    assert published(table, GlobalRecoding(width=10))["age"].tolist() == ["[0, 10]", "(missing)"]


def test_new_rows_are_recoded_alike() -> None:
    release = GlobalRecoding(level=1).anonymize(UNITS, rng=0)
    assert release.recode(UNITS.select_rows([3])).to_frame()["unit"].tolist() == ["Medicine"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 3}, "taxonomy of 'unit' has levels 0 to 2. Got 3 instead"),
        ({"columns": "ward"}, "It cannot change: ward"),
        ({"columns": "age"}, "It cannot change: age"),
        ({"columns": "age", "cuts": "1,x"}, "numbers separated by commas"),
        ({"columns": "age", "cuts": "5,1"}, "increasing order"),
        ({"columns": "age", "width": 0.0}, "'width' parameter must be above 0"),
        ({"columns": "age", "width": 5.0, "cuts": "5"}, "cuts or by a width, not both"),
    ],
)
def test_bad_input(settings: dict[str, object], message: str) -> None:
    table = key_table(unit=["cardiac", "general"], age=[1, 2])
    with pytest.raises(ConfigError, match=message):
        GlobalRecoding(**settings).anonymize(table, rng=0)  # type: ignore[arg-type]
