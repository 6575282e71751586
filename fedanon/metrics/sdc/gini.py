"""Inequality: the Gini coefficient of every numeric column before and after."""

from __future__ import annotations

import numpy as np

from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.numeric_pair import numeric_pair


def gini(values: FloatArray, weights: FloatArray | None = None) -> float:
    r"""Weighted Gini coefficient in per cent, 0 for equality; NaN for negative values, and where all are 0.

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

    Morais 2022, eq. 5.15. Columns with negative values, before or after, have no coefficient and are left out.
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
