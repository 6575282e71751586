"""Moments of the random methods beside those of R's sdcMicro 5.8.1 (R 4.2.2), on one generated table.

Below are the mean and its standard error over 500 runs there: the variances of income, tax and hours, their three
correlations, and the correlation of each with its original. Ours must lie within 4.5 standard errors of the difference.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fedanon.sdc.methods.noise import correlated_noise, independent_noise, mixed_with_noise, outliers
from fedanon.sdc.methods.projections import root
from fedanon.sdc.methods.shuffling import copula_model, in_order_of

RUNS = 150
#: by the call of addNoise or shuffle
EXPECTED = {
    "additive, noise = 30": (
        [767229.0, 1603.84, 37.271, 0.450525, 0.204249, 0.348124, 0.957951, 0.957911, 0.957928],
        [955.289, 2.08986, 0.0480523, 0.000775141, 0.000847919, 0.000867954, 0.000136011, 0.000134874, 0.000140025],
    ),
    "correlated, noise = 20": (
        [845239.0, 1771.29, 40.9499, 0.491859, 0.222776, 0.379484, 0.912561, 0.912821, 0.912342],
        [1599.93, 3.02573, 0.0735602, 0.000965631, 0.00113618, 0.0010804, 0.000279535, 0.000283068, 0.000293672],
    ),
    "correlated2, delta = 0.3": (
        [705044.0, 1472.49, 34.168, 0.446885, 0.2028, 0.346323, 0.954014, 0.95382, 0.953893],
        [943.328, 1.98914, 0.0437112, 0.000821251, 0.000903119, 0.000951565, 0.000149101, 0.000156068, 0.000154172],
    ),
    "outdect, noise = 2000": (
        [910490.0, 1899.29, 43.8096, 0.382773, 0.176256, 0.297782, 0.88231, 0.883533, 0.884052],
        [4918.16, 6.84405, 0.149618, 0.00306738, 0.00319277, 0.00247979, 0.00119344, 0.00117486, 0.00114877],
    ),
    "shuffle, ds, given age": (
        [705512.0, 1473.52, 34.1997, 0.529846, 0.25871, 0.38318, 0.199509, 0.253023, 0.136503],
        [0.0, 0.0, 0.0, 0.00150025, 0.00197035, 0.00180578, 0.00202342, 0.0018659, 0.00204618],
    ),
}


def people() -> tuple[np.ndarray, np.ndarray]:
    """Income, tax and hours of 400 people, and their age, by numpy's frozen generator."""
    draw = np.random.RandomState(20261118)
    mixed = np.array([[1, 0.6, 0.3, 0.5], [0, 0.8, 0.2, 0.3], [0, 0, 0.9, 0.2], [0, 0, 0, 0.8]])
    z = draw.normal(size=(400, 4)) @ mixed
    return np.column_stack([np.exp(z[:, 0] * 0.6 + 7), 200 + 40 * z[:, 1], 38 + 6 * z[:, 2]]), 45 + 12 * z[:, 3]


X, AGE = people()
# noise = 2000 of 'outdect' is 1.96 * 20 / sqrt(400) standard deviations
FAR = outliers(X, np.random.default_rng(0))
MEAN, COVARIANCE = copula_model(X, AGE[:, None])
DRAWN: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "additive, noise = 30": lambda rng: X + independent_noise(X, 0.09, rng),
    "correlated, noise = 20": lambda rng: X + correlated_noise(X, 0.2, rng),
    "correlated2, delta = 0.3": lambda rng: mixed_with_noise(X, 0.3, rng),
    "outdect, noise = 2000": lambda rng: np.where(FAR[:, None], X + independent_noise(X, 1.96**2, rng), X),
    "shuffle, ds, given age": lambda rng: in_order_of(X, MEAN + rng.standard_normal(X.shape) @ root(COVARIANCE), rng),
}


def moments(y: np.ndarray) -> np.ndarray:
    both = np.corrcoef(np.column_stack([X, y]).T)
    among, with_original = both[3:, 3:], both[:3, 3:]
    return np.concatenate([y.var(axis=0, ddof=1), among[np.triu_indices(3, 1)], np.diag(with_original)])


@pytest.mark.parametrize("call", sorted(EXPECTED))
def test_moments(call: str) -> None:
    rng = np.random.default_rng(5)
    found = np.array([moments(DRAWN[call](rng)) for _ in range(RUNS)])
    expected, error = map(np.array, EXPECTED[call])
    own = found.std(axis=0, ddof=1) / np.sqrt(RUNS)
    # six digits of the numbers are printed above
    assert np.all(np.abs(found.mean(axis=0) - expected) < 4.5 * np.hypot(own, error) + 1e-5 * np.abs(expected))


def test_the_same_outliers_are_found() -> None:
    """R's covMcd with alpha = 1/2, or above the 99 % quantile of a column: 30 of 400 records."""
    assert FAR.sum() == 30
