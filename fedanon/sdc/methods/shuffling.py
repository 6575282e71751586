"""Shuffling: the original values move to other records, in an order that a model of X given S decides."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import pandas as pd

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.robust import mcd
from fedanon.fields import parameter
from fedanon.sdc.methods.conditional import ConditionalPerturbation
from fedanon.sdc.methods.numeric import DETERMINED, Selection, reverse_map
from fedanon.sdc.methods.projections import regression, root, standardized
from fedanon.types import FloatArray, Rng


def average_ranks(x: FloatArray) -> FloatArray:
    """Ranks 1..n of every column; equal values share their mean rank."""
    return pd.DataFrame(x).rank().to_numpy(dtype=np.float64)


def normal_scores(ranks: FloatArray) -> FloatArray:
    r""":math:`\Phi^{-1}((r - 1/2) / n)` of average ranks."""
    n = len(ranks)
    inverse = NormalDist().inv_cdf
    # average ranks are multiples of 1/2: the score of every possible one is computed once
    table = np.array([inverse((half / 2 + 0.5) / n) for half in range(2 * n - 1)])
    return np.asarray(table[(2 * ranks - 2).astype(np.int64)])


Correlation = Literal["spearman", "pearson", "mcd"]


def copula_model(x: FloatArray, s: FloatArray, kind: Correlation = "spearman") -> tuple[FloatArray, FloatArray]:
    r"""Conditional mean and covariance of the normal scores :math:`X^*` given :math:`S^*`.

    :math:`\rho = 2 \sin(\pi r / 6)` of Spearman's r over (X, S) jointly, or Pearson's or a robust (minimum covariance
    determinant) correlation of the values; mean :math:`\rho_{xs} \rho_{ss}^{-1} S^*`, covariance :math:`\rho_{xx} -
    \rho_{xs} \rho_{ss}^{-1} \rho_{sx}`.
    """
    both = np.column_stack([x, s])
    ranks = average_ranks(both)
    rho = _correlations(both, ranks, kind)
    p = x.shape[1]
    slopes = np.linalg.pinv(rho[p:, p:], hermitian=True) @ rho[p:, :p]
    return normal_scores(ranks[:, p:]) @ slopes, rho[:p, :p] - rho[:p, p:] @ slopes


def _correlations(both: FloatArray, ranks: FloatArray, kind: Correlation) -> FloatArray:
    scores = standardized(ranks if kind == "spearman" else both).scores
    if kind == "mcd":
        covariance = mcd(scores, np.random.default_rng(0)).covariance
        spread = np.sqrt(np.diagonal(covariance))
        return np.asarray(covariance / np.outer(spread, spread))
    r = np.clip(scores.T @ scores / (len(both) - 1), -1.0, 1.0)
    return np.asarray(2 * np.sin(np.pi / 6 * r) if kind == "spearman" else r)


def in_order_of(x: FloatArray, y: FloatArray, rng: Rng) -> FloatArray:
    """Return every column of ``x`` in the rank order of the same column of ``y``."""
    return np.column_stack([reverse_map(x[:, i], y[:, i], rng) for i in range(x.shape[1])])


def resampled_regression(x: FloatArray, s: FloatArray, rng: Rng) -> FloatArray:
    """Return predictions of a regression on ``s``, each plus the residuals of a record drawn at random."""
    fitted, residuals = regression(standardized(x).scores, s)
    return np.asarray(fitted + residuals[rng.integers(len(x), size=len(x))])


@ANONYMIZERS.register("data_shuffling")
@dataclass(frozen=True, kw_only=True)
class DataShuffling(ConditionalPerturbation):
    r"""Data shuffling: GADP on normal scores decides the order of the original values; marginals are exact.

    :math:`Y^* = \rho_{xs} \rho_{ss}^{-1} S^* + e`, :math:`e \sim N(0, \rho_{xx} - \rho_{xs} \rho_{ss}^{-1} \rho_{sx})`,
    with :math:`\rho = 2 \sin(\pi r / 6)` of Spearman's r (Muralidhar & Sarathy 2006; Morais 2022, eq. 4.12-4.13, whose
    covariance of e is garbled). Rank correlations are kept in large samples. Negative eigenvalues of the covariance,
    which the sine may cause, count as 0; collinear S are handled by the pseudo-inverse.
    """

    name = "data_shuffling"

    correlation: Correlation = parameter("spearman", help="correlation of the columns that decides the order")

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Put the original values in the order of the draw."""
        data.refuse_constant()
        mean, covariance = copula_model(data.x, data.s, self.correlation)
        data.refuse_unchanged(np.diagonal(covariance) <= DETERMINED)
        return in_order_of(data.x, mean + rng.standard_normal(data.x.shape) @ root(covariance), rng)


@ANONYMIZERS.register("regression_shuffling")
@dataclass(frozen=True, kw_only=True)
class RegressionShuffling(ConditionalPerturbation):
    """Shuffling by regression: predictions plus drawn residuals decide the order of the values; marginals are exact.

    X is regressed on S, every prediction takes the residuals of a record drawn at random (all columns of one record, so
    that they keep their correlation), and the original values are published in that order. Without given columns the
    order is random.
    """

    name = "regression_shuffling"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Put the original values in the order of the predictions."""
        data.refuse_determined()
        return in_order_of(data.x, resampled_regression(data.x, data.s, rng), rng)
