"""Risk of sample uniques by a log-linear model of the keys: how many are unique in the population, and rightly matched.

Skinner & Holmes 1998; sdcMicro's ``modRisk`` with method 'default' and the main effects of all keys. The expected count
of a combination then is N times the product of the shares of its values. Records that lack a key, or whose key is '*',
are left out, as there.
"""

from __future__ import annotations

import numpy as np

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.release.release import Release
from fedanon.sdc.metrics.suda import released_keys
from fedanon.types import FloatArray, IntArray


def expected_counts(keys: IntArray) -> FloatArray:
    r"""Return :math:`\lambda_k = N \prod_j n_{j, x_j} / N` of every record."""
    shares = np.ones(len(keys))
    for column in keys.T:
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        shares *= counts[place] / len(keys)
    return np.asarray(len(keys) * shares)


def unique_risks(keys: IntArray, weights: FloatArray | None) -> tuple[float, float]:
    r"""Return both risks of a sample, per combination that occurs, as ``modRisk`` prints them.

    .. math::
        \frac1K \sum_{f_k = 1} e^{-v_k}, \qquad \frac1K \sum_{f_k = 1} \frac{1 - e^{-v_k}}{v_k},
        \qquad v_k = (1 - \pi_k) \lambda_k, \quad \pi_k = 1 / w_k

    the share of combinations that are sample uniques and also population uniques, and the expected share of right
    matches of sample uniques. Without weights the sample is the population. Codes below 0 are missing; NaN if no record
    has all keys.
    """
    complete = (keys >= 0).all(axis=1)
    if not complete.any():
        return np.nan, np.nan
    keys, weights = keys[complete], None if weights is None else weights[complete]
    groups = Groups.equal_rows(keys)
    alone = groups.sizes[groups.labels] == 1
    included = np.ones(len(keys)) if weights is None else 1 / weights
    v = ((1 - included) * expected_counts(keys))[alone]
    matched = np.where(np.abs(v) > 1e-12, -np.expm1(-v) / np.where(v == 0, 1.0, v), 1.0)
    return float(np.exp(-v).sum() / groups.count), float(matched.sum() / groups.count)


def _risks(table: Table, release: Release) -> tuple[float, float]:
    if not release.classes.count or not release.cells:
        return np.nan, np.nan
    return unique_risks(released_keys(release), None if table.weights is None else table.weights[~release.suppressed])


@metric("log_linear_uniques", title="Population uniques, log-linear", better="lower")
def log_linear_uniques(table: Table, release: Release) -> float:
    """Share of key combinations that are expected to be unique in sample and population (modRisk, risk measure 1)."""
    return _risks(table, release)[0]


@metric("log_linear_matches", title="Right matches, log-linear", better="lower")
def log_linear_matches(table: Table, release: Release) -> float:
    """Expected right matches of sample uniques as a share of the key combinations (modRisk, risk measure 2)."""
    return _risks(table, release)[1]
