"""Linear algebra of the methods that keep moments: regression on given columns, and random frames orthogonal to them.

Everything works on standardized columns, so that a column of large numbers does not cost the others their precision,
and through the singular value decomposition, so that columns that depend on each other (collinear, constant) do no
harm: regression on them uses the Moore-Penrose inverse.
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
        """Return scores in the units of the columns."""
        return np.asarray(self.center + self.scale * scores)


def standardized(x: FloatArray) -> Standardized:
    """Center and scale every column by its own mean and standard deviation."""
    center = x.mean(axis=0)
    scale = x.std(axis=0, ddof=1)
    # what rounding leaves of a constant column after centering is no spread
    constant = scale <= 1e-12 * np.abs(center)
    scores = np.where(constant, 0.0, (x - center) / np.where(constant, 1.0, scale))
    return Standardized(scores - scores.mean(axis=0), center, np.where(constant, 1.0, scale))


def column_space(x: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the centered columns, as many as are independent."""
    left, sizes, _ = np.linalg.svd(standardized(x).scores, full_matrices=False)
    least = max(x.shape) * np.finfo(np.float64).eps * (sizes[0] if len(sizes) else 0.0)
    return np.asarray(left[:, sizes > least])


class Regression(NamedTuple):
    """What given columns explain of others, and what they leave; both have mean 0."""

    fitted: FloatArray
    residuals: FloatArray


def regression(scores: FloatArray, s: FloatArray) -> Regression:
    """Least squares of centered columns on ``s`` and a constant; on no columns the fit is 0."""
    basis = column_space(s)
    fitted = basis @ (basis.T @ scores)
    return Regression(fitted, scores - fitted)


#: Tukey's constant of 95 % efficiency at the normal distribution, and the steps after which weights are taken as final
_TUKEY, _STEPS = 4.685, 50


def robust_regression(scores: FloatArray, s: FloatArray) -> Regression:
    """Regression in which records far from the fit count little or nothing: Tukey's biweight, column by column.

    Iterated least squares from the medians on, with the median absolute residual as scale. Fit and residuals need not
    have mean 0.
    """
    basis = np.column_stack([np.ones(len(scores)), column_space(s)])
    fitted = np.column_stack([_biweight_fit(column, basis) for column in scores.T])
    return Regression(fitted, scores - fitted)


def _biweight_fit(y: FloatArray, basis: FloatArray) -> FloatArray:
    slopes: FloatArray = np.zeros(basis.shape[1])
    slopes[0] = np.median(y)
    for step in range(_STEPS):
        residuals = y - basis @ slopes
        scale = 1.4826 * float(np.median(np.abs(residuals)))
        if scale <= 0:
            break
        far = residuals / (_TUKEY * scale)
        # the first steps have weights that never vanish, so that the start does not decide
        weights = 1 / np.maximum(np.abs(residuals) / (1.345 * scale), 1) if step < 5 else np.clip(1 - far**2, 0, 1) ** 2
        root_weights = np.sqrt(weights)[:, None]
        new = np.asarray(np.linalg.lstsq(root_weights * basis, root_weights[:, 0] * y, rcond=None)[0], dtype=np.float64)
        if step >= 5 and np.abs(new - slopes).max() <= 1e-9 * max(np.abs(slopes).max(), 1e-9):
            break
        slopes = new
    return np.asarray(basis @ slopes)


def root(matrix: FloatArray) -> FloatArray:
    """Symmetric square root of a covariance matrix; eigenvalues that rounding or a copula made negative count as 0."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def nearest_frame(x: FloatArray) -> FloatArray:
    """The orthonormal columns nearest to ``x``: its polar factor."""
    left, _, right = np.linalg.svd(x, full_matrices=False)
    return np.asarray(left @ right)


def random_frame(n: int, count: int, apart_from: FloatArray, rng: Rng) -> FloatArray:
    """``count`` orthonormal columns, uniform among those with mean 0 that are orthogonal to a basis."""
    drawn = rng.standard_normal((n, count))
    for _ in range(2):  # the second pass removes what rounding left
        drawn -= drawn.mean(axis=0)
        drawn -= apart_from @ (apart_from.T @ drawn)
    return nearest_frame(drawn)
