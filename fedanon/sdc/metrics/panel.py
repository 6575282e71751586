"""Loss and risk of panels: how far masking changes the moves in rank from one period to the next.

Periods are numeric quasi-identifiers whose names differ in a number at their end: income_2019, income_2020.
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pandas as pd

from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.release.release import Release
from fedanon.sdc.metrics.numeric_pair import numeric_pair
from fedanon.types import FloatArray

_PERIOD = re.compile(r"(.*?)[ _.-]*(\d+)")


def temporal_change(original: FloatArray, published: FloatArray, alpha: float = 1.0) -> float:
    r"""Return the power mean of how far masking changes the moves in rank between two periods (Ruiz 2018).

    .. math:: J(\alpha) = \Big(\frac1N \sum_i |r_{T,i} - r_{A,i}|^\alpha\Big)^{1/\alpha}, \qquad
              J(0) = \prod_i |r_{T,i} - r_{A,i}|^{1/N}

    with the moves in rank :math:`r_{T,i}` of the original and :math:`r_{A,i}` of the release (Morais 2022, eq. 4.24).
    Small alpha weighs small changes, large alpha large ones; for alpha up to 0 it is 0 if any move is unchanged. It is
    a loss, and the higher it is, the less a reader learns about who moved.
    """
    moved = [_ranks(side[:, 1]) - _ranks(side[:, 0]) for side in (original, published)]
    apart = np.abs(moved[0] - moved[1])
    if alpha <= 0 and (apart == 0).any():
        return 0.0
    if alpha == 0:
        return float(np.exp(np.log(apart).mean()))
    return float((apart**alpha).mean() ** (1 / alpha))


def _ranks(values: FloatArray) -> FloatArray:
    return np.asarray(pd.Series(values).rank(method="average"), dtype=np.float64)


def period_pairs(names: list[str]) -> list[tuple[int, int]]:
    """Return the places of every two successive periods of a variable."""
    variables: dict[str, list[tuple[int, int]]] = {}
    for place, name in enumerate(names):
        found = _PERIOD.fullmatch(name)
        if found:
            variables.setdefault(found[1], []).append((int(found[2]), place))
    ordered = [[place for _, place in sorted(periods)] for periods in variables.values()]
    return [pair for places in ordered for pair in pairwise(places)]


def _register(alpha: float) -> None:
    def change(table: Table, release: Release) -> float:
        pair = numeric_pair(table, release)
        names = [column.name for column in table.columns if column.values is not None]
        places = period_pairs(names)
        if pair is None or not places:
            return np.nan
        sides = ((pair.original[:, [a, b]], pair.published[:, [a, b]]) for a, b in places)
        return float(np.mean([temporal_change(before, after, alpha) for before, after in sides]))

    change.__doc__ = (
        f"Mean change of the moves in rank between successive periods, J({alpha:g}) of Morais 2022, eq. 4.24; NaN "
        "without columns that are periods of one variable."
    )
    metric(f"temporal_change_{alpha:g}", title=f"Temporal change J({alpha:g})", better="lower")(change)


for _alpha in (0, 1, 2):
    _register(_alpha)
