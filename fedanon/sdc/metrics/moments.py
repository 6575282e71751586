"""Loss of numeric columns: deviations of values and moments, eigenvalues, inequality and regression coefficients.

Covariances are compared on and above the diagonal, correlations above it, each pair of columns once (Domingo-Ferrer &
Torra 2001). Morais 2022 leaves open which cells of a matrix count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fedanon.data.robust import mcd
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.release.release import Release
from fedanon.sdc.metrics.numeric_pair import (
    correlation,
    covariance,
    deviations,
    numeric_pair,
    pairwise_correlation,
    standardized,
)
from fedanon.types import FloatArray


def mean_squared_error(original: FloatArray, published: FloatArray) -> float:
    r"""Mean of :math:`(x - y)^2` over all cells that are known (Morais 2022, eq. 5.8)."""
    return _mean(np.square(original - published))


def mean_absolute_error(original: FloatArray, published: FloatArray) -> float:
    r"""Mean of :math:`|x - y|` over all cells that are known (Morais 2022, eq. 5.9)."""
    return _mean(np.abs(original - published))


def mean_variation(original: FloatArray, published: FloatArray) -> float:
    r"""Mean of :math:`|x - y| / |x|` over all cells (Morais 2022, eq. 5.10, whose denominator is missing in print).

    Where x is 0, y is the denominator; where both are, the cell is skipped (Morais 2022, below eq. 5.11).
    """
    reference = np.abs(np.where(original == 0, published, original))
    used = reference > 0
    return _mean(np.abs(original - published)[used] / reference[used])


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else np.nan


class _Compared(NamedTuple):
    """What is compared: the suffix of the metric, its description, and how to get it from a matrix of records."""

    suffix: str
    description: str
    cells: Callable[[FloatArray], FloatArray]


def _covariances(points: FloatArray) -> FloatArray:
    return covariance(points)[np.triu_indices(points.shape[1])]


def _correlations(points: FloatArray) -> FloatArray:
    return correlation(points)[np.triu_indices(points.shape[1], 1)]


_COMPARED = (
    _Compared("", "numeric quasi-identifiers", lambda points: points),
    _Compared("_covariance", "covariances of the numeric quasi-identifiers", _covariances),
    _Compared("_correlation", "correlations of the numeric quasi-identifiers", _correlations),
)
_DEVIATIONS = {
    "mse": ("Mean squared error", "5.8", mean_squared_error),
    "mae": ("Mean absolute error", "5.9", mean_absolute_error),
    "mean_variation": ("Mean relative variation", "5.10", mean_variation),
}


def _register(name: str, compared: _Compared) -> None:
    title, equation, function = _DEVIATIONS[name]

    def deviation(table: Table, release: Release) -> float:
        # moments take complete records, deviations all that is known
        pair = numeric_pair(table, release, complete=bool(compared.suffix))
        return np.nan if pair is None else function(compared.cells(pair.original), compared.cells(pair.published))

    deviation.__doc__ = f"{title} of the {compared.description} (Morais 2022, eq. {equation})."
    what = compared.suffix.removeprefix("_")
    metric(name + compared.suffix, title=f"{title}, {what}" if what else title, better="lower")(deviation)


for _name in _DEVIATIONS:
    for _part in _COMPARED:
        _register(_name, _part)


@metric("il1", title="IL1 (%)", better="lower")
def il1(table: Table, release: Release) -> float:
    r"""Mean relative deviation of the numeric quasi-identifiers in per cent.

    .. math:: IL1 = \frac{100}{NP} \sum_{ip} \frac{|x_{ip} - y_{ip}|}{|x_{ip}|}

    (Morais 2022, eq. 5.11, with the rules for zeros of :func:`mean_variation`.) IL1s, in standard deviations, is
    :func:`fedanon.metrics.information_loss.il2`.
    """
    pair = numeric_pair(table, release, complete=False)
    return np.nan if pair is None else 100 * mean_variation(pair.original, pair.published)


@metric("il1_sdcmicro", title="IL1, as in sdcMicro", better="lower")
def il1_sdcmicro(table: Table, release: Release) -> float:
    r"""Sum of :math:`100 |x - y| / |x|` over the numeric cells with :math:`x \ne 0` (sdcMicro's dUtility, IL1).

    A sum, so that tables of different size do not compare; ``il1`` is a mean.
    """
    pair = numeric_pair(table, release, complete=False)
    if pair is None:
        return np.nan
    used = ~np.isnan(pair.original) & (pair.original != 0)
    return float(100 * (np.abs(pair.original - pair.published)[used] / np.abs(pair.original[used])).sum())


@metric("il1s_sdcmicro", title="IL1s, as in sdcMicro", better="lower")
def il1s_sdcmicro(table: Table, release: Release) -> float:
    r"""Sum of :math:`|x - y| / (\sqrt2\, S_p)` over the numeric cells (sdcMicro's dUtility, IL1s).

    ``il2`` is its mean.
    """
    pair = numeric_pair(table, release, complete=False)
    if pair is None:
        return np.nan
    spread = deviations(pair.original)
    varying = spread > 0
    return float(np.nansum(np.abs(pair.original - pair.published)[:, varying] / (np.sqrt(2) * spread[varying])))


# ---- eigenvalues of the covariance or correlation matrix -----------------------------------------

#: eigenvalues below this many roundings of the largest count as zero: their ratio would be noise
_ROUNDINGS = 16


def eigenvalue_difference(original: FloatArray, published: FloatArray) -> float:
    r"""Sum of the relative differences of the sorted eigenvalues of two symmetric matrices.

    .. math:: \sum_p |\lambda_p - \lambda'_p| / \lambda_p

    over the eigenvalues of the original that are not zero. sdcMicro divides by those as well: if columns depend on each
    other, its result contains a ratio of rounding errors, which may even be negative.
    """
    before, after = np.linalg.eigvalsh(original)[::-1], np.linalg.eigvalsh(published)[::-1]
    used = before > before[0] * len(before) * _ROUNDINGS * np.finfo(np.float64).eps
    return float((np.abs(before - after)[used] / before[used]).sum()) if used.any() else np.nan


@metric("eigenvalues_correlation", title="Eigenvalue difference, correlation", better="lower")
def eigenvalues_correlation(table: Table, release: Release) -> float:
    """Sum of the relative differences of the eigenvalues of the correlation matrices, as in sdcMicro.

    Each covariance of standardized columns is taken over the records that have both.
    """
    pair = numeric_pair(table, release, complete=False)
    if pair is None:
        return np.nan
    return eigenvalue_difference(pairwise_correlation(pair.original), pairwise_correlation(pair.published))


@metric("eigenvalues_robust", title="Eigenvalue difference, robust", better="lower")
def eigenvalues_robust(table: Table, release: Release) -> float:
    """Sum of the relative differences of the eigenvalues of robust covariances of standardized columns (robeigen)."""
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    robust = [mcd(standardized(side), np.random.default_rng(0)).covariance for side in (pair.original, pair.published)]
    return eigenvalue_difference(*robust)


@metric("eigenvalues_covariance", title="Eigenvalue difference, covariance", better="lower")
def eigenvalues_covariance(table: Table, release: Release) -> float:
    """Sum of the relative differences of the eigenvalues of the covariance matrices (Morais 2022, section 5.2)."""
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    return eigenvalue_difference(covariance(pair.original), covariance(pair.published))


@metric("il_correlation_sdcmicro", title="Loss of correlations, as in sdcMicro", better="lower")
def il_correlation_sdcmicro(table: Table, release: Release) -> float:
    r"""Distance of the diagonals of the inverse correlation matrices, from 0 to 1 (Mlodak 2020; sdcMicro's IL_correl).

    .. math:: \frac{1}{\sqrt2} \Big\lVert \frac{d}{\lVert d \rVert} - \frac{d'}{\lVert d' \rVert} \Big\rVert,
        \qquad d = \operatorname{diag} R^{-1}

    Either side takes its complete records. NaN where columns depend on each other; sdcMicro fails there.
    """
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    before, after = (_inverse_diagonal(side) for side in (pair.original, pair.published))
    return float(np.linalg.norm(before - after) / np.sqrt(2))


def _inverse_diagonal(points: FloatArray) -> FloatArray:
    """Return the diagonal of the inverse correlation matrix, of length 1; NaN if there is no inverse."""
    matrix = correlation(points)
    if np.linalg.matrix_rank(matrix, hermitian=True) < len(matrix):
        return np.full(len(matrix), np.nan)
    diagonal: FloatArray = np.diag(np.linalg.inv(matrix))
    return diagonal / np.linalg.norm(diagonal)


# ---- inequality ----------------------------------------------------------------------------------


def gini(values: FloatArray, weights: FloatArray | None = None) -> float:
    r"""Weighted Gini coefficient in per cent, 0 for equality; NaN if any value is negative or all are 0.

    .. math::
        G = 100 \Big[\frac{2 \sum_i (\omega_i x_i \sum_{j \le i} \omega_j) - \sum_i \omega_i^2 x_i}
                          {(\sum_i \omega_i) \sum_i \omega_i x_i} - 1\Big]

    over the sorted values (Morais 2022, eq. 5.14).
    """
    if values.min(initial=0.0) < 0 or not values.any():
        return np.nan
    order = np.argsort(values, kind="stable")
    x = values[order]
    w = np.ones(len(x)) if weights is None else weights[order]
    total = w.sum() * (w * x).sum()
    return float(100 * ((2 * (w * x * np.cumsum(w)).sum() - (w**2 * x).sum()) / total - 1))


@metric("gini_difference", title="Gini difference", better="lower")
def gini_difference(table: Table, release: Release) -> float:
    r"""Difference of the Gini coefficients in percentage points, :math:`|G_X - G_Y|`, averaged over numeric columns.

    Morais 2022, eq. 5.15. Columns with negative values, before or after, have no coefficient and are skipped.
    """
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    changes = [
        abs(gini(before, pair.weights) - gini(after, pair.weights))
        for before, after in zip(pair.original.T, pair.published.T, strict=True)
    ]
    known = [change for change in changes if not np.isnan(change)]
    return float(np.mean(known)) if known else np.nan


# ---- regression coefficients ---------------------------------------------------------------------

#: relative size below which a singular value or a standardized coefficient is rounding
_ROUNDING = 1e-10


def coefficients(points: FloatArray, response: int) -> FloatArray:
    """Return intercept and slopes of the least-squares regression of one column on the others.

    If regressors depend on each other, the solution of least norm in standardized columns is taken.
    """
    others = np.delete(np.arange(points.shape[1]), response)
    spread, means = deviations(points), points.mean(axis=0)
    matrix = correlation(points)
    beta = np.linalg.pinv(matrix[np.ix_(others, others)], rcond=_ROUNDING, hermitian=True) @ matrix[others, response]
    beta[np.abs(beta) < _ROUNDING] = 0.0
    slopes = np.where(spread[others] > 0, beta * spread[response] / np.where(spread[others] > 0, spread[others], 1), 0)
    return np.concatenate([[means[response] - slopes @ means[others]], slopes])


def coefficient_difference(original: FloatArray, published: FloatArray, response: int) -> float:
    r"""Sum the relative differences of the coefficients of one regression.

    .. math:: lm = \sum_l |(\beta^x_l - \beta^y_l) / \beta^x_l|

    (Morais 2022, eq. 5.13.) Coefficients that are 0 in the original are skipped; NaN if all are.
    """
    before, after = coefficients(original, response), coefficients(published, response)
    used = before != 0
    return float(np.abs((before - after)[used] / before[used]).sum()) if used.any() else np.nan


@metric("regression_difference", title="Regression coefficients", better="lower")
def regression_difference(table: Table, release: Release) -> float:
    """Sum of the relative differences of regression coefficients, averaged over the possible responses.

    Every numeric quasi-identifier in turn is regressed on the others; see :func:`coefficient_difference`.
    """
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    varying = np.flatnonzero(deviations(pair.original) > 0)
    return _mean_over_responses(pair.original[:, varying], pair.published[:, varying]) if len(varying) > 1 else np.nan


def _mean_over_responses(original: FloatArray, published: FloatArray) -> float:
    found: FloatArray = np.array(
        [coefficient_difference(original, published, response) for response in range(original.shape[1])]
    )
    found = found[~np.isnan(found)]
    return float(found.mean()) if found.size else np.nan
