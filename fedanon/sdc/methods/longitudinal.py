"""Panels: reverse mapping from one period to the next.

A panel is wide: one row per unit, one column per period, named in chronological order. A unit that lacks a period has a
missing value there, which makes the panel unbalanced.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Numbers
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import listed, parameter
from fedanon.sdc.methods.base import Columns, Perturbative
from fedanon.sdc.methods.numeric import WHAT, known_numbers, original_numbers, reverse_map
from fedanon.types import Rng


@ANONYMIZERS.register("longitudinal_reverse_mapping")
@dataclass(frozen=True, kw_only=True)
class LongitudinalReverseMapping(Perturbative):
    r"""Puts each period's values in the rank order of the next: time itself is the perturbation; marginals are exact.

    For periods t, t + 1: :math:`X_{t+1} = Z_t + E_{t,t+1}`, where :math:`Z_t` holds the values of :math:`X_t` in the
    rank order of :math:`X_{t+1}`; :math:`Z_t` is published in place of :math:`X_t` (Ruiz 2018; Morais 2022, eq. 4.17).
    The last period has no successor and keeps its own order: alone, this method publishes it unchanged. In a pipeline
    the order is that of the current values; the values are the original ones.
    """

    name = "longitudinal_reverse_mapping"

    periods: str = parameter(
        help="a variable's columns in chronological order, as income_2019,income_2020; variables separated by ;"
    )

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Map every variable back, period by period."""
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
            raise ConfigError(f"The method {self.name!r} changes {WHAT} only. It cannot change: {', '.join(unfit)}.")
        if any(len(names) < 2 for names in variables) or len(set(named)) < len(named):
            raise ConfigError("The 'periods' parameter must name at least two columns of each variable, each once.")
        if self.columns:
            raise ConfigError(f"The method {self.name!r} takes its columns from 'periods'; leave 'columns' empty.")
        return variables


def _refuse_unbalanced(table: Table, names: list[str]) -> None:
    """Reject a panel in which any unit lacks a period."""
    for i, column in enumerate(table.columns):
        count = int((table.codes[:, i] == column.size - 1).sum()) if column.has_missing else 0
        if column.name in names and count:
            raise ConfigError(f"The panel is not balanced: the period {column.name!r} lacks {count} units.")
