"""DP microaggregation: how far one record moves the means, what the noise is, and what an observer can tell."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from fedanon.anonymizers.microaggregation.dp_microaggregation import (
    STEPS,
    DpMicroaggregation,
    Order,
    group_shares,
    insensitive_groups,
    range_steps,
    total_order,
)
from fedanon.anonymizers.microaggregation.mdav import Mdav
from fedanon.data.groups import Groups
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.privacy.models.differential_privacy import DifferentialPrivacy, Sensitivity
from fedanon.release.release import Release
from fedanon.types import IndexArray

QUASI = Role.QUASI_IDENTIFYING
ORDERS: list[Order] = ["curve", "corner"]
#: the test of secure noise fails by chance once in a million runs
CHANCE = 1e-6


def table_of(values: np.ndarray) -> Table:
    names = [f"q{i}" for i in range(values.shape[1])]
    schema = Schema(tuple(Numeric(name, QUASI, 0.0, 60.0) for name in names))
    return Table.from_frame(pd.DataFrame(values, columns=names), schema)


def shares(steps: IndexArray, k: int, order: Order) -> tuple[np.ndarray, Groups]:
    groups = Groups.from_labels(insensitive_groups(steps, k, order))
    return group_shares(steps, groups), groups


@st.composite
def neighbors(draw: st.DrawFn) -> tuple[IndexArray, IndexArray, int]:
    """Two tables that differ in one record, and k; few values, so that many are equal, and the ends of the range."""
    n, m = draw(st.integers(2, 30)), draw(st.integers(1, 3))
    values = st.sampled_from([0, 1, 2**16, 2**31, 2**31 + 1, STEPS - 2, STEPS - 1]) | st.integers(0, STEPS - 1)
    steps = draw(arrays(np.int64, (n, m), elements=values))
    other = steps.copy()
    other[draw(st.integers(0, n - 1))] = draw(arrays(np.int64, m, elements=values))
    return steps, other, draw(st.integers(2, 8))


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(pair=neighbors())
def test_one_record_moves_the_means_by_no_more_than_is_claimed(
    order: Order, pair: tuple[IndexArray, IndexArray, int]
) -> None:
    first, second, k = pair
    (before, groups), (after, others) = shares(first, k, order), shares(second, k, order)
    np.testing.assert_array_equal(groups.sizes, others.sizes)  # sizes follow from n and k
    change = np.abs(after - before)
    assert (change <= 1 / groups.sizes[:, None]).all()
    claimed = Sensitivity.from_groups(groups, first.shape[1])
    assert change.sum() <= claimed.l1
    assert np.sqrt(np.square(change).sum()) <= claimed.l2


def test_mdav_moves_further_than_insensitive_groups() -> None:
    """Why the groups of MDAV cannot be used: one record rearranges groups in which it never was."""
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(5):
        values = rng.random((60, 2)) * 60
        other = values.copy()
        other[0] = rng.choice([0.0, 60.0], 2)
        means = [Mdav(k=10).anonymize(table_of(v), rng=0).cells for v in (values, other)]
        sets = [np.column_stack([cells[name].values for name in ("q0", "q1")]) / 60 for cells in means]  # type: ignore[union-attr]
        nearest = np.abs(sets[0][:, None] - sets[1][None]).max(axis=2).min(axis=1)
        worst = max(worst, float(nearest.max()))
    assert worst > 1 / 10


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_is_one_of_values_alone(order: Order) -> None:
    rng = np.random.default_rng(1)
    steps = rng.integers(0, 5, (200, 3)) * (STEPS // 5)
    shuffled = rng.permutation(200)
    np.testing.assert_array_equal(
        steps[total_order(steps, order)], steps[shuffled][total_order(steps[shuffled], order)]
    )


def test_the_curve_visits_quarters_in_turn() -> None:
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    steps = (np.repeat(corners, 4, axis=0) * 2 + np.tile(corners, (4, 1))) * (STEPS // 4)
    np.testing.assert_array_equal(total_order(steps, "curve"), np.arange(16))


def test_values_are_steps_of_the_declared_range() -> None:
    np.testing.assert_array_equal(
        range_steps(table_of(np.array([[0.0], [30.0], [60.0]])))[:, 0], [0, STEPS // 2, STEPS - 1]
    )


# ---- noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delta", "k"), [(0.0, 2), (1e-5, 2), (0.0, 1)])
def test_the_noise_of_a_release_is_what_its_claim_says(delta: float, k: int) -> None:
    table = table_of(np.full((2_000, 1), 30.0))  # all means are in the middle of the range: nothing is clamped
    release = DpMicroaggregation(k=k, epsilon=1e5, delta=delta).anonymize(table, rng=0)
    claim = release.claim
    assert isinstance(claim, DifferentialPrivacy)
    noise = (release.cells["q0"].midpoints() - 30.0) / 60.0  # type: ignore[union-attr]
    law = stats.norm if delta else stats.laplace
    assert len(noise) == 2_000 // k
    assert claim.scale < 0.05
    assert stats.kstest(noise, law(scale=claim.scale).cdf).pvalue > CHANCE
    assert stats.kstest(noise, law(scale=2 * claim.scale).cdf).pvalue < CHANCE


def test_an_observer_learns_epsilon_and_no_more() -> None:
    """Frequencies of outputs on the two tables that differ most: a bound of the loss from below, and its exact value.

    With k = n = 2, and the record 0 beside 0 or beside 60, the probability of a clamped 0 is 1/2 or e^-epsilon / 2.
    """
    epsilon, runs = 1.0, 1_000
    method = DpMicroaggregation(k=2, epsilon=epsilon, randomness="seeded")
    tables = [table_of(np.array([[0.0], [0.0]])), table_of(np.array([[0.0], [60.0]]))]
    counts = [sum(_drafted(method, t, i) == 0.0 for i in range(runs)) for t in tables]
    often, rarely = (stats.binomtest(count, runs).proportion_ci(1 - 1e-4) for count in counts)
    assert np.log(often.low / rarely.high) <= epsilon
    assert np.log(often.high / rarely.low) >= epsilon
    # the same test finds a mechanism with half the noise it should have
    weak = DpMicroaggregation(k=2, epsilon=2 * epsilon, randomness="seeded")
    counts = [sum(_drafted(weak, t, i) == 0.0 for i in range(runs)) for t in tables]
    often, rarely = (stats.binomtest(count, runs).proportion_ci(1 - 1e-4) for count in counts)
    assert np.log(often.low / rarely.high) > epsilon


def _drafted(method: DpMicroaggregation, table: Table, seed: int) -> float:
    """What a release would publish, without the hashes of its table."""
    return float(method.plan(table, np.random.default_rng(seed)).cells["q0"].midpoints()[0])  # type: ignore[union-attr]


def _value(release: Release) -> float:
    return float(release.cells["q0"].midpoints()[0])  # type: ignore[union-attr]


# ---- releases -----------------------------------------------------------------------------------


def test_a_release_is_published_in_the_order_of_its_groups() -> None:
    table = table_of(np.random.default_rng(2).random((30, 2)) * 60)
    release = DpMicroaggregation(k=10, epsilon=5.0).anonymize(table, rng=0)
    written = release.to_frame()
    assert [len(rows) for _, rows in written.groupby(["q0", "q1"], sort=False)] == [10, 10, 10]
    assert (release.groups.labels != np.sort(release.groups.labels)).any()  # the table was not in that order
    np.testing.assert_array_equal(written.index, table.frame.index)


def test_a_secure_release_differs_every_time() -> None:
    table = table_of(np.full((20, 1), 30.0))
    method = DpMicroaggregation(k=10, epsilon=10.0)
    assert _value(method.anonymize(table, rng=1)) != _value(method.anonymize(table, rng=1))


def test_more_budget_and_normal_noise_lose_less() -> None:
    table = table_of(np.random.default_rng(4).random((400, 3)) * 60)

    def scale(**more: float) -> float:
        claim = DpMicroaggregation(**({"k": 40, "epsilon": 1.0} | more)).anonymize(table, rng=0).claim  # type: ignore[arg-type]
        assert isinstance(claim, DifferentialPrivacy)
        return claim.scale

    assert scale() == pytest.approx(3 * 10 / 40, rel=1e-6)  # m G / (k epsilon)
    assert scale(epsilon=10.0) == pytest.approx(scale() / 10, rel=1e-6)
    assert scale(k=20) == pytest.approx(4 * scale(), rel=1e-6)
    assert scale(k=1) == pytest.approx(3.0, rel=1e-6)
    assert scale(delta=1e-5) < scale(epsilon=0.5)


def test_categorical_columns_and_few_people_are_refused() -> None:
    from fedanon.data.hierarchy import Hierarchy

    tree = Hierarchy.from_paths([("a", "*"), ("b", "*")])
    schema = Schema((Categorical("ward", QUASI, tree),))
    table = Table.from_frame(pd.DataFrame({"ward": ["a", "b"]}), schema)
    with pytest.raises(ConfigError, match=r"numeric quasi-identifiers only\. Categorical: ward"):
        DpMicroaggregation(k=2).anonymize(table, rng=0)
    with pytest.raises(InfeasibleError, match="fewer than k=3"):
        DpMicroaggregation(k=3).anonymize(table_of(np.zeros((2, 1))), rng=0)
