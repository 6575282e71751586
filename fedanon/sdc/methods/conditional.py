"""What the methods share that draw columns X anew from what other columns S, which stay, say about them.

S may be any columns that are published: numbers as they are, categories as one indicator per category but the first.
With ``given = anova`` the columns that explain X are chosen: from all that fit, the one that explains the least is left
out until each that remains explains X beyond chance (Morais 2022, section 7.5, code 40).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedanon.data.cells import Nodes
from fedanon.data.schema import FreeText, Numeric, Role
from fedanon.data.table import Table, missing_mask, numbers
from fedanon.errors import ConfigError
from fedanon.fields import listed, parameter
from fedanon.sdc.methods.base import Columns
from fedanon.sdc.methods.numeric import NumericPerturbation, known_numbers
from fedanon.sdc.methods.projections import regression, standardized
from fedanon.types import FloatArray

#: what stands for the choice of S by analysis of variance
ANOVA = "anova"
#: a column is kept in S if chance explains as much as rarely as this
SIGNIFICANCE = 0.05
#: most categories of a column that is chosen by itself
MOST_CATEGORIES = 50


@dataclass(frozen=True, kw_only=True)
class ConditionalPerturbation(NumericPerturbation):
    """Base of the methods that draw the columns X anew given other columns S."""

    given: str = parameter(
        "", help="columns that stay and explain the others; all other numeric ones if empty, `anova` chooses them"
    )

    def rows_needed(self, p: int, q: int) -> int:
        """With fewer rows the given columns would explain the others by chance, and X would be published unchanged."""
        return 1 + p + q

    def chosen(self, table: Table, fitting: list[str], what: str) -> list[str]:
        """Return the columns to change; unless they are named, the given ones are not among them."""
        return super().chosen(table, [name for name in fitting if self.columns or name not in listed(self.given)], what)

    def explained_by(self, table: Table, current: Columns, names: list[str]) -> tuple[tuple[str, ...], FloatArray]:
        """Return the design matrix of S, with the column each of its columns comes from."""
        wanted = listed(self.given)
        if wanted == [ANOVA]:
            return self._significant(table, current, names)
        unfit = [name for name in wanted if name in names or not _is_usable(table, name)]
        if unfit:
            raise ConfigError(
                f"The given columns of {self.name!r} must be numeric or categorical columns that stay unchanged. "
                f"These are not: {', '.join(unfit)}."
            )
        numeric = [c.name for c in table.columns if isinstance(c.attribute, Numeric) and c.name not in names]
        return _joined([(name, design_of(table, current, name)) for name in wanted or numeric], len(table))

    def _significant(self, table: Table, current: Columns, names: list[str]) -> tuple[tuple[str, ...], FloatArray]:
        x = known_numbers(table, current, names)
        candidates = []
        for name in table.frame.columns:
            if name not in names and name != table.schema.target and _is_usable(table, str(name)):
                block = design_of(table, current, str(name))
                if 0 < block.shape[1] < MOST_CATEGORIES:
                    candidates.append((str(name), block))
        whole = ~np.isnan(np.column_stack([x, *(block for _, block in candidates)])).any(axis=1)
        kept = significant_blocks(x[whole], [block[whole] for _, block in candidates])
        return _joined([candidates[i] for i in kept], len(table))


def _is_usable(table: Table, name: str) -> bool:
    if name not in table.schema.names or name not in table.frame:
        return False
    attribute = table.schema[name]
    return attribute.role not in (Role.IDENTIFYING, Role.UNDECIDED) and not isinstance(attribute, FreeText)


def _joined(blocks: Sequence[tuple[str, FloatArray]], rows: int) -> tuple[tuple[str, ...], FloatArray]:
    names = tuple(name for name, block in blocks for _ in range(block.shape[1]))
    return names, np.column_stack([block for _, block in blocks]) if names else np.empty((rows, 0))


def design_of(table: Table, current: Columns, name: str) -> FloatArray:
    """Return a column as numbers: itself, or an indicator of every category that occurs but the first.

    A quasi-identifier has the cells earlier steps left, any other column its own values. A missing category is one.
    """
    attribute = table.schema[name]
    if name in current:
        cells = current[name]
        if not isinstance(cells, Nodes):
            return known_numbers(table, current, [name])
        codes = np.unique(cells.nodes, return_inverse=True)[1]
    else:
        column = table.frame[name]
        absent = missing_mask(column, table.schema)
        if isinstance(attribute, Numeric):
            return numbers(column, attribute, absent)[:, None]
        codes = pd.factorize(column.astype("string").where(~absent), sort=True, use_na_sentinel=False)[0]
    return np.asarray(codes[:, None] == np.arange(1, codes.max() + 1), dtype=np.float64)


def significant_blocks(x: FloatArray, blocks: Sequence[FloatArray], level: float = SIGNIFICANCE) -> list[int]:
    """Return which blocks of columns explain ``x``: the least significant is dropped until all are significant."""
    kept = list(range(len(blocks)))
    while kept:
        values = [_p_value(x, [blocks[j] for j in kept if j != i], blocks[i]) for i in kept]
        worst = int(np.argmax(values))
        if values[worst] <= level:
            break
        del kept[worst]
    return kept


def _p_value(x: FloatArray, others: Sequence[FloatArray], block: FloatArray) -> float:
    r"""Return the chance that a block explains as much of ``x`` beyond the others: Pillai's trace as an F statistic."""
    try:
        from scipy.stats import f
    except ImportError:
        raise ConfigError("The choice of given columns needs scipy: pip install 'fedanon[harness]'.") from None

    scores = standardized(x).scores
    n, p = x.shape
    less = np.column_stack(others) if others else np.empty((n, 0))
    before, after = (regression(scores, s).residuals for s in (less, np.column_stack([less, block])))
    gained = _rank(np.column_stack([less, block])) - _rank(less)
    left = n - 1 - _rank(np.column_stack([less, block]))
    if not gained or left <= p:
        return 1.0
    error, total = after.T @ after, before.T @ before
    trace = float(np.trace((total - error) @ np.linalg.pinv(total)))
    s, m, free = min(p, gained), (abs(p - gained) - 1) / 2, (left - p - 1) / 2
    statistic = (2 * free + s + 1) / (2 * m + s + 1) * trace / max(s - trace, 1e-300)
    return float(f.sf(statistic, s * (2 * m + s + 1), s * (2 * free + s + 1)))


def _rank(s: FloatArray) -> int:
    return int(np.linalg.matrix_rank(standardized(s).scores)) if s.shape[1] else 0
