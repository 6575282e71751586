"""Mean squared, absolute and relative deviation of a release from its table: of data, covariances, correlations.

Covariances are compared on and above the diagonal, correlations above it, each pair of columns once (Domingo-Ferrer &
Torra 2001). Morais 2022 leaves open which cells of a matrix count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.numeric_pair import correlation, covariance, numeric_pair


def mean_squared_error(original: FloatArray, published: FloatArray) -> float:
    r"""Mean of :math:`(x - y)^2` over all cells (Morais 2022, eq. 5.8)."""
    return _mean(np.square(original - published))


def mean_absolute_error(original: FloatArray, published: FloatArray) -> float:
    r"""Mean of :math:`|x - y|` over all cells (Morais 2022, eq. 5.9)."""
    return _mean(np.abs(original - published))


def mean_variation(original: FloatArray, published: FloatArray) -> float:
    r"""Mean of :math:`|x - y| / |x|` over all cells (Morais 2022, eq. 5.10, which lost its denominator in print).

    Where x is 0, y stands in the denominator; where both are, the cell is skipped (Morais 2022, below eq. 5.11).
    """
    reference = np.abs(np.where(original == 0, published, original))
    used = reference > 0
    return _mean(np.abs(original - published)[used] / reference[used])


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else np.nan


class _Compared(NamedTuple):
    """What of the data is compared: a name, words for people, and how a matrix of records becomes cells."""

    suffix: str
    words: str
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
_MEASURES = {
    "mse": ("Mean squared error", "5.8", mean_squared_error),
    "mae": ("Mean absolute error", "5.9", mean_absolute_error),
    "mean_variation": ("Mean relative variation", "5.10", mean_variation),
}


def _register(name: str, compared: _Compared) -> None:
    title, equation, measure = _MEASURES[name]

    def deviation(table: Table, release: Release) -> float:
        pair = numeric_pair(table, release)
        return np.nan if pair is None else measure(compared.cells(pair.original), compared.cells(pair.published))

    deviation.__doc__ = f"{title} of the {compared.words} (Morais 2022, eq. {equation})."
    what = compared.suffix.removeprefix("_")
    metric(name + compared.suffix, title=f"{title}, {what}" if what else title, better="lower")(deviation)


for _name in _MEASURES:
    for _part in _COMPARED:
        _register(_name, _part)


@metric("il1", title="IL1 (%)", better="lower")
def il1(table: Table, release: Release) -> float:
    r"""Mean relative deviation of the numeric quasi-identifiers in per cent.

    .. math:: IL1 = \frac{100}{NP} \sum_{ip} \frac{|x_{ip} - y_{ip}|}{|x_{ip}|}

    (Morais 2022, eq. 5.11, with the rules for zeros of :func:`mean_variation`.) IL1s, in standard deviations, is
    :func:`fedanon.metrics.numeric_loss.il2`.
    """
    pair = numeric_pair(table, release)
    return np.nan if pair is None else 100 * mean_variation(pair.original, pair.published)
