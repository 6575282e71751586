"""Inference and linkability: attacks by the released records nearest to a person.

Knows: the quasi-identifiers of a person, all of them (:class:`Inference`), or in two separate halves
(:class:`Linkability`). Does: finds the nearest released records, and takes their most common sensitive value, or checks
whether both halves lead to the same record. Judged by: the rate on people in the release against that on people
outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, require_members
from fedanon.attacks.context import AttackContext, Members
from fedanon.attacks.sensitive_values import sensitive_column, values_of
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.metrics.distances import record_distances
from fedanon.release.release import Release
from fedanon.types import FloatArray

#: a column with more values than this cannot be guessed by naming one of them
MOST_VALUES = 1000
#: how many distances are held in memory at once
CHUNK = 4_000_000
#: distances that differ by rounding alone are equal
ROUNDING = 1e-9


@ATTACKS.register("inference")
@dataclass(frozen=True, kw_only=True)
class Inference(Attack):
    r"""Share of the people whose sensitive value is the most common one among the released records nearest to them.

    .. math:: \frac1n \sum_i \Big[ s_i = \arg\max_v \sum_{c \in N(i)} n_{cv} \Big]

    over the classes :math:`N(i)` nearest to person i by all quasi-identifiers; equally common values are drawn from.
    Baseline: the same guess for people who are not in the release. What is guessed of them follows from what the
    release says of the population, not from their own record, so only the difference is a leak (Giomi et al. 2023,
    whose code takes a naive guess as the baseline instead). The detail ``majority``: the commonest value for everyone.
    """

    title = "Inference"
    meaning = "A sensitive value is guessed better for people in the release than for people outside."
    target = "release"

    targets: int = parameter(3000, help="people whose value is guessed, in the release and outside", at_least=1)
    column: str = parameter("", help="sensitive column; the schema's first by default")

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Guess for members and for the control."""
        name = sensitive_column(context.table.schema, self.column)
        members = require_members(context)
        frames = members.release.passthrough, members.table.frame, members.control.frame
        (published, inside, outside), _, size = values_of(frames, context.table.schema, name)
        if size > MOST_VALUES:
            raise NotApplicableError(f"The column {name!r} has {size} different values.")
        counts = _count_values(members, published, size)
        hits = _guessed(members, members.table, inside, counts, _draw_rows(members.table, self.targets, rng))
        control = _guessed(members, members.control, outside, counts, _draw_rows(members.control, self.targets, rng))
        majority = float(np.mean(inside == counts.sum(axis=0).argmax()))
        return Finding.from_tries(
            hits, float(control.mean()), details={"majority": majority, "targets_outside": float(len(control))}
        )


def _count_values(members: Members, published: NDArray[np.int32], size: int) -> FloatArray:
    """Count the released records of each class (rows) with each value."""
    classes = members.release.classes
    shown = ~classes.suppressed
    flat = classes.labels[shown].astype(np.int64) * size + published[shown]
    return np.bincount(flat, minlength=classes.count * size).reshape(-1, size).astype(np.float64)


def _guessed(
    members: Members, table: Table, true: NDArray[np.int32], counts: FloatArray, rows: NDArray[np.int64]
) -> FloatArray:
    """Compute the chance with which the value of each record is guessed."""
    chance = np.empty(len(rows))
    for part, near in nearest_classes(members.release, table, rows, range(len(table.columns))):
        found = near @ counts
        best = found == found.max(axis=1, keepdims=True)
        own = best[np.arange(len(best)), true[rows[part]]]
        chance[part] = own / best.sum(axis=1)
    return chance


@ATTACKS.register("linkability")
@dataclass(frozen=True, kw_only=True)
class Linkability(Attack):
    r"""How often both parts of what is known of a person lead to the same released record.

    .. math:: \frac1n \sum_i \frac{|N_A(i) \cap N_B(i)|}{|N_A(i)| \, |N_B(i)|}

    The quasi-identifiers are divided at random into two sets A and B; :math:`N_A(i)` are the released records nearest
    to person i by the columns of A alone, and each party draws one of its nearest (Giomi et al. 2023, with one
    neighbor and ties drawn). Baseline: the same for people who are not in the release.
    """

    title = "Linkability"
    meaning = "Two data sets that know different things of a person are joined through the release."
    target = "release"

    targets: int = parameter(2000, help="people who are looked for, in the release and outside", at_least=1)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Look for members and for the control."""
        members = require_members(context)
        width = len(members.table.columns)
        if width < 2:
            raise NotApplicableError("It needs two quasi-identifiers.")
        columns = rng.permutation(width)
        halves = columns[: width // 2].tolist(), columns[width // 2 :].tolist()
        inside = _draw_rows(members.table, self.targets, rng)
        hits = _linked(members, members.table, inside, halves)
        outside = _linked(members, members.control, _draw_rows(members.control, self.targets, rng), halves)
        return Finding.from_tries(hits, float(outside.mean()), details={"targets_outside": float(len(outside))})


def _draw_rows(table: Table, most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw at most ``most`` rows without repetition, in order."""
    return np.sort(rng.permutation(len(table))[:most])


def _linked(
    members: Members, table: Table, rows: NDArray[np.int64], halves: tuple[Sequence[int], Sequence[int]]
) -> FloatArray:
    """Compute the chance that both halves of each record lead to the same released one."""
    sizes = members.release.classes.sizes.astype(np.float64)
    chance = np.empty(len(rows))
    first, second = (nearest_classes(members.release, table, rows, half) for half in halves)
    for (part, left), (_, right) in zip(first, second, strict=True):
        chance[part] = ((left & right) @ sizes) / ((left @ sizes) * (right @ sizes))
    return chance


def nearest_classes(
    release: Release, table: Table, rows: NDArray[np.int64], columns: Sequence[int]
) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """Find the classes of the release nearest to the records ``rows`` of ``table``, chunk by chunk.

    Parameters
    ----------
    release : what the attacker holds; not necessarily made from ``table``, but with the same columns.
    table : people whose quasi-identifiers are known.
    rows : those of them that are looked for.
    columns : quasi-identifiers to compare by, with :func:`fedanon.metrics.distances.record_distances`.

    Yields
    ------
    The part of ``rows``, and a mask with one row per record and one column per class of ``release``.
    """
    by_code = [_distances_of_codes(release, table, column) for column in columns]
    step = max(1, CHUNK // max(release.classes.count, 1))
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        total = np.zeros((part.stop - start, release.classes.count))
        for column, (cell_of, distance) in zip(columns, by_code, strict=True):
            total += distance[table.codes[rows[part], column]][:, cell_of]
        yield part, total <= total.min(axis=1, keepdims=True) + ROUNDING


def _distances_of_codes(release: Release, table: Table, column: int) -> tuple[NDArray[np.int32], FloatArray]:
    """Return the distinct cell of every class, and the distance of every code (rows) to each of these cells."""
    coded, classes = table.columns[column], release.classes
    cells = release.cells[coded.name].select(release.groups.labels[classes.first_rows])
    equal = Groups.equal_rows(cells.keys())
    return equal.labels, np.ascontiguousarray(record_distances(cells.select(equal.first_rows), coded).T)
