"""Robust location and scatter of numeric records: the minimum covariance determinant (MCD)."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from fedanon.types import FloatArray

#: random subsets the search starts from, how many of them are followed to the end, and the records they are drawn from
STARTS, FOLLOWED, SAMPLE = 500, 10, 1500
#: share of the mean variance added to every direction, so that a constant or dependent column has an inverse
RIDGE = 1e-6


class Scatter(NamedTuple):
    """Center and covariance of the bulk of the records."""

    center: FloatArray
    covariance: FloatArray


def mcd(points: FloatArray, rng: np.random.Generator) -> Scatter:
    r"""Center and covariance of the half of the records whose covariance has the least determinant, reweighted.

    FastMCD (Rousseeuw & Van Driessen 1999) with h = (n + p + 1) / 2: concentration steps from random subsets of p + 1
    records, then records within the 97.5 % quantile of :math:`\chi^2_p` give the estimate. Where columns depend on each
    other, or the half is constant in one, the covariance is singular; a ridge of 1e-6 of the mean variance is added
    throughout, so that records off the common plane stand out and those on it are compared as usual.
    """
    n, p = points.shape
    sample = points[rng.permutation(n)[:SAMPLE]]
    masks = np.zeros((STARTS, len(sample)))
    first = np.argpartition(rng.random(masks.shape), min(p, len(sample) - 1), axis=1)[:, : p + 1]
    np.put_along_axis(masks, first, 1.0, axis=1)
    centers, covariances = _moments(sample, masks)
    for _ in range(2):
        centers, covariances = _concentrate(sample, centers, covariances)
    best = np.argsort(np.linalg.slogdet(covariances)[1], kind="stable")[:FOLLOWED]
    centers, covariances = _converge(points, centers[best], covariances[best])
    least = int(np.argmin(np.linalg.slogdet(covariances)[1]))
    return _reweighted(points, Scatter(centers[least], covariances[least]))


def squared_mahalanobis(points: FloatArray, scatter: Scatter) -> FloatArray:
    """Squared Mahalanobis distances of the records to the center."""
    return np.asarray(np.square(_whiten(points - scatter.center, scatter.covariance)).sum(axis=1))


def whitened(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The records in coordinates where Euclidean distance is Mahalanobis distance by a robust covariance."""
    return _whiten(points, mcd(points, rng).covariance)


def chi2_quantile(share: float, degrees: int) -> float:
    """Quantile of the chi-squared distribution (Wilson & Hilferty 1931; within 1 % for the shares used here)."""
    spread = 2 / (9 * degrees)
    return degrees * float(1 - spread + NormalDist().inv_cdf(share) * spread**0.5) ** 3


def _whiten(points: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray(points @ np.linalg.inv(np.linalg.cholesky(covariance)).swapaxes(-1, -2))


def _moments(points: FloatArray, masks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and ridged covariance of the records of every mask."""
    p = points.shape[1]
    counts = masks.sum(axis=1)
    centers = masks @ points / counts[:, None]
    products = (points[:, :, None] * points[:, None, :]).reshape(len(points), p * p)
    covariances = (masks @ products / counts[:, None]).reshape(-1, p, p) - centers[:, :, None] * centers[:, None, :]
    ridge = RIDGE * (float(points.var(axis=0).mean()) or 1.0)
    return centers, covariances + ridge * np.eye(p)


def _concentrate(points: FloatArray, centers: FloatArray, covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One C-step for every start: the moments of the h records nearest to its center in its metric."""
    n, p = points.shape
    h = min((n + p + 1) // 2, n)
    distances = np.square(_whiten(points - centers[:, None], covariances)).sum(axis=2)
    masks = np.zeros(distances.shape)
    np.put_along_axis(masks, np.argpartition(distances, h - 1, axis=1)[:, :h], 1.0, axis=1)
    return _moments(points, masks)


def _converge(points: FloatArray, centers: FloatArray, covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """C-steps until no determinant falls any more."""
    before = np.full(len(centers), np.inf)
    for _ in range(100):
        centers, covariances = _concentrate(points, centers, covariances)
        now = np.linalg.slogdet(covariances)[1]
        if np.all(now >= before - 1e-9):
            break
        before = now
    return centers, covariances


def _reweighted(points: FloatArray, raw: Scatter) -> Scatter:
    """Moments of the records that are no outliers by the raw estimate, scaled to be consistent at the normal."""
    p = points.shape[1]
    distances = squared_mahalanobis(points, raw)
    scale = float(np.median(distances)) / chi2_quantile(0.5, p)
    inside = distances <= scale * chi2_quantile(0.975, p)
    centers, covariances = _moments(points, inside[None].astype(np.float64))
    return Scatter(centers[0], covariances[0])
