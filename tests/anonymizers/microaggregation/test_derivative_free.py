"""The derivative-free search: the heuristics it is made of, and that it never loses against its start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.microaggregation._groups import fill_groups, h_means, k_means, sse
from fedanon.anonymizers.microaggregation._mdav import mdav
from fedanon.anonymizers.microaggregation.derivative_free import (
    DerivativeFree,
    Solution,
    improved,
    search,
    split_large,
    with_count,
)
from fedanon.datasets import load
from fedanon.metrics.information_loss import il
from fedanon.types import FloatArray

GRID = [(name, k, start) for name in ("tarragona", "census") for k in (3, 5, 10) for start in ("mdav", "gsms")]


@pytest.fixture
def points() -> FloatArray:
    return np.random.default_rng(5).standard_normal((120, 3)) ** 3


def cost(points: FloatArray, labels: np.ndarray) -> float:
    return float(sse(points, labels, labels.max() + 1))


def test_h_means_ends_where_no_single_move_helps(points: FloatArray) -> None:
    labels = np.arange(120) % 12
    before = cost(points, labels)
    h_means(points, labels, 12)
    reached = cost(points, labels)
    assert reached < before
    for record in range(120):
        for group in range(12):
            moved = labels.copy()
            moved[record] = group
            if np.bincount(moved, minlength=12).min() > 0:
                assert cost(points, moved) >= reached - 1e-8


def test_k_means_ends_with_every_record_at_its_nearest_mean(points: FloatArray) -> None:
    labels = np.arange(120) % 12
    k_means(points, labels, 12)
    used = np.unique(labels)
    means = np.stack([points[labels == group].mean(axis=0) for group in used])
    distances = np.square(points[:, None] - means).sum(axis=2)
    own = np.take_along_axis(distances, np.searchsorted(used, labels)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(own, distances.min(axis=1), atol=1e-12)


@pytest.mark.parametrize("heuristic", [h_means, k_means])
def test_no_record_leaves_a_group_of_the_least_size(points: FloatArray, heuristic: Callable[..., None]) -> None:
    labels = np.arange(120) % 20
    before = cost(points, labels)
    heuristic(points, labels, 20, 5)
    assert np.bincount(labels, minlength=20).min() >= 5
    assert cost(points, labels) < before


def test_filling_moves_the_cheapest_record_first() -> None:
    points = np.array([0.0, 1.0, 2.0, 6.0, 10.0])[:, None]
    labels = np.array([0, 0, 0, 0, 1])
    fill_groups(points, labels, 2, 2)
    assert labels.tolist() == [0, 0, 0, 1, 1]


def test_filling_reaches_every_size_and_fills_empty_groups(points: FloatArray) -> None:
    labels = np.where(np.arange(120) < 115, 0, 1)
    fill_groups(points, labels, 24, 5)
    assert np.bincount(labels, minlength=24).min() >= 5


@pytest.mark.parametrize("count", [5, 11, 17, 20])
def test_another_number_of_groups(points: FloatArray, count: int) -> None:
    start = mdav(points, 10)
    labels = with_count(points, Solution(start, 12, cost(points, start)), count)
    assert labels.max() + 1 == count
    assert np.bincount(labels).min() > 0


def test_the_search_keeps_sizes_and_never_gets_worse(points: FloatArray) -> None:
    start = mdav(points, 5)
    first = improved(points, start, 5)
    assert first.sse <= cost(points, start)
    for gamma in (1, 3, 10):
        found = search(points, first, 5, gamma)
        assert found.sse <= first.sse
        assert np.bincount(found.labels).min() >= 5
        assert found.sse == pytest.approx(cost(points, found.labels))


def test_no_group_of_2k_is_left_and_splitting_costs_nothing(points: FloatArray) -> None:
    whole = np.where(np.arange(120) < 37, 0, 1 + np.arange(120) % 9)
    split = split_large(points, whole, 5)
    assert np.bincount(split).min() >= 5
    assert np.bincount(split).max() < 10
    assert cost(points, split) <= cost(points, whole)
    assert all(len(set(whole[split == group])) == 1 for group in range(split.max() + 1)), "groups are only divided"


def losses(name: str, k: int, start: str) -> tuple[float, float]:
    """IL of the start, and of the search from it."""
    table = load(name)
    settings = {"dissolve": True} if start == "gsms" else {}
    begun = ANONYMIZERS[start](k=k, **settings).anonymize(table, rng=0)
    return il(table, begun), il(table, DerivativeFree(k=k, start=start).anonymize(table, rng=0))


@pytest.mark.needs_data
def test_one_cell_improves_on_its_start() -> None:
    begun, found = losses("census", 10, "mdav")
    assert found < begun


@pytest.mark.slow
@pytest.mark.needs_data
def test_at_least_as_good_as_the_start_everywhere_and_better_in_half() -> None:
    pairs = [losses(*cell) for cell in GRID]
    assert all(found <= begun + 1e-9 for begun, found in pairs)
    assert sum(found < begun - 1e-9 for begun, found in pairs) >= len(GRID) / 2
