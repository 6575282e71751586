"""Rearrangement: people of a series who change cohorts, where all lose less by it and nobody's safety rests on them.

Someone who changes has stays in several cohorts. Nobody counts on them in any of these from then on, and they
themselves need the same other value in all of them (:mod:`fedanon.privacy.exchanges`); each change is judged so before
it is made. A newcomer has no past, and changes freely.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fedanon.anonymizers.cohort_boxes import CohortBoxes
from fedanon.anonymizers.cohort_stays import CohortStays
from fedanon.data.table import Table
from fedanon.privacy.series import Stay
from fedanon.types import BoolArray, FloatArray, IndexArray

#: how often all people are gone through, and how many cohorts each of them tries
SWEEPS, TRIES = 6, 8
#: what a change must gain, as a share of what suppressing a row loses: of a newcomer, and of someone
#: with a past, on whom nobody can count any more (chosen on NHANES, among 0.1, 0.6 and no such changes)
LEAST_GAIN, LEAST_GAIN_OF_BOUND = 1e-9, 0.6


class Rearrangement:
    """Moves and exchanges of people between cohorts, each of which loses less and leaves everyone safe.

    Parameters
    ----------
    table : of the release to come.
    who : pseudonym of the person of each row.
    numbers : number of what each row says in the carried columns.
    boxes, standing : of cohorts that are all safe; kept up to date.
    k : least number of people a cohort may be left with.
    """

    def __init__(
        self,
        table: Table,
        who: Sequence[str],
        numbers: Sequence[int],
        boxes: CohortBoxes,
        standing: CohortStays,
        k: int,
    ) -> None:
        self._who, self._numbers, self._boxes, self._standing, self._k = who, np.array(numbers), boxes, standing, k
        self._release = standing.release
        self._limit = len(table.columns)
        known = {stay.person for stays in standing.stays for stay in stays if stay.start < self._release}
        self._has_past: BoolArray = np.array([person in known for person in who], dtype=bool)

    def run(self) -> None:
        """Fill cohorts short of k people, then go through everyone, the costliest first, until no one moves."""
        if len(self._boxes.lasting) < 2:
            return
        for _ in range(SWEEPS):
            filled = sum([self._fill(int(c)) for c in self._short()])
            if not sum([self._improve(row) for row in self._costliest()]) + filled:
                return

    # ---- people who gain by a move --------------------------------------------------------------

    def _costliest(self) -> list[int]:
        """Rows whose cohort would lose less without them by enough, the costliest first."""
        rows = np.flatnonzero(self._boxes.cohort_of_row >= 0)
        gained = self._boxes.gained(rows)
        order = np.argsort(-gained, kind="stable")
        return [int(rows[at]) for at in order if gained[at] > self._least_gain(int(rows[at]))]

    def _least_gain(self, row: int) -> float:
        return LEAST_GAIN if not self._has_past[row] else LEAST_GAIN_OF_BOUND * self._limit

    def _improve(self, row: int) -> bool:
        """Move a person, or exchange them with another; whether that was possible."""
        own, least = int(self._boxes.cohort_of_row[row]), self._least_gain(row)
        gain = float(self._boxes.gained(np.array([row]))[0])
        if gain <= least:
            return False
        lasting = self._boxes.lasting
        others = lasting[lasting != own]
        added = self._boxes.added(np.array([row]), others)
        near = np.argsort(added, kind="stable")[:TRIES]
        if self._boxes.sizes[own] > self._k:
            for at in near:
                if added[at] >= gain - least:
                    break
                if self._try_move({row: int(others[at])}):
                    return True
        return self._exchange(row, others[near], least)

    def _exchange(self, row: int, cohorts: IndexArray, least: float) -> bool:
        """Exchange a person with the one of the same value in some cohorts with whom most is gained."""
        own = int(self._boxes.cohort_of_row[row])
        rows = np.array([other for c in cohorts for other in self._boxes.members[c]], dtype=np.int64)
        rows = rows[self._numbers[rows] == self._numbers[row]]
        if not len(rows):
            return False
        gain = self._boxes.gained_by_exchange(row, rows)
        for at in np.argsort(-gain, kind="stable")[:TRIES]:
            other = int(rows[at])
            if gain[at] <= least:
                return False
            if gain[at] > least + self._least_gain(other) and self._try_move(
                {row: int(self._boxes.cohort_of_row[other]), other: own}
            ):
                return True
        return False

    # ---- cohorts that are too small -------------------------------------------------------------

    def _short(self) -> IndexArray:
        lasting, sizes = self._boxes.lasting, self._boxes.sizes
        return lasting[sizes[lasting] < self._k]

    def _fill(self, c: int) -> bool:
        """Move the nearest newcomers to a cohort until it has k, if that loses less than merging it with another."""
        others = self._boxes.lasting
        left = float(self._boxes.added_by_merging(c, others[others != c]).min())
        moved = list[tuple[int, int]]()
        while self._boxes.sizes[c] < self._k:
            found = next(self._nearest_movable(c, left), None)
            if found is None:
                for row, old in reversed(moved):
                    self._carry_out(self._changes({row: old}), {row: old})
                return False
            row, cost, old = found
            left -= cost
            moved.append((row, old))
        return True

    def _nearest_movable(self, c: int, most: float) -> Iterator[tuple[int, float, int]]:
        """Move a newcomer to a cohort at least cost; the row, the cost, and where they were."""
        placed = np.flatnonzero(self._boxes.cohort_of_row >= 0)
        homes = self._boxes.cohort_of_row[placed]
        rows = placed[(homes != c) & (self._boxes.sizes[homes] > self._k) & ~self._has_past[placed]]
        cost: FloatArray = self._boxes.added(rows, np.array([c])) - self._boxes.gained(rows)
        for at in np.argsort(cost, kind="stable")[: 4 * TRIES]:
            row = int(rows[at])
            old = int(self._boxes.cohort_of_row[row])
            if cost[at] < most and self._try_move({row: c}):
                yield row, float(cost[at]), old

    # ---- moving ---------------------------------------------------------------------------------

    def _try_move(self, targets: dict[int, int]) -> bool:
        """Put rows into other cohorts, if everyone stays safe."""
        changes = self._changes(targets)
        if not self._standing.allows(changes, [self._who[row] for row in targets]):
            return False
        self._carry_out(changes, targets)
        return True

    def _carry_out(self, changes: dict[int, list[Stay]], targets: dict[int, int]) -> None:
        self._standing.change(changes, [self._who[row] for row in targets])
        for row, c in targets.items():
            self._boxes.leave(row)
            self._boxes.join(row, c)

    def _changes(self, targets: dict[int, int]) -> dict[int, list[Stay]]:
        """The stays of all cohorts that are touched if rows go to others."""
        changes: dict[int, list[Stay]] = {}
        for row, c in targets.items():
            person = self._who[row]
            for home in {*self._standing.cohorts_of(person), c}:
                changes.setdefault(home, list(self._standing.stays[home]))
            old = int(self._boxes.cohort_of_row[row])
            changes[old] = self._without(person, changes[old])
            changes[c] = self._with(person, int(self._numbers[row]), changes[c])
        return changes

    def _without(self, person: str, stays: Sequence[Stay]) -> list[Stay]:
        """A cohort that someone leaves: a stay that began in this release has never been."""
        return [
            replace(stay, stop=self._release) if stay.person == person and stay.stop is None else stay
            for stay in stays
            if stay.person != person or stay.start < self._release
        ]

    def _with(self, person: str, value: int, stays: Sequence[Stay]) -> list[Stay]:
        """A cohort that someone joins; who left it in this release has never left."""
        back = [stay.person == person and stay.stop == self._release for stay in stays]
        if any(back):
            return [replace(stay, stop=None) if here else stay for stay, here in zip(stays, back, strict=True)]
        return [*stays, Stay(person, value, self._release)]
