"""Neighbors, orders and tours against plain computations."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.anonymizers.microaggregation.orders import closed_tours, nearest_point_next, neighbor_lists
from fedanon.types import FloatArray


def distances(points: FloatArray) -> FloatArray:
    return np.sqrt(np.square(points[:, None] - points).sum(axis=2))


def length(points: FloatArray, tour: np.ndarray) -> float:
    return float(np.sqrt(np.square(points[tour] - points[np.roll(tour, -1)]).sum(axis=1)).sum())


@pytest.fixture(params=["spread", "tied", "flat"])
def points(request: pytest.FixtureRequest) -> FloatArray:
    rng = np.random.default_rng(7)
    if request.param == "tied":
        return rng.integers(0, 4, (90, 2)).astype(float)
    return rng.standard_normal((90, 3)) ** 3 * (1 if request.param == "spread" else [1, 0, 0])


def test_neighbors_are_the_nearest_with_ties_by_number(points: FloatArray) -> None:
    squared = np.square(points[:, None] - points).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(neighbor_lists(points, 8), expected)


def test_nearest_point_next_visits_the_nearest_left(points: FloatArray) -> None:
    order = nearest_point_next(points, 5)
    assert order[0] == 5
    assert sorted(order) == list(range(90))
    away = distances(points)
    for place in range(89):
        left = order[place + 1 :]
        assert away[order[place], order[place + 1]] == pytest.approx(away[order[place], left].min())


def test_two_opt_shortens_the_tour(points: FloatArray) -> None:
    (tour,) = closed_tours(points, [5])
    assert sorted(tour) == list(range(90))
    assert length(points, tour) <= length(points, nearest_point_next(points, 5)) + 1e-9


def test_two_opt_undoes_a_crossing() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    for start in range(4):
        (tour,) = closed_tours(corners, [start])
        assert length(corners, tour) == pytest.approx(4.0)
