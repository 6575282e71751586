"""Areas of k records, and smoothing over a neighborhood."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.errors import ConfigError
from fedanon.sdc.methods.geography import areas, smoothed
from tests.sdc.methods.drawn import original, published, table_of

PLACES = np.random.default_rng(2).random((337, 2)) * [10.0, 4.0]


@pytest.mark.parametrize("k", [2, 7, 50])
def test_areas_hold_k_to_2k_records(k: int) -> None:
    found = areas(PLACES, k)
    assert sorted(np.concatenate(found)) == list(range(len(PLACES)))
    assert all(k <= len(rows) < 2 * k for rows in found)


def test_places_become_centers_that_k_records_share() -> None:
    table = table_of({"lon": PLACES[:, 0], "lat": PLACES[:, 1]})
    y = published(table, "area_centers", k=9)
    _, counts = np.unique(y, axis=0, return_counts=True)
    assert counts.min() >= 9
    np.testing.assert_allclose(y.mean(axis=0), original(table).mean(axis=0))
    assert np.abs(y - original(table)).max() < 4, "a center is near"


def test_smoothing_by_hand() -> None:
    """Two records at distance 1 weigh each other by exp(-1/2); a third far away counts for nothing."""
    y = smoothed(np.array([[0.0], [10.0], [99.0]]), np.array([[0.0, 0.0], [1.0, 0.0], [50.0, 50.0]]), 1.0)
    weight = np.exp(-0.5)
    np.testing.assert_allclose(y[:, 0], [10 * weight / (1 + weight), 10 / (1 + weight), 99.0])


def test_coordinates_stay_and_values_come_together() -> None:
    income = 5 * PLACES[:, 0] + np.random.default_rng(3).normal(0, 10, len(PLACES))
    table = table_of({"lon": PLACES[:, 0], "lat": PLACES[:, 1], "income": income})
    y = published(table, "spatial_smoothing", columns="income", given="lon,lat", bandwidth=1.0)
    np.testing.assert_array_equal(y[:, :2], PLACES)
    assert y[:, 2].std() < income.std()
    assert np.corrcoef(y[:, 2], PLACES[:, 0])[0, 1] > 0.9
    with pytest.raises(ConfigError, match="'bandwidth' parameter"):
        published(table, "spatial_smoothing", bandwidth=0)
