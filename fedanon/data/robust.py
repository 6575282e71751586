"""Robust location and scatter of numeric records: the minimum covariance determinant (MCD)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fedanon.types import FloatArray

#: random subsets the search starts from, how many of them are followed to the end, and the records they are drawn from
STARTS, FOLLOWED, SAMPLE = 500, 10, 1500
#: share of normal records that are no outliers
CENTRAL = 0.975
#: share of the mean variance added to every direction, so that a constant or dependent column has an inverse
RIDGE = 1e-6


class Scatter(NamedTuple):
    """Center and covariance of the bulk of the records."""

    center: FloatArray
    covariance: FloatArray


def mcd(points: FloatArray, rng: np.random.Generator) -> Scatter:
    r"""Center and covariance of the half of the records whose covariance has the least determinant, reweighted.

    FastMCD (Rousseeuw & Van Driessen 1999) with h = (n + p + 1) / 2: concentration steps from random subsets of p + 1
    records, then records within the 97.5 % quantile of :math:`\chi^2_p` give the estimate. Both covariances have the
    factors for consistency at the normal distribution and for finite samples that R's ``covMcd`` has (robustbase up to
    0.95: the second for the share of the records that is left; since 0.99 for 0.975). Where columns depend on each
    other, or the half is constant in one, the covariance is singular; a ridge of 1e-6 of the mean variance is added in
    the search, and to the result if it is singular, so that records off the common plane stand out and those on it are
    compared as usual.
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
    """Quantile of the chi-squared distribution, to about ten digits."""
    low, high = 0.0, 10.0 * degrees + 100.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _gamma_share(degrees / 2, middle / 2) < share else (low, middle)
    return (low + high) / 2


def _gamma_share(shape: float, x: float) -> float:
    r"""Regularized lower incomplete gamma function: :math:`x^a e^{-x} / \Gamma(a + 1) (1 + x / (a + 1) + \dots)`."""
    if x <= 0:
        return 0.0
    term = total = 1.0
    step = 0
    while term > 1e-17 * total:
        step += 1
        term *= x / (shape + step)
        total += term
    return min(math.exp(shape * math.log(x) - x - math.lgamma(shape + 1)) * total, 1.0)


def consistency_factor(p: int, share: float) -> float:
    r"""What the covariance of the central ``share`` of a normal distribution is multiplied by to be that of all.

    :math:`\alpha / P(\chi^2_{p+2} \le \chi^2_{p,\alpha})` (Croux & Haesbroeck 1999).
    """
    return share / _gamma_share(p / 2 + 1, chi2_quantile(share, p) / 2)


#: coefficients of the finite-sample factors for half of the records, before and after reweighting: for one and two
#: columns (a, b of 1 - exp(a) / n^b), and for more (a, b of two curves) (Pison, Van Aelst & Willems 2002; robustbase)
_RAW = {1: (0.262024211897096, 0.604756680630497), 2: (0.673292623522027, 0.691365864961895)}
_REWEIGHTED = {1: (1.11098143415027, 1.5182890270453), 2: (3.11101712909049, 1.91401056721863)}
_RAW_CURVES = ((-1.42764571687802, 1.26263336932151), (-1.06141115981725, 1.28907991440387))
_REWEIGHTED_CURVES = ((-1.02842572724793, 1.67659883081926), (-0.26800273450853, 1.35968562893582))


def finite_sample_factor(p: int, n: int, *, reweighted: bool) -> float:
    """What makes the estimate from half of ``n`` records unbiased at the normal distribution, nearly 1 for large n.

    The curves were fitted to samples of some size; so few records that they leave nothing to divide by are left as
    they are.
    """
    few = _REWEIGHTED if reweighted else _RAW
    if p in few:
        a, b = few[p]
        short = math.exp(a - b * math.log(n))
        return 1 / (1 - short) if short < 1 else 1.0
    curves = _REWEIGHTED_CURVES if reweighted else _RAW_CURVES
    (y2, y3), (x2, x3) = [math.log(-a / p**b) for a, b in curves], [math.log(q * p**2) for q in (2, 3)]
    slope = (y2 - y3) / (x3 - x2)
    short = math.exp(y2 + slope * (x2 - math.log(n)))
    return 1 / (1 - short) if short < 1 else 1.0


def _whiten(points: FloatArray, covariance: FloatArray) -> FloatArray:
    return np.asarray(points @ np.linalg.inv(np.linalg.cholesky(covariance)).swapaxes(-1, -2))


def _moments(points: FloatArray, masks: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and ridged covariance of the records of every mask, divided by their number."""
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
    """Moments of the records that are no outliers by the raw estimate; both are made consistent at the normal."""
    n, p = points.shape
    h = min((n + p + 1) // 2, n)
    factor = consistency_factor(p, h / n) * finite_sample_factor(p, n, reweighted=False) * h / max(h - 1, 1)
    central = squared_mahalanobis(points, raw) < factor * chi2_quantile(CENTRAL, p)
    inside = points[central] if central.sum() > p else points
    center = inside.mean(axis=0)
    covariance = (inside - center).T @ (inside - center) / max(len(inside) - 1, 1)
    if len(inside) < n:
        covariance *= consistency_factor(p, len(inside) / n) * finite_sample_factor(p, n, reweighted=True)
    return Scatter(center, _with_ridge(covariance, points))


def _with_ridge(covariance: FloatArray, points: FloatArray) -> FloatArray:
    """The covariance, with a ridge if columns depend on each other; else it is left exact."""
    ridge = RIDGE * (float(points.var(axis=0).mean()) or 1.0)
    singular = np.linalg.eigvalsh(covariance)[0] <= ridge
    return np.asarray(covariance + ridge * np.eye(len(covariance))) if singular else covariance
