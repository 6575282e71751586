"""The annealer's kernel: what must hold after any number of trials, on any table."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.anonymizers.anneal._kernel import anneal, settle, uniform
from fedanon.anonymizers.anneal.problem import Problem, make_problem, split_large
from fedanon.data.spans import points, span_table
from fedanon.data.table import Table
from fedanon.kernels.spans import extent_loss
from tests.anonymizers.tables import tables


def walk(problem: Problem, seed: int, heat: float, structural: float, steps: int = 3000) -> tuple[float, float, object]:
    """Cost before, cost as the kernel kept count of it, and the classes after some trials."""
    classes = problem.classes()
    before = settle(problem.costs, classes, problem.start)
    state = np.array([seed], dtype=np.uint64)
    change = anneal(problem.costs, classes, problem.near, problem.k, steps, heat, structural, state)
    return before, before + change, classes


@pytest.mark.parametrize("objective", ["ncp", "sse"])
@pytest.mark.parametrize("heat", [0.0, 0.3, 30.0])
def test_invariants(objective: Literal["ncp", "sse"], heat: float) -> None:
    @settings(max_examples=60, derandomize=True)
    @given(
        table=tables(numeric_only=objective == "sse", at_least=12),
        k=st.integers(2, 6),
        seed=st.integers(0, 9),
        structural=st.sampled_from([0.0, 0.5, 1.0]),
    )
    def holds(table: Table, k: int, seed: int, structural: float) -> None:
        problem = make_problem(table, objective, k, None, np.random.default_rng(seed))
        before, after, classes = walk(problem, seed, heat, structural)
        check_membership(problem, classes)
        kept, labels = classes.cost.copy(), classes.label.copy()  # type: ignore[attr-defined]
        assert after == pytest.approx(settle(problem.costs, classes, labels), abs=1e-9)
        np.testing.assert_allclose(kept, classes.cost, atol=1e-9)  # type: ignore[attr-defined]
        if heat == 0.0:
            assert after <= before + 1e-9

    holds()


def check_membership(problem: Problem, classes: object) -> None:
    """Every record stands where its label and place say, and every class holds k to 2k - 1."""
    label, place, member, size, _, free, _ = classes  # type: ignore[misc]
    np.testing.assert_array_equal(member[label, place], np.arange(problem.n))
    np.testing.assert_array_equal(np.bincount(label, minlength=len(size)), size)
    assert size[size > 0].min() >= problem.k
    assert size.max() <= 2 * problem.k - 1
    assert sorted(free[: free[-1]]) == np.flatnonzero(size == 0).tolist()


@given(tables(at_least=4), st.integers(2, 4))
def test_cost_is_size_times_loss_of_the_cell(table: Table, k: int) -> None:
    problem = make_problem(table, "ncp", k, None, np.random.default_rng(0))
    classes = problem.classes()
    settle(problem.costs, classes, problem.start)
    rows, spans = points(table)[table.distinct.order], span_table(table.columns)
    for group in range(problem.start.max() + 1):
        cell = rows[problem.start == group]
        expected = len(cell) * extent_loss(spans, cell.min(axis=0), cell.max(axis=0))
        assert classes.cost[group] == pytest.approx(expected)


@given(tables(numeric_only=True, at_least=4), st.integers(2, 4))
def test_cost_is_the_squared_distance_to_the_mean(table: Table, k: int) -> None:
    problem = make_problem(table, "sse", k, None, np.random.default_rng(0))
    classes = problem.classes()
    settle(problem.costs, classes, problem.start)
    for group in range(problem.start.max() + 1):
        rows = problem.costs.points[problem.start == group]
        assert classes.cost[group] == pytest.approx(np.square(rows - rows.mean(axis=0)).sum())


@given(st.lists(st.integers(0, 3), min_size=12, max_size=60), st.integers(2, 4))
def test_large_classes_are_split_evenly(labels: list[int], k: int) -> None:
    before = np.array(labels)
    after = split_large(before, k)
    for group in np.unique(before):
        sizes = np.unique(after[before == group], return_counts=True)[1]
        assert sizes.max() <= max(2 * k - 1, 0)
        assert sizes.min() >= min(k, (before == group).sum())
    for part in np.unique(after):
        assert len(np.unique(before[after == part])) == 1


def test_random_numbers_are_splitmix64() -> None:
    """The first outputs for the seed 1234567, from the reference implementation."""
    state = np.array([1234567], dtype=np.uint64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [uniform(state) for _ in expected] == [(value >> 11) * 2.0**-53 for value in expected]


@given(tables(at_least=4), st.integers(2, 4))
def test_no_cost_is_read_beyond_the_spans(table: Table, k: int) -> None:
    """What lies in memory behind the spans is arbitrary, and not a number here."""
    problem = make_problem(table, "ncp", k, None, np.random.default_rng(0))
    spans = problem.costs.spans
    memory = np.full(len(spans.maxima) + 8, np.nan)
    memory[: len(spans.maxima)] = spans.maxima
    costs = problem.costs._replace(spans=spans._replace(maxima=memory[: len(spans.maxima)]))
    assert np.isfinite(settle(costs, problem.classes(), problem.start))
