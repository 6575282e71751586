"""Inference: the sensitive value of a person is guessed from the released records that are most like them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, NotApplicableError, require_members
from fedanon.attacks.context import AttackContext, Members
from fedanon.attacks.sensitive_values import sensitive_column, values_of
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.fields import parameter
from fedanon.metrics.distances import record_distances
from fedanon.release.release import Release
from fedanon.types import FloatArray

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

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Guess for members and for people of the control."""
        name = sensitive_column(context.table.schema, self.column)
        members = require_members(context)
        frames = members.release.rest, members.table.frame, members.control.frame
        (published, inside, outside), _, size = values_of(frames, context.table.schema, name)
        if size > MOST_VALUES:
            raise NotApplicableError(f"The column {name!r} has {size} different values.")
        counts = _counts(members, published, size)
        hits = _guessed(members, members.table, inside, counts, drawn_rows(members.table, self.targets, rng))
        control = _guessed(members, members.control, outside, counts, drawn_rows(members.control, self.targets, rng))
        majority = float(np.mean(inside == counts.sum(axis=0).argmax()))
        return Finding.from_tries(
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


# ---- Linkability ---------------------------------------------------------------------------------


@ATTACKS.register("linkability")
@dataclass(frozen=True, kw_only=True)
class Linkability(Attack):
    r"""How often both parts of what is known of a person lead to the same released record.

    .. math:: \frac1n \sum_i \frac{|N_A(i) \cap N_B(i)|}{|N_A(i)| \, |N_B(i)|}

    The quasi-identifiers are divided at random into two sets A and B; :math:`N_A(i)` are the released records nearest
    to person i by the columns of A alone, and each party draws one of its nearest (Giomi et al. 2023, with one
    neighbour and ties drawn). Baseline: the same for people who are not in the release.
    """

    title = "Linkability"
    meaning = "Two data sets that know different things of a person are joined through the release."
    target = "release"

    targets: int = parameter(2000, help="people who are looked for, in the release and outside", at_least=1)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Look for members and for people of the control."""
        members = require_members(context)
        width = len(members.table.columns)
        if width < 2:
            raise NotApplicableError("It needs two quasi-identifiers.")
        columns = rng.permutation(width)
        halves = columns[: width // 2].tolist(), columns[width // 2 :].tolist()
        inside = drawn_rows(members.table, self.targets, rng)
        hits = _linked(members, members.table, inside, halves)
        outside = _linked(members, members.control, drawn_rows(members.control, self.targets, rng), halves)
        return Finding.from_tries(hits, float(outside.mean()), details={"targets_outside": float(len(outside))})


def drawn_rows(table: Table, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """At most so many rows, drawn without repetition, in order."""
    return np.sort(rng.permutation(len(table))[:most])


def _linked(
    members: Members, table: Table, rows: NDArray[np.int64], halves: tuple[Sequence[int], Sequence[int]]
) -> FloatArray:
    """The chance that both halves of each record lead to the same released one."""
    sizes = members.release.classes.sizes.astype(np.float64)
    chance = np.empty(len(rows))
    first, second = (nearest_classes(members.release, table, rows, half) for half in halves)
    for (part, left), (_, right) in zip(first, second, strict=True):
        chance[part] = ((left & right) @ sizes) / ((left @ sizes) * (right @ sizes))
    return chance


# ---- Distances of known records to everything a release publishes, by some of the quasi-identifiers ---

#: how many distances are held in memory at once
CHUNK = 4_000_000
#: distances that differ by rounding alone are equal
ROUNDING = 1e-9


def nearest_classes(
    release: Release, table: Table, rows: NDArray[np.int64], columns: Sequence[int]
) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """For the records ``rows`` of ``table``, chunk by chunk, which classes of the release are nearest.

    Parameters
    ----------
    release : what the attacker has; not necessarily made from ``table``, but of the same columns.
    table : people of whom the quasi-identifiers are known.
    rows : those of them that are looked for.
    columns : by which quasi-identifiers; distances are those of :func:`fedanon.metrics.distances.record_distances`.

    Yields
    ------
    The part of ``rows``, and a mask with one row a record and one column a class of ``release``.
    """
    by_code = [_to_codes(release, table, column) for column in columns]
    step = max(1, CHUNK // max(release.classes.count, 1))
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        total = np.zeros((part.stop - start, release.classes.count))
        for column, (cell_of, distance) in zip(columns, by_code, strict=True):
            total += distance[table.codes[rows[part], column]][:, cell_of]
        yield part, total <= total.min(axis=1, keepdims=True) + ROUNDING


def _to_codes(release: Release, table: Table, column: int) -> tuple[NDArray[np.int32], FloatArray]:
    """The distinct cell of every class, and the distance of every code of the column (rows) to each of these cells."""
    coded, classes = table.columns[column], release.classes
    cells = release.cells[coded.name].select(release.groups.labels[classes.first_rows])
    equal = Groups.equal_rows(cells.keys())
    return equal.labels, np.ascontiguousarray(record_distances(cells.select(equal.first_rows), coded).T)
