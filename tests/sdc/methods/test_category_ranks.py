"""Categories in the order of their taxonomy: swapped, or aggregated by median and mode."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fedanon.errors import InfeasibleError
from fedanon.sdc.methods.category_ranks import CategoryMicroaggregation, CategorySwapping
from tests.sdc.methods.keyed import key_table, published

GRADES = [f"g{i}" for i in range(10)]


def grades(n: int = 500) -> list[object]:
    return [GRADES[i] for i in np.random.default_rng(0).integers(10, size=n)]


def test_swapping_keeps_counts_and_stays_near() -> None:
    """Within 10 % of 500 ranks a grade moves by one or two, as each is held by about 50."""
    table = key_table(x=grades())
    out = published(table, CategorySwapping(percent=10))["x"]
    assert Counter(out) == Counter(table.frame["x"])
    apart = np.abs(out.str[1:].astype(int) - table.frame["x"].str[1:].astype(int))
    assert apart.max() <= 2
    assert (apart > 0).mean() > 0.3


def test_groups_publish_their_median_or_mode() -> None:
    table = key_table(x=["a", "a", "b", "c", "c", "c", "d"])
    assert published(table, CategoryMicroaggregation(k=3))["x"].tolist() == ["a", "a", "a", "c", "c", "c", "c"]
    assert (
        Counter(published(key_table(x=grades()), CategoryMicroaggregation(k=40, replace="mode"))["x"]).most_common()[
            -1
        ][1]
        >= 40
    )


def test_missing_and_suppressed_stay() -> None:
    table = key_table(missing="category", x=["a", None, "b", "b", "c", None])
    for method in (CategorySwapping(percent=100), CategoryMicroaggregation(k=2)):
        out = published(table, method)["x"]
        assert (out == "(missing)").tolist() == [False, True, False, False, False, True]


def test_too_few_records_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="fewer than k=9"):
        published(key_table(x=["a", "b"]), CategoryMicroaggregation(k=9))
    with pytest.raises(InfeasibleError, match="less than one rank"):
        published(key_table(x=["a", "b"]), CategorySwapping(percent=10))
