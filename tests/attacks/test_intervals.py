"""Intervals of rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.attacks.base import clustered_interval, interval_by_cluster, wilson_interval


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),  # Brown, Cai & DasGupta (2001): z^2 / (n + z^2)
        (8, 10, 0.4902, 0.9433),  # R: prop.test(8, 10, correct = FALSE)
        (81, 263, 0.2553, 0.3662),  # Newcombe (1998), table I, method 3
        (15, 148, 0.0624, 0.1605),  # the same
    ],
)
def test_wilson_gives_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_without_tries_nothing_is_known() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert clustered_interval(np.array([]), np.array([])) == (0.0, 1.0)


def test_clusters_that_succeed_as_one_count_once() -> None:
    hits = np.repeat([0.0, 1.0], [30, 10])
    alone = clustered_interval(hits, np.ones(40))
    together = clustered_interval(25 * hits, np.full(40, 25))
    assert together == pytest.approx(alone)
    assert together == pytest.approx(wilson_interval(0.25 * 39, 39))


def test_clusters_never_make_an_interval_narrower_than_single_tries() -> None:
    even = clustered_interval(np.full(50, 2.0), np.full(50, 4))
    assert even == pytest.approx(wilson_interval(100, 200))


def test_no_success_is_as_sure_as_there_are_clusters() -> None:
    assert clustered_interval(np.zeros(12), np.full(12, 100)) == pytest.approx(wilson_interval(0, 12))


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6)), min_size=1, max_size=40))
def test_the_interval_holds_the_rate(tries: list[tuple[float, int]]) -> None:
    hits = np.array([hit for hit, _ in tries])
    labels = np.array([label for _, label in tries])
    low, high = interval_by_cluster(hits, labels)
    assert 0 <= low <= high <= 1
    assert low - 1e-9 <= hits.mean() <= high + 1e-9
