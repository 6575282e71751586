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

A page shows plain data, and what was undone can be redone; the steps can be stored and taken again.

>>> page = step.undo().page()
>>> [(one["label"], one["changed"]) for one in page["history"]], page["undone"]
([('local_suppression(k=3)', {'race': 4})], ['additive_noise(c=0.2)'])
>>> page["risk"][1]
{'metric': 'violations_3', 'title': 'Violations of 3-anonymity', 'modified': 1.0, 'original': 4.0}
>>> SdcProblem.from_dict(step.table, step.undo().to_dict()).redo().history == step.history
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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

#: metrics of numbers that are risks
_NUMBER_RISKS = ("interval_risk_records", "dld")


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
    undone : those that :meth:`redo` takes again, the next one first.
    """

    table: Table
    keys: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    seed: int = 0
    steps: tuple[Step, ...] = ()
    undone: tuple[Step, ...] = ()

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
        return replace(self, steps=(*self.steps, step), undone=())

    def undo(self, steps: int = 1) -> SdcProblem:
        """Return the problem as it was ``steps`` steps before."""
        if not 0 <= steps <= len(self.steps):
            raise ConfigError(f"There are {len(self.steps)} steps to undo. Got {steps} instead.")
        kept = len(self.steps) - steps
        return replace(self, steps=self.steps[:kept], undone=(*self.steps[kept:], *self.undone))

    def redo(self, steps: int = 1) -> SdcProblem:
        """Return the problem with ``steps`` undone steps taken again."""
        if not 0 <= steps <= len(self.undone):
            raise ConfigError(f"There are {len(self.undone)} steps to redo. Got {steps} instead.")
        return replace(self, steps=(*self.steps, *self.undone[:steps]), undone=self.undone[steps:])

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
        rows = {METRICS[name].title: pair for name, pair in self._measured(metrics).items()}
        return pd.DataFrame(rows, index=["modified", "original"]).T

    def _measured(self, metrics: Iterable[str]) -> dict[str, Measured]:
        """Return the usual metrics that apply, and ``metrics``."""
        lists = self.measures.variables
        usual = [
            *(KEY_METRICS if lists.keys else ()),
            *(NUMBER_METRICS if lists.numbers else ()),
            *(CATEGORY_METRICS if self.measures.categories.table.columns else ()),
        ]
        found = self.measures.measure(dict.fromkeys([*usual, *metrics]))
        return {name: pair for name, pair in found.items() if pair.modified == pair.modified}

    # ---- plain data -----------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the lists and the steps, but not the table, as JSON can hold them."""
        steps = {name: [_as_given(step) for step in getattr(self, name)] for name in ("steps", "undone")}
        return {"variables": self.variables.to_dict(), "seed": self.seed, **steps}

    @classmethod
    def from_dict(cls, table: Table, document: Mapping[str, Any]) -> SdcProblem:
        """Return the problem that :meth:`to_dict` described, on its table."""
        try:
            lists = Variables.from_dict(document["variables"])
            taken, undone = (tuple(Step.from_dict(one) for one in document[name]) for name in ("steps", "undone"))
            seed = int(document["seed"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ConfigError("The stored steps cannot be read: 'variables', 'seed', 'steps' or 'undone'.") from None
        return cls(table, lists.keys, lists.numbers, lists.categories, seed, taken, undone)

    def page(self, metrics: Iterable[str] = ()) -> dict[str, Any]:
        """Return all that one page shows, as JSON can hold it: history, cells changed, risk and loss, notes.

        ``risk`` and ``loss`` are rows with a value of what is published and, of risks by the keys, of the original;
        None where a metric does not apply. ``metrics`` are shown in addition to the usual ones.
        """
        taken = self.release.provenance.parameters["steps"] if self.steps else []
        rows = [
            {
                "metric": name,
                "title": METRICS[name].title,
                "modified": _known(pair.modified),
                "original": _known(pair.original),
            }
            for name, pair in self._measured(metrics).items()
        ]
        return {
            "records": len(self.table),
            "variables": self.measures.variables.to_dict(),
            "seed": self.seed,
            "history": [
                {"label": label, **_as_given(step), "changed": dict(found["changed"])}
                for label, step, found in zip(self.history, self.steps, taken, strict=True)
            ],
            "undone": [_as_text(step) for step in self.undone],
            "risk": [row for row in rows if row["metric"] in (*KEY_METRICS, *_NUMBER_RISKS)],
            "loss": [row for row in rows if row["metric"] not in (*KEY_METRICS, *_NUMBER_RISKS)],
            "randomized": self.measures.randomized(),
            "notes": list(self.release.provenance.notes),
        }

    def __repr__(self) -> str:
        """Return the lists and the history in a few lines."""
        lists = self.variables.to_dict() | {"keys": self.variables.keys_of(self.table.schema)}
        lines = [f"SdcProblem of {len(self.table):,} records"]
        lines += [f"  {part}: {', '.join(names) or 'none'}" for part, names in lists.items()]
        return "\n".join([*lines, *(f"  {i + 1}. {text}" for i, text in enumerate(self.history))])


def _known(value: float) -> float | None:
    return None if value != value else float(value)


def _as_given(step: Step) -> dict[str, Any]:
    """Return what :meth:`Step.from_dict` reads, with the parameters that were given only."""
    return {"method": step.method, "columns": list(step.columns), "parameters": dict(step.settings)}


def _as_text(step: Step) -> str:
    given = [f"{name}={value}" for name, value in step.settings.items()]
    return f"{step.method}({', '.join([*step.columns, *given])})"
