"""The shortest path against every partition there is, on small inputs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.anonymizers.microaggregation._groups import sse
from fedanon.anonymizers.microaggregation._orders import optimal_groups
from fedanon.anonymizers.microaggregation.orders import UnivariateOptimal, cut_order
from fedanon.types import FloatArray


def partitions(rows: list[int], k: int) -> Iterator[list[list[int]]]:
    """Every partition of ``rows`` into groups of at least k."""
    if not rows:
        yield []
        return
    first, rest = rows[0], rows[1:]
    for chosen in range(1 << len(rest)):
        group = [first] + [row for i, row in enumerate(rest) if chosen >> i & 1]
        left = [row for i, row in enumerate(rest) if not chosen >> i & 1]
        if len(group) >= k and len(left) != 0 and len(left) < k:
            continue
        if len(group) >= k:
            yield from ([group, *others] for others in partitions(left, k))


def spread(points: FloatArray, groups: list[list[int]]) -> float:
    return sum(float(np.square(points[group] - points[group].mean(axis=0)).sum()) for group in groups)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    values=st.lists(st.integers(-50, 50), min_size=2, max_size=9),
    k=st.integers(2, 4),
)
def test_one_column_is_solved_exactly(values: list[int], k: int) -> None:
    if len(values) < k:
        return
    points = np.array(values, dtype=np.float64)[:, None]
    labels = UnivariateOptimal(k=k).gather(points, np.random.default_rng(0))
    least = min(spread(points, groups) for groups in partitions(list(range(len(values))), k))
    assert np.bincount(labels).min() >= k
    assert sse(points, labels, labels.max() + 1) == pytest.approx(least, abs=1e-9)


def test_sizes_lie_between_k_and_2k_minus_1() -> None:
    points = np.random.default_rng(1).standard_normal((500, 3))
    sizes = np.bincount(cut_order(points, np.arange(500), 7))
    assert sizes.min() >= 7
    assert sizes.max() <= 13


@pytest.mark.parametrize("n", [4, 7, 9, 14])
def test_a_closed_order_is_cut_as_well_as_from_any_of_its_records(n: int) -> None:
    points = np.random.default_rng(n).standard_normal((n, 2))
    order, k = np.random.default_rng(n + 1).permutation(n), 3
    labels, cost = optimal_groups(points, order, k, True)
    every = [optimal_groups(points, np.roll(order, -first), k, False)[1] for first in range(n)]
    assert cost == pytest.approx(min(every), abs=1e-12)
    assert sse(points, labels, labels.max() + 1) == pytest.approx(cost, abs=1e-12)
    assert np.bincount(labels).min() >= k


def test_large_values_do_not_cancel() -> None:
    """Differences of cumulated squares would lose these digits."""
    points = np.array([0.0, 1.0, 10.0, 11.0])[:, None] + 1e8
    _, cost = optimal_groups(points, np.arange(4), 2, False)
    assert cost == pytest.approx(1.0, abs=1e-6)
