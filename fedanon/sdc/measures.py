"""Risk and loss of a chain of steps: every metric on the columns it is about, beside those of the original.

Re-identification is measured by the keys, closeness and deviation by the numbers, changed categories by the keys and
the categories that were randomized. A metric that compares with the original has no value there; one of risk has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from fedanon.anonymizers.baselines import Identity
from fedanon.data.schema import Numeric, Schema
from fedanon.data.table import Table
from fedanon.metrics import METRICS, evaluate
from fedanon.release.release import Release
from fedanon.sdc.methods.pipeline import Pipeline
from fedanon.sdc.metrics.categories import CategoryPair, category_pairs, conditional_entropy, contingency_distance
from fedanon.sdc.variables import Variables, part_of_release, part_of_table, variables_of

Kind = Literal["keys", "numbers", "categories", "all"]

#: what `sdc apply` reports of every list of columns
KEY_METRICS = (
    "violations_2",
    "violations_3",
    "violations_5",
    "violations_2_sdcmicro",
    "violations_3_sdcmicro",
    "violations_5_sdcmicro",
    "expected_reidentifications",
    "expected_reidentifications_sdcmicro",
    "global_risk",
    "individual_risk_max",
    "records_above_main_part",
    "household_expected_reidentifications",
)
NUMBER_METRICS = ("interval_risk_records", "dld", "il1", "il2", "eigenvalues_correlation", "temporal_change_1")
CATEGORY_METRICS = ("categories_changed", "contingency_ut1", "new_missing", "conditional_entropy")

_NUMBER_NAMES = {"dld", "il", "il2"}
_KEY_MODULES = ("individual_risk", "sdcmicro_risk", "diversity", "suda", "log_linear", "risk")
_NUMBER_MODULES = ("numeric_risk", "moments", "panel")


class Measured(NamedTuple):
    """A metric of what is published and of the original; NaN where it does not apply."""

    modified: float
    original: float


class Part(NamedTuple):
    """A table and its release with some of the columns as quasi-identifiers."""

    table: Table
    release: Release


@dataclass(frozen=True, eq=False)
class Measures:
    """What a release of a chain is measured by.

    Parameters
    ----------
    table : the original, every masked column being a quasi-identifier (:meth:`Pipeline.masked_table`).
    release : of the chain.
    schema : of the original as it was declared.
    """

    table: Table
    release: Release
    schema: Schema

    @classmethod
    def of_chain(cls, pipeline: Pipeline, table: Table, release: Release) -> Measures:
        """Return those of a pipeline's release of ``table``."""
        return cls(pipeline.masked_table(table), release, table.schema)

    @cached_property
    def variables(self) -> Variables:
        """The lists of the chain; all quasi-identifiers are keys where a release knows none."""
        return variables_of(self.release) or Variables(keys=tuple(column.name for column in self.table.columns))

    @cached_property
    def keys(self) -> Part:
        """The table and its release by its keys."""
        return self._part(list(self.variables.keys))

    @cached_property
    def numbers(self) -> Part:
        """By the numbers that were masked or, if none were, by all numeric columns."""
        numeric = [c.name for c in self.table.columns if isinstance(c.attribute, Numeric)]
        return self._part([name for name in numeric if name in self.variables.numbers] or numeric)

    @cached_property
    def categories(self) -> Part:
        """By all keys, and the categories that were randomized."""
        return self._part([*self.variables.keys, *self.variables.categories])

    @cached_property
    def everything(self) -> Part:
        """By every column that has cells of its own."""
        return Part(self.table, self.release)

    def _part(self, names: list[str]) -> Part:
        return Part(part_of_table(self.table, names), part_of_release(self.release, names, self.schema))

    def measure(self, names: Iterable[str]) -> dict[str, Measured]:
        """Return every metric on the columns it is about, and of the original table where it is a risk by keys."""
        found = {}
        for name in names:
            kind = kind_of(name)
            part: Part = {
                "keys": lambda: self.keys,
                "numbers": lambda: self.numbers,
                "categories": lambda: self.categories,
                "all": lambda: self.everything,
            }[kind]()
            modified = evaluate(part.table, part.release, [name])[name] if part.table.columns else np.nan
            found[name] = Measured(modified, self._original(name) if kind == "keys" else np.nan)
        return found

    def _original(self, name: str) -> float:
        return (
            evaluate(self._unchanged.table, self._unchanged.release, [name])[name]
            if self.keys.table.columns
            else np.nan
        )

    @cached_property
    def _unchanged(self) -> Part:
        table = part_of_table(self.table, self.variables.keys)
        return Part(table, Identity().anonymize(table, rng=0))

    # ---- categories, one by one ---------------------------------------------------------------------

    @cached_property
    def _pairs(self) -> dict[str, CategoryPair]:
        part = self.categories
        names = [c.name for c in part.table.columns if c.values is None]
        return dict(zip(names, category_pairs(part.table, part.release), strict=True))

    def randomized(self) -> list[dict[str, Any]]:
        """Return what happened to every randomized category: changes, what is lost, and counts before and after."""
        found = []
        for name in (name for name in self.variables.categories if name in self._pairs):
            pair = self._pairs[name]
            kept = pair.published >= 0
            changed = int((pair.original != pair.published).sum())
            found.append(
                {
                    "column": name,
                    "changed": changed,
                    "changed_share": changed / len(pair.original),
                    "conditional_entropy": conditional_entropy(pair.original[kept], pair.published[kept]),
                    "ut1": contingency_distance(pair, pair).ut1,
                    "counts": self._counts(name, pair),
                }
            )
        return found

    def _counts(self, name: str, pair: CategoryPair) -> list[dict[str, Any]]:
        labels = self.release.cells[name].hierarchy.labels  # type: ignore[union-attr]
        nodes = sorted({*np.unique(pair.original).tolist(), *np.unique(pair.published).tolist()} - {-1})
        return [
            {
                "category": labels[node],
                "before": int((pair.original == node).sum()),
                "after": int((pair.published == node).sum()),
            }
            for node in nodes
            if node < len(labels)
        ]

    def contingencies(self) -> list[dict[str, Any]]:
        """Return UT1 of every two randomized categories, a category with itself being its own counts (Table 27)."""
        names = [name for name in self.variables.categories if name in self._pairs]
        return [
            {"columns": [a, b], "ut1": contingency_distance(self._pairs[a], self._pairs[b]).ut1}
            for i, a in enumerate(names)
            for b in names[i:]
        ]


def kind_of(name: str) -> Kind:
    """Return which columns a metric is about."""
    metric = METRICS[name]
    module = (metric.of_view or metric.function).__module__.rpartition(".")[2]
    if name in _NUMBER_NAMES or module in _NUMBER_MODULES:
        return "numbers"
    if module in _KEY_MODULES:
        return "keys"
    return "categories" if module == "categories" else "all"
