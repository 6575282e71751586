"""Eigenvalues of the covariance or correlation matrix, before and after."""

from __future__ import annotations

import numpy as np

from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.numeric_pair import correlation, covariance, numeric_pair

#: eigenvalues below this many roundings of the largest are zero: their ratio would be noise
_ROUNDINGS = 16


def eigenvalue_difference(original: FloatArray, published: FloatArray) -> float:
    r"""Sum of the relative differences of the sorted eigenvalues of two symmetric matrices.

    .. math:: \sum_p |\lambda_p - \lambda'_p| / \lambda_p

    over the eigenvalues of the original that are not zero. sdcMicro divides by those, too: where columns depend on
    each other its result holds a ratio of rounding errors, which may even be negative.
    """
    before, after = np.linalg.eigvalsh(original)[::-1], np.linalg.eigvalsh(published)[::-1]
    used = before > before[0] * len(before) * _ROUNDINGS * np.finfo(np.float64).eps
    return float((np.abs(before - after)[used] / before[used]).sum()) if used.any() else np.nan


@metric("eigenvalues_correlation", title="Eigenvalue difference, correlation", better="lower")
def eigenvalues_correlation(table: Table, release: Release) -> float:
    """Sum of the relative differences of the eigenvalues of the correlation matrices, as sdcMicro has it."""
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    return eigenvalue_difference(correlation(pair.original), correlation(pair.published))


@metric("eigenvalues_covariance", title="Eigenvalue difference, covariance", better="lower")
def eigenvalues_covariance(table: Table, release: Release) -> float:
    """Sum of the relative differences of the eigenvalues of the covariance matrices (Morais 2022, section 5.2)."""
    pair = numeric_pair(table, release)
    if pair is None:
        return np.nan
    return eigenvalue_difference(covariance(pair.original), covariance(pair.published))
