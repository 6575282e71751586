"""Global recoding: whole columns are published at one level of their taxonomy, or as intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import ReleasePlan, own_cells
from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.key_choice import numeric_quasi_identifiers
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import CodedColumn, Table
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.release.recoding import ColumnRecoder, PerColumn
from fedanon.sdc.methods.base import Columns, categorical_names
from fedanon.sdc.methods.keys import KeyMethod
from fedanon.types import FloatArray, IntArray, Rng


@ANONYMIZERS.register("global_recoding")
@dataclass(frozen=True, kw_only=True)
class GlobalRecoding(KeyMethod):
    """Replaces every value of a column by its group: a node of the taxonomy, or an interval of numbers.

    A category is published as its highest ancestor of at most the given height, so level 0 changes nothing and the
    height of the tree gives '*'. Numeric columns are recoded only if ``cuts`` or ``width`` is given.
    """

    name = "global_recoding"
    truthful = True
    row_order_matters = False

    level: int = parameter(1, help="level of the taxonomies, from 0 (the values) to the highest ('*')", at_least=0)
    cuts: str = parameter("", help="where the intervals of numeric columns begin, separated by commas")
    width: float | None = parameter(None, help="width of the intervals of numeric columns, instead of cuts")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cuts.strip() and self.width is not None:
            raise ConfigError("The intervals of GlobalRecoding are given by cuts or by a width, not both.")

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Recode every column by itself."""
        attributes = {column.name: column.attribute for column in table.columns}
        return {name: self._recoded(current[name], attributes[name]) for name in self._names(table)}

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Recode the table; new rows are recoded as well."""

        def recoded(new: CodedColumn) -> Cells:
            return self._recoded(own_cells(table, new), new.attribute)

        def left(new: CodedColumn) -> Cells:
            return own_cells(table, new)

        names = self._names(table)
        recoders: dict[str, ColumnRecoder] = {c.name: recoded if c.name in names else left for c in table.columns}
        return replace(super().plan(table, rng), recoding=PerColumn(recoders))

    def _names(self, table: Table) -> list[str]:
        numeric = numeric_quasi_identifiers(table) if self.cuts.strip() or self.width is not None else []
        what = "categorical quasi-identifiers, and numeric ones if cuts or a width is given,"
        return self.chosen(table, [*categorical_names(table), *numeric], what)

    def _recoded(self, cells: Cells, attribute: Numeric | Categorical) -> Cells:
        if isinstance(attribute, Numeric):
            return cut_cells(cells, cut_points(self.cuts, self.width, attribute), attribute)
        assert isinstance(cells, Nodes)
        height = int(cells.hierarchy.height[-1])
        if self.level > height:
            raise ConfigError(f"The taxonomy of {attribute.name!r} has levels 0 to {height}. Got {self.level} instead.")
        return Nodes(self._ancestors(cells)[cells.nodes], cells.hierarchy)

    def _ancestors(self, cells: Nodes) -> IntArray:
        """Return the highest ancestor of every node whose height is at most the level; higher nodes stay."""
        tree = cells.hierarchy
        at = np.arange(len(tree.labels), dtype=np.int32)
        while True:
            further = np.where(tree.height[tree.parent[at]] <= self.level, tree.parent[at], at)
            if np.array_equal(further, at):
                return at
            at = further


# ---- numbers -------------------------------------------------------------------------------------


def cut_points(text: str, width: float | None, attribute: Numeric) -> FloatArray:
    """Return the cut points inside the declared range: those listed, or the multiples of the width.

    The end of the range belongs to the last interval, even where it is a multiple of the width.
    """
    if text.strip():
        try:
            cuts = np.array([float(cut) for cut in text.split(",")])
        except ValueError:
            raise ConfigError("The 'cuts' parameter must be numbers separated by commas.") from None
        if not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
            raise ConfigError("The 'cuts' parameter must be numbers in increasing order.")
    else:
        assert width is not None
        if not width > 0:
            raise ConfigError(f"The 'width' parameter must be above 0. Got {width!r} instead.")
        cuts = width * np.arange(np.floor(attribute.low / width), np.ceil(attribute.high / width))
    return cuts[(cuts > attribute.low) & (cuts <= attribute.high)]


def cut_cells(cells: Cells, cuts: FloatArray, attribute: Numeric) -> Intervals:
    """Return the interval between two cuts that holds each cell; the lower cut belongs to it.

    An interval that an earlier step left grows to cover all those it touches. Values outside the declared range, which
    noise may produce, move the outermost bound.
    """
    assert not isinstance(cells, Nodes)
    low, high = (cells.low, cells.high) if isinstance(cells, Intervals) else (cells.values, cells.values)
    ends = (np.nanmin(low, initial=attribute.low), np.nanmax(high, initial=attribute.high))
    lower = np.concatenate([[ends[0]], cuts])
    # the next cut is outside; for whole numbers the last value inside is one below it
    upper = np.concatenate([cuts - (1 if attribute.integer and _whole(cuts) else 0), [ends[1]]])
    missing = np.isnan(low)
    first, last = (np.searchsorted(cuts, np.where(missing, 0, bound), side="right") for bound in (low, high))
    return Intervals(np.where(missing, np.nan, lower[first]), np.where(missing, np.nan, upper[last]))


def _whole(values: FloatArray) -> bool:
    return bool((values == np.floor(values)).all())
