"""Linear algebra of the methods that keep moments: regression on given columns, and random frames apart from them.

Everything works on standardised columns, so that a column of large numbers does not spoil the digits of the others,
and through the singular value decomposition, so that columns which depend on each other (collinear, constant) do no
harm: a regression on them is the one of the Moore-Penrose inverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedanon.types import FloatArray, Rng


class Standardized(NamedTuple):
    """Columns with mean 0 and standard deviation 1 (constant ones are 0), and the way back."""

    scores: FloatArray
    center: FloatArray
    scale: FloatArray

    def back(self, scores: FloatArray) -> FloatArray:
        """Scores in the units of the columns."""
        return np.asarray(self.center + self.scale * scores)


def standardized(x: FloatArray) -> Standardized:
    """Centre and scale every column by its own mean and standard deviation."""
    center = x.mean(axis=0)
    scale = x.std(axis=0, ddof=1)
    # a constant column keeps what rounding left of its mean: that is no spread
    constant = scale <= 1e-12 * np.abs(center)
    scores = np.where(constant, 0.0, (x - center) / np.where(constant, 1.0, scale))
    return Standardized(scores - scores.mean(axis=0), center, np.where(constant, 1.0, scale))


def column_space(x: FloatArray) -> FloatArray:
    """An orthonormal basis of the centred columns; as many as are independent."""
    left, sizes, _ = np.linalg.svd(standardized(x).scores, full_matrices=False)
    least = max(x.shape) * np.finfo(np.float64).eps * (sizes[0] if len(sizes) else 0.0)
    return np.asarray(left[:, sizes > least])


class Regression(NamedTuple):
    """What given columns say about others, and what they do not; both have mean 0."""

    fitted: FloatArray
    residuals: FloatArray


def regression(scores: FloatArray, s: FloatArray) -> Regression:
    """Least squares of centred columns on ``s`` and a constant; on no columns the fit is 0."""
    basis = column_space(s)
    fitted = basis @ (basis.T @ scores)
    return Regression(fitted, scores - fitted)


def root(matrix: FloatArray) -> FloatArray:
    """Symmetric square root of a covariance matrix; what rounding or a copula made negative counts as 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def nearest_frame(x: FloatArray) -> FloatArray:
    """The orthonormal columns nearest to ``x``: its polar factor."""
    left, _, right = np.linalg.svd(x, full_matrices=False)
    return np.asarray(left @ right)


def random_frame(n: int, count: int, apart_from: FloatArray, rng: Rng) -> FloatArray:
    """``count`` orthonormal columns, uniform among those with mean 0 that are orthogonal to a basis."""
    drawn = rng.standard_normal((n, count))
    for _ in range(2):  # the second time takes off what rounding left
        drawn -= drawn.mean(axis=0)
        drawn -= apart_from @ (apart_from.T @ drawn)
    return nearest_frame(drawn)
