"""Months of releases of a changing table: what they give away and cost, made one by one and made as a series."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedanon.anonymizers.series import SeriesStep, release_next, start_history
from fedanon.attacks.context import AttackContext, SeenRelease
from fedanon.attacks.intersection import Intersection
from fedanon.data.schema import FreeText, Role, Schema
from fedanon.data.table import Table
from fedanon.federated.sources import data_of, whole_table
from fedanon.fields import parameter
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, MethodTask
from fedanon.metrics import evaluate
from fedanon.types import IndexArray

PERSON = "person of the series"


@TASKS.register("series")
@dataclass(frozen=True, kw_only=True)
class SeriesTask(MethodTask):
    """Releases month by month of a table which people leave, and to which as many come.

    Every month is released twice: alone, as if there were no other, and as the next of a series. ``certain_alone`` and
    ``certain_series`` are the numbers of people for whom :class:`fedanon.attacks.Intersection` of all releases leaves
    one value of ``column``, ``certain_first`` those whom the first release alone exposes; ``ncp_extra`` is by how much
    the mean loss of the months after the first is larger in the series, as a share of that alone; ``ncp_extra_last``
    is that of the last month, when cohorts are oldest.
    """

    column: str = parameter(help="sensitive column; other columns that are not quasi-identifiers are left out")
    l: int = parameter(2, help="values that must stay possible", at_least=2)  # noqa: E741  the model's own name
    months: int = parameter(12, help="number of releases", at_least=2)
    churn: float = parameter(0.1, help="share of the people who leave every month", at_least=0, at_most=0.9)
    returning: float = parameter(
        0.0, help="share of those who come who were there before", at_least=0, at_most=1, optional=True
    )

    def parameters(self) -> dict[str, Any]:
        """The method's parameters, with the diversity required."""
        return super().parameters() | {"require": f'l={self.l}:"{self.column}"'}

    def run(self) -> CellResult:
        """Release every month in both ways, and attack all releases of each."""
        table, method = with_people(whole_table(data_of(self)), self.column), self.anonymizer()
        history, alone, series = start_history(method, table.schema), list[SeenRelease](), list[SeenRelease]()
        losses, costs, released = list[tuple[float, float]](), list[tuple[float, float]](), None
        for month, rows in enumerate(self._months(len(table))):
            part = table.select_rows(rows)
            people = [f"{row:09d}" for row in rows]
            released = method.anonymize(part, rng=self.seed + month)
            step = release_next(method, part, people, history, rng=self.seed + month)
            history = step.history
            alone.append(SeenRelease.of(released, people))
            series.append(see_step(step))
            losses.append((ncp(part, released), ncp(step.table, step.release)))
            facts = step.claim.facts
            costs.append((facts["counterfeit_rows"] / len(step.table), sum(facts["held_back"].values()) / len(part)))
        assert released is not None
        context = AttackContext(table, released, None)
        found = {name: self._attack(context, tuple(seen)) for name, seen in (("alone", alone), ("series", series))}
        later = np.mean(losses[1:], axis=0)
        return CellResult(
            {
                "ncp_alone": float(later[0]),
                "ncp_series": float(later[1]),
                "ncp_extra": float(later[1] / later[0] - 1),
                "ncp_extra_last": losses[-1][1] / losses[-1][0] - 1,
                "certain_first": self._attack(context, (alone[0],))["certain_people"],
                **{f"certain_{name}": details["certain_people"] for name, details in found.items()},
                **{f"posterior_{name}": details["posterior"] for name, details in found.items()},
                "counterfeit_share": float(np.mean(costs[1:], axis=0)[0]),
                "counterfeit_share_last": costs[-1][0],
                "held_back_share": float(np.mean(costs[1:], axis=0)[1]),
            },
            curves={
                "ncp_alone": {month: one for month, (one, _) in enumerate(losses, 1)},
                "ncp_series": {month: other for month, (_, other) in enumerate(losses, 1)},
                "counterfeit_share": {month: one for month, (one, _) in enumerate(costs, 1)},
            },
        )

    def _months(self, people: int) -> Iterator[IndexArray]:
        """The rows of every month; people are drawn so that nobody has to come back who is not asked to."""
        rng = np.random.default_rng([self.seed, *b"series"])
        order = rng.permutation(people)
        size = int(people / (1 + self.churn * (self.months - 1)))
        inside, outside, former = order[:size], order[size:], order[:0]
        leaving = int(self.churn * size)
        yield np.sort(inside)
        for _ in range(self.months - 1):
            mixed = rng.permutation(inside)
            back = former[: int(self.returning * leaving)]
            new = outside[: leaving - len(back)]
            former = np.concatenate([former[len(back) :], mixed[:leaving]])
            inside, outside = np.concatenate([mixed[leaving:], new, back]), outside[len(new) :]
            yield np.sort(inside)

    def _attack(self, context: AttackContext, seen: tuple[SeenRelease, ...]) -> dict[str, float]:
        attack = Intersection(column=self.column)
        return dict(attack.run(replace(context, series=seen), np.random.default_rng(self.seed)).details)


def with_people(table: Table, column: str) -> Table:
    """The table with its rows as people, and ``column`` as all that it carries along."""
    kept = [replace(table.schema[column], role=Role.SENSITIVE)]
    attributes = (FreeText(PERSON, Role.IDENTIFYING), *table.schema.quasi_identifiers, *kept)
    schema = Schema(attributes, person_id=PERSON, missing_values=table.schema.missing_values)
    return replace(
        table, frame=table.frame[schema.published], schema=schema, persons=np.arange(len(table), dtype=np.int32)
    )


def ncp(table: Table, release: Any) -> float:
    """The loss of a release."""
    return float(evaluate(table, release, ["ncp"])["ncp"])


def see_step(step: SeriesStep) -> SeenRelease:
    """What an attacker sees of the last release of a series who also knows whose row is still shown after they left."""
    labels, shown = step.release.classes.labels.astype(np.int64), np.flatnonzero(~step.release.suppressed)
    label = dict(zip(step.claim.cohort_of_row[shown].tolist(), labels[shown].tolist(), strict=True))
    people = step.history.cohort_of_shown(step.history.releases - 1)
    classes = np.array([label[cohort] for cohort in people.values()], dtype=np.int64)
    return SeenRelease(list(people), classes, labels[shown], step.release.passthrough.iloc[shown])
