"""SdcProblem: disclosure control as it is worked at, step by step, with a history that can be undone.

>>> from fedanon.datasets import load
>>> from fedanon.sdc import SdcProblem
>>> problem = SdcProblem(load("adult").select_rows(range(300)), keys=("sex", "race"), numbers=("capital-gain",))
>>> step = problem.apply("local_suppression", k=3).apply("additive_noise", c=0.2)
>>> step.history
['local_suppression(k=3)', 'additive_noise(c=0.2)']
>>> step.undo().history
['local_suppression(k=3)']
>>> before, after = step.risk("violations_3_sdcmicro")[::-1]
>>> after <= before
True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from fedanon.anonymizers.baselines import Identity
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.metrics import METRICS
from fedanon.release.release import Release
from fedanon.sdc.measures import CATEGORY_METRICS, KEY_METRICS, NUMBER_METRICS, Measured, Measures
from fedanon.sdc.methods.pipeline import Pipeline, with_masked
from fedanon.sdc.methods.step import Step
from fedanon.sdc.risk_profile import risk_profile
from fedanon.sdc.variables import Variables


@dataclass(frozen=True, eq=False)
class SdcProblem:
    """A table, what may be known of it, and the steps taken so far; R's ``sdcMicroObj``.

    It never changes: :meth:`apply` and :meth:`undo` return another one, so that variants can be held side by side.

    Parameters
    ----------
    table : the original.
    keys, numbers, categories : the three lists of columns (:mod:`fedanon.sdc.variables`); the keys are the schema's
        quasi-identifiers unless named.
    seed : of all steps.
    steps : those taken so far.
    """

    table: Table
    keys: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    seed: int = 0
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        for part in ("keys", "numbers", "categories"):
            object.__setattr__(self, part, tuple(getattr(self, part)))
        self.variables.refuse_shared()

    @property
    def variables(self) -> Variables:
        """The lists as they were given."""
        return Variables(self.keys, self.numbers, self.categories)

    # ---- steps ----------------------------------------------------------------------------------

    def apply(self, method: str, *columns: str, **settings: Any) -> SdcProblem:
        """Return the problem after one more step; the method runs when something is asked of it."""
        step = Step(method, columns, settings)
        step.anonymizer()  # bad settings are reported now
        return replace(self, steps=(*self.steps, step))

    def undo(self, steps: int = 1) -> SdcProblem:
        """Return the problem as it was ``steps`` steps before."""
        if not 0 <= steps <= len(self.steps):
            raise ConfigError(f"There are {len(self.steps)} steps to undo. Got {steps} instead.")
        return replace(self, steps=self.steps[: len(self.steps) - steps])

    @property
    def history(self) -> list[str]:
        """The steps as text, the first one first."""
        return [_as_text(step) for step in self.steps]

    @property
    def pipeline(self) -> Pipeline:
        """The steps as a chain."""
        return Pipeline(self.steps, self.variables)

    @cached_property
    def release(self) -> Release:
        """What the steps publish; the table itself before the first."""
        if self.steps:
            return self.pipeline.anonymize(self.table, rng=self.seed)
        return Identity().anonymize(with_masked(self.table, self.variables.named), rng=0)

    def to_frame(self) -> pd.DataFrame:
        """Return the table as it is published; R's ``extractManipData``."""
        return self.release.to_frame()

    # ---- risk and loss --------------------------------------------------------------------------

    @cached_property
    def measures(self) -> Measures:
        """Risk and loss of the release by the three lists."""
        if self.steps:
            return Measures.of_chain(self.pipeline, self.table, self.release)
        lists = replace(self.variables, keys=tuple(self.variables.keys_of(self.table.schema)))
        made = replace(self.release.provenance, parameters={"variables": {"used": lists.to_dict()}})
        return Measures(
            with_masked(self.table, self.variables.named), replace(self.release, provenance=made), self.table.schema
        )

    def risk(self, metric: str) -> Measured:
        """Return a metric after and before the steps; NaN before if it compares with the original."""
        return self.measures.measure([metric])[metric]

    def profile(self, **options: Any) -> dict[str, Any]:
        """Return everything about the risk by the keys (:func:`~fedanon.sdc.risk_profile.risk_profile`)."""
        return risk_profile(self.measures.keys.release, self.table.weights, self.table.households, **options)

    def summary(self, metrics: Iterable[str] = ()) -> pd.DataFrame:
        """Return one page: the usual metrics, and ``metrics`` in addition, modified beside original."""
        lists = self.measures.variables
        usual = [
            *(KEY_METRICS if lists.keys else ()),
            *(NUMBER_METRICS if lists.numbers else ()),
            *(CATEGORY_METRICS if self.measures.categories.table.columns else ()),
        ]
        found = self.measures.measure(dict.fromkeys([*usual, *metrics]))
        rows = {METRICS[name].title: pair for name, pair in found.items() if pair.modified == pair.modified}
        return pd.DataFrame(rows, index=["modified", "original"]).T

    def __repr__(self) -> str:
        """Return the lists and the history in a few lines."""
        lists = self.variables.to_dict() | {"keys": self.variables.keys_of(self.table.schema)}
        lines = [f"SdcProblem of {len(self.table):,} records"]
        lines += [f"  {part}: {', '.join(names) or 'none'}" for part, names in lists.items()]
        return "\n".join([*lines, *(f"  {i + 1}. {text}" for i, text in enumerate(self.history))])


def _as_text(step: Step) -> str:
    given = [f"{name}={value}" for name, value in step.settings.items()]
    return f"{step.method}({', '.join([*step.columns, *given])})"
