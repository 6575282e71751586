"""Combined: several privacy models that a release promises together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.schema import Unit
from fedanon.data.table import Table
from fedanon.privacy.base import CellsOf, Evaluator, Forecast, PrivacyModel, Rows, View
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.types import BoolArray


@dataclass(frozen=True, kw_only=True)
class Combined:
    """k-anonymity and all of ``models`` at once.

    Parameters
    ----------
    k : the k-anonymity every method keeps.
    models : what is required beyond.
    """

    k: KAnonymity
    models: tuple[PrivacyModel, ...]

    def monotone(self) -> Combined:
        """Without the models that merging can break."""
        return replace(self, models=tuple(model for model in self.models if model.monotone))

    def evaluator(self, rows: Rows, published: BoolArray) -> Evaluator:
        """Say which classes keep all models; see :class:`PrivacyModel`."""
        evaluators = [model.evaluator(rows, published) for model in self.models]

        def satisfied(groups: Groups, cells: CellsOf) -> BoolArray:
            people = rows.people(groups) >= self.k.k
            return np.asarray(
                np.logical_and.reduce([people, *(evaluator.satisfied(groups, cells) for evaluator in evaluators)])
            )

        return Evaluator(satisfied, lambda groups: _Together([evaluator.forecast(groups) for evaluator in evaluators]))

    def check(self, view: View, table: Table) -> None:
        """Raise unless the release keeps every one."""
        self.k.check(view, table)
        for model in self.models:
            model.check(view, table)

    def describe(self, unit: Unit) -> str:
        """One sentence."""
        clauses = "; ".join(model.describe(unit) for model in self.models)
        return f"{self.k.describe(unit)}, and every equivalence class has {clauses}"

    def to_dict(self) -> dict[str, Any]:
        """For the manifest: that of k, and the list of all others."""
        k = self.k.to_dict()
        return {**k, "model": "combined", "all_of": [k, *(model.to_dict() for model in self.models)]}


class _Together(Forecast):
    """What all models would say; unions of classes of k people have k people."""

    def __init__(self, forecasts: list[Forecast]) -> None:
        self._forecasts = forecasts

    def satisfied(self, source: int, others: NDArray[np.int64]) -> BoolArray:
        """Whether all would be satisfied."""
        return np.asarray(np.logical_and.reduce([one.satisfied(source, others) for one in self._forecasts]))

    def merge(self, source: int, into: int) -> None:
        """Merge in all forecasts."""
        for one in self._forecasts:
            one.merge(source, into)
