"""Panels: reverse mapping from one period to the next, and how far a release changed the movements between them.

A panel is wide: one row a unit, one column a period, named in the order of time. A unit that lacks a period has a
missing value there and makes the panel unbalanced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Numbers
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import listed, parameter
from fedanon.sdc.methods.base import Columns, Perturbative
from fedanon.sdc.methods.numeric import WHAT, known_numbers, original_numbers
from fedanon.sdc.methods.ranks import reverse_map
from fedanon.types import FloatArray, Rng


def rank_moves(earlier: FloatArray, later: FloatArray) -> NDArray[np.int64]:
    """By how many ranks every unit moved from one period to the next; equal values rank in the order of the rows."""
    return _ranks(later) - _ranks(earlier)


def temporal_change(
    original: tuple[FloatArray, FloatArray], released: tuple[FloatArray, FloatArray], alpha: float
) -> float:
    r"""How far a release changed the movements between two periods (Ruiz 2018; Morais 2022, eq. 4.24).

    .. math:: J(\alpha) = \Big(\frac1N \sum_i |r_i|^\alpha\Big)^{1/\alpha}, \qquad J(0) = \prod_i |r_i|^{1/N}

    with r the moves of the original ranks minus those of the released ones. Small alpha weigh small changes, large
    ones large changes. Where alpha <= 0 and any move is unchanged, J is 0, the limit.
    """
    change = np.abs(rank_moves(*original) - rank_moves(*released)).astype(np.float64)
    largest = change.max(initial=0.0)
    if largest == 0 or (alpha <= 0 and change.min() == 0):
        return 0.0
    if alpha == 0:
        return float(np.exp(np.log(change).mean()))
    # the unit is the change that dominates, so that no power overflows
    unit = largest if alpha > 0 else change.min()
    return float(unit * np.mean((change / unit) ** alpha) ** (1 / alpha))


def _ranks(values: FloatArray) -> NDArray[np.int64]:
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


@ANONYMIZERS.register("longitudinal_reverse_mapping")
@dataclass(frozen=True, kw_only=True)
class LongitudinalReverseMapping(Perturbative):
    r"""Each period's values in the rank order of the next period: time itself is the perturbation; marginals are exact.

    For periods t, t + 1: :math:`X_{t+1} = Z_t + E_{t,t+1}`, where :math:`Z_t` holds the values of :math:`X_t` in the
    rank order of :math:`X_{t+1}`; :math:`Z_t` is published in place of :math:`X_t` (Ruiz 2018; Morais 2022, eq. 4.17).
    The last period has no next one and keeps its own order: alone, this method publishes it as it is. In a pipeline the
    order is that of the current values, the values are the original ones. :func:`temporal_change` measures what became
    of the movements.
    """

    name = "longitudinal_reverse_mapping"

    periods: str = parameter(
        help="a variable's columns in order of time, as income_2019,income_2020; a semicolon begins another variable"
    )

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Every variable mapped back, period by period."""
        changed: dict[str, Numbers] = {}
        for names in self._variables(table):
            _refuse_unbalanced(table, names)
            x, y = original_numbers(table, tuple(names)), known_numbers(table, current, names)
            last = len(names) - 1
            changed |= {
                name: Numbers(reverse_map(x[:, t], y[:, min(t + 1, last)], rng)) for t, name in enumerate(names)
            }
        return changed

    def _variables(self, table: Table) -> list[list[str]]:
        """Names of the periods of every variable."""
        variables = [listed(part) for part in self.periods.split(";")]
        named = [name for names in variables for name in names]
        unfit = [name for name in named if name not in numeric_quasi_identifiers(table)]
        if unfit:
            raise ConfigError(f"The method {self.name!r} changes {WHAT} only. Not so: {', '.join(unfit)}.")
        if any(len(names) < 2 for names in variables) or len(set(named)) < len(named):
            raise ConfigError("The 'periods' parameter must name two columns or more of each variable, each once.")
        if self.columns:
            raise ConfigError(f"The method {self.name!r} takes its columns from 'periods'; leave 'columns' empty.")
        return variables


def _refuse_unbalanced(table: Table, names: list[str]) -> None:
    """Every unit must be there in every period."""
    for i, column in enumerate(table.columns):
        count = int((table.codes[:, i] == column.size - 1).sum()) if column.has_missing else 0
        if column.name in names and count:
            raise ConfigError(f"The panel is not balanced: the period {column.name!r} lacks {count} units.")
