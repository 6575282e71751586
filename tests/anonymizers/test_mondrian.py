"""Mondrian: hand-worked cuts, the pooling of small children, and better loss than the strict rule."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.metrics.information_loss import ncp

QUASI = Role.QUASI_IDENTIFYING


def ages(values: list[int]) -> Table:
    return Table.from_frame(pd.DataFrame({"age": values}), Schema((Numeric("age", QUASI, 0, 100),)))


def test_numbers_are_cut_at_the_median() -> None:
    release = Mondrian(k=2).anonymize(ages([1, 2, 3, 4, 50, 60, 70, 80]), rng=0)
    assert release.to_frame()["age"].tolist() == ["[1, 2]"] * 2 + ["[3, 4]"] * 2 + ["[50, 60]"] * 2 + ["[70, 80]"] * 2


def test_equal_values_stay_together_unless_relaxed() -> None:
    table = ages([1, 5, 5, 5, 5, 9])
    assert Mondrian(k=3).anonymize(table, rng=0).to_frame()["age"].unique().tolist() == ["[1, 9]"]
    relaxed = Mondrian(k=3, relaxed=True).anonymize(table, rng=0).to_frame()["age"]
    assert sorted(relaxed.unique()) == ["[1, 5]", "[5, 9]"]


def wards(counts: dict[str, int]) -> Table:
    tree = Hierarchy.from_nested({"A": ["a1", "a2"], "B": ["b1", "b2"], "C": ["c1", "c2"]})
    values = [ward for ward, count in counts.items() for _ in range(count)]
    return Table.from_frame(pd.DataFrame({"ward": values}), Schema((Categorical("ward", QUASI, tree),)))


def test_small_children_are_pooled() -> None:
    table = wards({"a1": 5, "b1": 2, "c1": 1})
    pooled = Mondrian(k=3).anonymize(table, rng=0).to_frame()["ward"]
    assert pooled.value_counts().to_dict() == {"a1": 5, "*": 3}
    strict = Mondrian(k=3, strict_children=True).anonymize(table, rng=0).to_frame()["ward"]
    assert strict.unique().tolist() == ["*"]


def test_too_few_in_the_pool_join_the_smallest_child() -> None:
    published = Mondrian(k=3).anonymize(wards({"a1": 6, "b1": 4, "c1": 1}), rng=0).to_frame()["ward"]
    assert published.value_counts().to_dict() == {"a1": 6, "*": 5}


def test_pooling_loses_less_than_the_strict_rule_on_adult() -> None:
    table = load("adult").select_rows(np.arange(5_000))
    pooled, strict = (Mondrian(k=5, strict_children=s).anonymize(table, rng=0) for s in (False, True))
    assert ncp(table, pooled) < ncp(table, strict)


def test_thesis_profile_names_columns_without_a_taxonomy() -> None:
    with pytest.raises(ConfigError, match="None: age"):
        Mondrian(k=2, profile="thesis").anonymize(ages([1, 2, 3, 4]), rng=0)
