from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers.baselines import Identity
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.metrics import evaluate
from fedanon.sdc.metrics.diversity import closeness, diversity, record_diversity
from tests.metrics.metric_cases import numeric, released

RECORDS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=40)


def test_figure_3_of_the_thesis() -> None:
    """Cancer, heart disease, heart disease: two different values (Morais 2022, figure 3)."""
    found = diversity(np.array([0, 0, 0]), np.array([0, 1, 1]))
    assert found.distinct.tolist() == [2, 2, 2]
    assert found.entropy[0] == pytest.approx(3 / 2 ** (2 / 3))
    assert found.recursive.tolist() == [1, 1, 1]  # 2 < 2 (2 + 1), but not 2 < 2 * 1


@given(RECORDS, st.sampled_from([0.5, 1.0, 2.0, 3.0]))
def test_diversity_is_that_of_the_definition(records: list[tuple[int, int]], c: float) -> None:
    labels, sensitive = np.array(records).T
    found = diversity(labels, sensitive, c)
    for i, (label, _) in enumerate(records):
        counts = sorted(Counter(s for k, s in records if k == label).values(), reverse=True)
        shares = np.array(counts) / sum(counts)
        assert found.distinct[i] == len(counts)
        assert found.entropy[i] == pytest.approx(math.exp(-(shares * np.log(shares)).sum()))
        passed = [l for l in range(1, len(counts) + 1) if counts[0] < c * sum(counts[l - 1 :])]  # noqa: E741
        assert found.recursive[i] == max(passed, default=0)


@given(RECORDS)
def test_closeness_is_the_earth_movers_distance(records: list[tuple[int, int]]) -> None:
    labels, sensitive = np.array(records).T
    sensitive = np.unique(sensitive, return_inverse=True)[1]
    equal, ordered = (closeness(labels, sensitive, ordered=flag) for flag in (False, True))
    values = np.arange(sensitive.max() + 1)
    whole = np.array([(sensitive == v).mean() for v in values])
    for i, label in enumerate(labels):
        share = np.array([(sensitive[labels == label] == v).mean() for v in values])
        assert equal[i] == pytest.approx(np.maximum(share - whole, 0).sum(), abs=1e-12)
        moved = sum(abs(share[: v + 1].sum() - whole[: v + 1].sum()) for v in values)
        assert ordered[i] == pytest.approx(moved / max(len(values) - 1, 1), abs=1e-12)


def test_closeness_example_of_its_authors() -> None:
    """Salaries 3..11 in thousands: {3, 4, 5} is 0.375 from all nine, {6, 8, 11} 0.167 (Li et al. 2007)."""
    salaries = np.arange(9)
    assert closeness(np.array([0, 0, 0, 1, 1, 1, 1, 1, 1]), salaries, ordered=True)[0] == pytest.approx(0.375)
    some = np.array([1, 1, 1, 0, 1, 0, 1, 1, 0])
    assert closeness(some, salaries, ordered=True)[3] == pytest.approx(1 / 6)


def patients() -> Table:
    frame = pd.DataFrame({"age": [20, 20, 30, 30], "illness": ["a", "a", "a", "b"], "cost": [1, 2, 3, None]})
    illness = Categorical("illness", Role.SENSITIVE, Hierarchy.flat(["a", "b"]))
    return Table.from_frame(frame, Schema((numeric("age", 0, 99), illness, Numeric("cost", Role.SENSITIVE, 0, 9))))


def test_metrics_take_the_least_diverse_column() -> None:
    table = patients()
    found = evaluate(table, released(table, [0, 0, 1, 1]), ["l_distinct_min", "l_distinct_mean", "t_closeness"])
    # a missing cost is a value, so that each is unique; {1, 2} is (1/4 + 1/2 + 1/4) / 3 from {1, 2, 3, missing}
    assert found == {"l_distinct_min": 1, "l_distinct_mean": 1.5, "t_closeness": pytest.approx(1 / 3)}


def test_nothing_sensitive() -> None:
    table = patients()
    plain = replace(table, schema=replace(table.schema, attributes=table.schema.attributes[:1]))
    release = replace(released(table, [0, 0, 1, 1]), schema=plain.schema)
    assert all(math.isnan(v) for v in evaluate(plain, release, ["l_entropy_min", "t_closeness"]).values())


def test_missing_is_a_value_but_none_that_recursion_counts() -> None:
    """As sdcMicro 5.8.1: a class of 1, 1, 2 and two missing has three values; r is (2, 1), and 2 < 2 (1) is false."""
    found = diversity(np.zeros(5, dtype=int), np.array([0, 0, 1, 2, 2]), missing=2)
    assert found.distinct.tolist() == [3] * 5
    assert found.recursive.tolist() == [1] * 5
    assert diversity(np.zeros(5, dtype=int), np.array([0, 0, 1, 2, 2])).recursive.tolist() == [2] * 5


def test_a_record_without_a_key_is_alone_in_sdcmicro() -> None:
    """ldiversity of sdcMicro 5.8.1; its successor takes a missing key for a value, as we do."""
    frame = pd.DataFrame({"age": [20, 20, None, None], "illness": ["a", "b", "a", "b"]})
    illness = Categorical("illness", Role.SENSITIVE, Hierarchy.flat(["a", "b"]))
    table = Table.from_frame(frame, Schema((numeric("age", 0, 99), illness)), missing="category")
    release = Identity().anonymize(table, rng=0)
    assert record_diversity(release)["illness"].distinct.tolist() == [2, 2, 2, 2]
    assert record_diversity(release, as_sdcmicro=True)["illness"].distinct.tolist() == [2, 2, 1, 1]
