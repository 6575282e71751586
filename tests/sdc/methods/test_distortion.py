"""Distortion: the right distribution is found, ranks are kept, and what fits nothing is an error."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.errors import InfeasibleError
from fedanon.sdc.methods.rank_methods import best_fit
from tests.sdc.methods.drawn import original, published, table_of

RNG = np.random.default_rng(0)
DRAWN = {
    "norm": RNG.normal(-5, 2, 3_000),
    "uniform": RNG.uniform(-1, 7, 3_000),
    "laplace": RNG.laplace(0, 3, 3_000),
    "logistic": RNG.logistic(1, 4, 3_000),
    "lognorm": RNG.lognormal(1, 0.8, 3_000),
    "gamma": RNG.gamma(3, 2, 3_000),
    "expon": RNG.exponential(3, 3_000),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_distribution_is_recognized(name: str) -> None:
    fit = best_fit(DRAWN[name])
    # an exponential is also a gamma
    assert fit.name == name or {fit.name, name} == {"expon", "gamma"}
    assert fit.p_value > 0.05


def test_ranks_are_kept_and_the_distribution_is_the_fitted_one() -> None:
    table = table_of({"a": DRAWN["norm"], "b": DRAWN["gamma"]})
    x, y = original(table), published(table, "distortion")
    np.testing.assert_array_equal(np.argsort(x, axis=0), np.argsort(y, axis=0))
    assert not np.isin(y, x).any()
    np.testing.assert_allclose(y.mean(axis=0), x.mean(axis=0), atol=5 * x.std(axis=0).max() / np.sqrt(3_000))


def test_what_fits_nothing_is_refused_unless_the_nearest_will_do() -> None:
    two_heaps = np.concatenate([RNG.normal(0, 1, 500), RNG.normal(100, 1, 500)])
    table = table_of({"a": two_heaps})
    with pytest.raises(
        InfeasibleError, match=r"No distribution fits the column 'a': the nearest is '\w+' with a p-val"
    ):
        published(table, "distortion")
    y = published(table, "distortion", significance=0.0)[:, 0]
    np.testing.assert_array_equal(np.argsort(two_heaps), np.argsort(y))
    with pytest.raises(InfeasibleError, match=r"'distortion' takes no constant columns: a\."):
        published(table_of({"a": [3, 3, 3]}), "distortion")
