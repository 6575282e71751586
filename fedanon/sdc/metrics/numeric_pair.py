"""The numeric quasi-identifiers of a table and of its release as two matrices, and their moments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedanon.data.table import Table
from fedanon.metrics.published import positions
from fedanon.release.release import Release
from fedanon.types import FloatArray

#: a correlation this small is rounding, not association
_ROUNDING = 1e-12


class Pair(NamedTuple):
    """Original and published values of the same records, one column per numeric quasi-identifier.

    ``weights`` are the records' sampling weights, 1 if the table has none.
    """

    original: FloatArray
    published: FloatArray
    weights: FloatArray


def numeric_pair(table: Table, release: Release, *, complete: bool = True) -> Pair | None:
    """Return the published records without missing numbers; None if fewer than two are left or there are no numbers.

    With ``complete = False`` all published records are returned, NaN where either side is missing. An interval counts
    as its midpoint, a node of a taxonomy of numbers as the middle of its leaves.
    """
    numeric = [i for i, column in enumerate(table.columns) if column.values is not None]
    kept = np.flatnonzero(~release.suppressed)
    if not numeric or len(kept) < 2:
        return None
    original, published = np.empty((2, len(kept), len(numeric)))
    for at, i in enumerate(numeric):
        column = table.columns[i]
        assert column.values is not None
        original[:, at] = column.values[table.codes[kept, i]]
        published[:, at] = positions(release.cells[column.name])[release.groups.labels[kept]]
    # where the original is missing, '*' in its place says nothing new
    published[np.isnan(original)] = np.nan
    weights = (np.ones(len(table)) if table.weights is None else table.weights)[kept]
    if not complete:
        return Pair(np.where(np.isnan(published), np.nan, original), published, weights)
    whole = ~np.isnan(published).any(axis=1)
    return Pair(original[whole], published[whole], weights[whole]) if whole.sum() >= 2 else None


def deviations(points: FloatArray) -> FloatArray:
    """Return the sample standard deviation of what is known of every column, exactly 0 if it is constant."""
    return np.array([_deviation(column[~np.isnan(column)]) for column in points.T])


def _deviation(known: FloatArray) -> float:
    return float(known.std(ddof=1)) if known.size and np.ptp(known) > 0 else 0.0


def standardized(points: FloatArray) -> FloatArray:
    """Return columns with mean 0 and standard deviation 1; a constant column becomes 0."""
    spread = deviations(points)
    return np.where(spread > 0, points - points.mean(axis=0), 0.0) / np.where(spread > 0, spread, 1.0)


def correlation(points: FloatArray) -> FloatArray:
    """Return the correlation matrix; a constant column has correlation 0 with all others and 1 with itself."""
    scaled = standardized(points)
    matrix = scaled.T @ scaled / (len(points) - 1)
    matrix[np.abs(matrix) < _ROUNDING] = 0.0
    np.fill_diagonal(matrix, 1.0)
    return matrix


def pairwise_correlation(points: FloatArray) -> FloatArray:
    """Return the covariances of the standardized columns, each over the records that have both of its columns."""
    if not np.isnan(points).any():
        return correlation(points)
    spread = deviations(points)
    known = (~np.isnan(points)).astype(np.float64)
    means = np.where(known, points, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known * (spread > 0), points - means, 0.0) / np.where(spread > 0, spread, 1.0)
    counts, sums = known.T @ known, filled.T @ known  # sums[i, j] of column i over the records that have column j too
    products = filled.T @ filled - sums * sums.T / np.maximum(counts, 1)
    return np.asarray(products / np.maximum(counts - 1, 1))


def covariance(points: FloatArray) -> FloatArray:
    """Return the covariance matrix, exactly 0 for columns that are uncorrelated but for rounding."""
    spread = deviations(points)
    return np.asarray(correlation(points) * np.outer(spread, spread))
