"""Regression coefficients before and after."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.numeric_pair import correlation, deviations, numeric_pair

#: relative size below which a singular value or a standardised coefficient is rounding
_ROUNDING = 1e-10


def coefficients(points: FloatArray, response: int) -> FloatArray:
    """Intercept and slopes of the least-squares regression of one column on the others.

    Where regressors depend on each other, the solution of least norm in standardised columns is taken.
    """
    others = np.delete(np.arange(points.shape[1]), response)
    spread, means = deviations(points), points.mean(axis=0)
    matrix = correlation(points)
    beta = np.linalg.pinv(matrix[np.ix_(others, others)], rcond=_ROUNDING, hermitian=True) @ matrix[others, response]
    beta[np.abs(beta) < _ROUNDING] = 0.0
    slopes = np.where(spread[others] > 0, beta * spread[response] / np.where(spread[others] > 0, spread[others], 1), 0)
    return np.concatenate([[means[response] - slopes @ means[others]], slopes])


def coefficient_difference(original: FloatArray, published: FloatArray, response: int) -> float:
    r"""Sum of the relative differences of the coefficients of one regression.

    .. math:: lm = \sum_l |(\beta^x_l - \beta^y_l) / \beta^x_l|

    (Morais 2022, eq. 5.13.) Coefficients that are 0 in the original are left out; NaN if all are.
    """
    before, after = coefficients(original, response), coefficients(published, response)
    used = before != 0
    return float(np.abs((before - after)[used] / before[used]).sum()) if used.any() else np.nan


@metric("regression_difference", title="Regression coefficients", better="lower")
def regression_difference(table: Table, release: Release) -> float:
    """Sum of the relative differences of the coefficients of a regression, averaged over its possible responses.

    Every numeric quasi-identifier in turn is regressed on the others; see :func:`coefficient_difference`.
    """
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    varying = np.flatnonzero(deviations(pair.original) > 0)
    return _mean_over_responses(pair.original[:, varying], pair.published[:, varying]) if len(varying) > 1 else np.nan


def _mean_over_responses(original: FloatArray, published: FloatArray) -> float:
    found: NDArray[np.float64] = np.array(
        [coefficient_difference(original, published, response) for response in range(original.shape[1])]
    )
    found = found[~np.isnan(found)]
    return float(found.mean()) if found.size else np.nan
