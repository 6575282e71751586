"""Inference: the sensitive value of a person is guessed from the released records that are most like them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, NotApplicableError, members_of
from fedanon.attacks.linkability import drawn_rows
from fedanon.attacks.nearest_classes import nearest_classes
from fedanon.attacks.scene import Members, Scene
from fedanon.attacks.sensitive_pair import sensitive_column, values_of
from fedanon.data.hierarchy import FloatArray
from fedanon.data.table import Table
from fedanon.parameters import parameter

#: a column with more values than this is no matter of guessing one of them
MOST_VALUES = 1000


@ATTACKS.register("inference")
@dataclass(frozen=True, kw_only=True)
class Inference(Attack):
    r"""Share of the people whose sensitive value is the most common one among the released records nearest to them.

    .. math:: \frac1n \sum_i \Big[ s_i = \arg\max_v \sum_{c \in N(i)} n_{cv} \Big]

    over the classes :math:`N(i)` nearest to person i by all quasi-identifiers; equally common values are drawn from.
    Baseline: the same guess for people who are not in the release. What can be told of them follows from what the
    release says of the population, not from their own record, so only the difference is a leak (Giomi et al. 2023,
    whose code takes a naive guess for the baseline instead). The detail ``majority``: everyone has the commonest value.
    """

    title = "Inference"
    meaning = "A sensitive value is guessed better for people in the release than for people outside."
    target = "release"

    targets: int = parameter(3000, help="people whose value is guessed, in the release and outside", at_least=1)
    column: str = parameter("", help="sensitive column; the schema's first by default")

    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Guess for members and for people of the control."""
        name = sensitive_column(scene.table.schema, self.column)
        members = members_of(scene)
        frames = members.release.rest, members.table.frame, members.control.frame
        (published, inside, outside), _, size = values_of(frames, scene.table.schema, name)
        if size > MOST_VALUES:
            raise NotApplicableError(f"The column {name!r} has {size} different values.")
        counts = _counts(members, published, size)
        hits = _guessed(members, members.table, inside, counts, drawn_rows(members.table, self.targets, rng))
        control = _guessed(members, members.control, outside, counts, drawn_rows(members.control, self.targets, rng))
        majority = float(np.mean(inside == counts.sum(axis=0).argmax()))
        return Finding.of_tries(
            hits, float(control.mean()), details={"majority": majority, "targets_outside": float(len(control))}
        )


def _counts(members: Members, published: NDArray[np.int32], size: int) -> FloatArray:
    """Number of released records of each class (rows) with each value."""
    classes = members.release.classes
    shown = ~classes.suppressed
    flat = classes.labels[shown].astype(np.int64) * size + published[shown]
    return np.bincount(flat, minlength=classes.count * size).reshape(-1, size).astype(np.float64)


def _guessed(
    members: Members, table: Table, true: NDArray[np.int32], counts: FloatArray, rows: NDArray[np.int64]
) -> FloatArray:
    """The chance with which the value of each record is guessed."""
    chance = np.empty(len(rows))
    for part, near in nearest_classes(members.release, table, rows, range(len(table.columns))):
        found = near @ counts
        best = found == found.max(axis=1, keepdims=True)
        own = best[np.arange(len(best)), true[rows[part]]]
        chance[part] = own / best.sum(axis=1)
    return chance
