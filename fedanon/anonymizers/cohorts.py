"""Placement: which cohort of a series every person of the next table is shown in, and which leavers must stay shown.

People stay where they are. Then newcomers are placed, the nearest first: one where a leaver would otherwise be exposed
by the difference, as many as a cohort lacks to k people, and all others where they enlarge the cells least. A person
joins only where everyone who was ever in the cohort stays safe, and only if that loses less than suppressing the row.
Newcomers then change places as long as that loses less (:class:`Rearrangement`). What is still exposed is mended by
keeping leavers as counterfeit rows; with all of them kept, a cohort is as safe as it was before. Last, people for whom
the cells of all others would have to be wide are held back, where that loses less than the width.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.privacy.series import Cohort, History, Stay
from fedanon.types import BoolArray, FloatArray, IndexArray, IntArray

#: how many of the nearest cohorts a newcomer tries
TRIES = 8
#: a cohort with this many times k people takes newcomers only to keep leavers safe; others form cohorts of their own
FULL = 5
#: how many people at the edge of a cohort are held back at once, at most
EDGE = 4
#: how often newcomers are gone through to find better places, and how many of them each time, the costliest first
SWEEPS, COSTLIEST = 6, 150
#: instead of a cohort: never shown, shown with another value, and held back since all others are far away
NEWCOMER, CHANGED, FAR = -1, -2, -3
#: what counts as a gain
GAIN = 1e-9


class Placement:
    """The people of a table in the cohorts of a history.

    Parameters
    ----------
    table : the next one of the series, one row per person.
    who : pseudonym of the person of each row.
    numbers : number of what each row says in the carried columns.
    draft : the history, with the release to come already counted and all values numbered.
    k : least number of people of a class.
    """

    def __init__(self, table: Table, who: Sequence[str], numbers: Sequence[int], draft: History, k: int) -> None:
        self._table, self._who, self._numbers, self._draft, self._k = table, who, numbers, draft, k
        self._release = draft.releases - 1
        #: what suppressing a row loses
        self._limit = len(table.columns)
        self._stays = [list(cohort) for cohort in draft.cohorts]
        self._leaving: list[list[int]] = [[] for _ in draft.cohorts]
        self.cohort_of_row: IntArray = np.full(len(table), -1, dtype=np.int32)
        self._home = self._find_homes()
        self._settle()
        self._sizes: IndexArray = np.bincount(self.cohort_of_row[self.cohort_of_row >= 0], minlength=len(draft.cohorts))
        lasting, groups = np.flatnonzero(self._sizes), Groups.from_labels(self.cohort_of_row)
        self._low, self._high = np.zeros((2, len(draft.cohorts), table.codes.shape[1]), dtype=table.codes.dtype)
        self._low[lasting], self._high[lasting] = groups.minimum(table.codes), groups.maximum(table.codes)

    def place(self) -> None:
        """Place whom cohorts can take, and keep as counterfeits whom they must."""
        lasting: list[int] = np.flatnonzero(self._sizes).tolist()
        open_ = [c for c in lasting if not self._is_safe(c)]
        self._add_nearest(open_, lambda c: not self._is_safe(c))
        short = [c for c in lasting if self._sizes[c] < self._k and self._is_safe(c)]
        self._add_nearest(short, lambda c: bool(self._sizes[c] < self._k))
        self._join_nearest()
        Rearrangement(self).run()
        for c in lasting:
            self._keep_counterfeits(c)
        for c in lasting:
            self._hold_back_far(c)
        self._let_return()

    @property
    def cohorts(self) -> list[Cohort]:
        """The known cohorts after this release."""
        return [tuple(stays) for stays in self._stays]

    @property
    def waiting(self) -> IndexArray:
        """Rows of people who were never shown, and whom no cohort takes."""
        return np.flatnonzero((self.cohort_of_row < 0) & (self._home == NEWCOMER))

    def count_held_back(self, founding: BoolArray) -> dict[str, int]:
        """People who are not shown, by reason; ``founding`` marks those who are in cohorts of newcomers."""
        homes = self._home[(self.cohort_of_row < 0) & ~founding]
        return {
            "waiting": int((homes == NEWCOMER).sum()),
            "value changed": int((homes == CHANGED).sum()),
            "came back": int((homes >= 0).sum()),
            "far from all others": int((homes == FAR).sum()),
        }

    # ---- people who were here, and people who come ----------------------------------------------

    def _find_homes(self) -> IndexArray:
        """The cohort in which the person of each row was shown with the same value before; or why there is none."""
        known = {stay.person: (c, stay.value) for c, cohort in enumerate(self._stays) for stay in cohort}
        homes = np.full(len(self._who), NEWCOMER, dtype=np.int64)
        for row, person in enumerate(self._who):
            if person in known:
                cohort, value = known[person]
                homes[row] = cohort if value == self._numbers[row] else CHANGED
        return homes

    def _settle(self) -> None:
        """Find everyone who stays, with the value that was shown, and end the stays of all others."""
        row_of = {person: row for row, person in enumerate(self._who)}
        for c, stays in enumerate(self._stays):
            for at, stay in enumerate(stays):
                if stay.stop is not None:
                    continue
                row = row_of.get(stay.person)
                if row is not None and self._numbers[row] == stay.value:
                    stays[at], self.cohort_of_row[row] = stay.come_back(self._release), c
                else:
                    stays[at] = stay.leave(self._release)
                    self._leaving[c].append(at)

    def _is_safe(self, c: int) -> bool:
        return self._draft.is_safe(self._stays[c])

    def _fits(self, row: int, c: int) -> bool:
        return self._draft.is_safe([*self._stays[c], self._new_stay(row)])

    def _new_stay(self, row: int) -> Stay:
        return Stay(self._who[row], self._numbers[row], self._release)

    def _join(self, row: int, c: int) -> None:
        self._stays[c].append(self._new_stay(row))
        self.cohort_of_row[row] = c
        self._low[c] = np.minimum(self._low[c], self._table.codes[row])
        self._high[c] = np.maximum(self._high[c], self._table.codes[row])
        self._sizes[c] += 1

    # ---- what joining costs ---------------------------------------------------------------------

    def loss_of(self, rows: IndexArray | Sequence[int]) -> float:
        """What rows lose as one cohort, summed over them."""
        codes = self._table.codes[rows]
        return len(rows) * float(self._loss(codes.min(axis=0)[None], codes.max(axis=0)[None])[0]) if len(rows) else 0.0

    def _loss(self, low: IntArray, high: IntArray) -> FloatArray:
        columns = enumerate(self._table.columns)
        return np.asarray(np.sum([column.loss(low[:, i], high[:, i]) for i, column in columns], axis=0))

    def added_loss(self, rows: IndexArray, cohorts: IndexArray) -> FloatArray:
        """Loss that rows add to cohorts, one of each, or several of either to one of the other."""
        codes, low, high, sizes = self._table.codes[rows], self._low[cohorts], self._high[cohorts], self._sizes[cohorts]
        joint = self._loss(np.minimum(low, codes), np.maximum(high, codes))
        return np.asarray((sizes + 1) * joint - sizes * self._loss(low, high))

    def _nearest_fit(self, c: int) -> tuple[float, int, int] | None:
        """The unplaced row that joins a cohort at least cost and keeps everyone safe, with the cost and the cohort."""
        rows = self.waiting
        if not len(rows):
            return None
        cost = self.added_loss(rows, np.array([c]))
        tried = set[int]()
        for at in np.argsort(cost, kind="stable"):
            if cost[at] > self._limit:
                return None
            row = int(rows[at])
            if self._numbers[row] in tried:
                continue  # whether a newcomer fits depends on the value alone
            tried.add(self._numbers[row])
            if self._fits(row, c):
                return float(cost[at]), c, row
        return None

    # ---- placing --------------------------------------------------------------------------------

    def _add_nearest(self, cohorts: Sequence[int], lacks: Callable[[int], bool]) -> None:
        """Add the nearest row that fits to every cohort that lacks one, the cheapest first, again and again."""
        heap = [found for c in cohorts if (found := self._nearest_fit(c)) is not None]
        heapq.heapify(heap)
        while heap:
            _, c, row = heapq.heappop(heap)
            if not lacks(c):
                continue
            if self.cohort_of_row[row] < 0:
                self._join(row, c)
            if lacks(c) and (found := self._nearest_fit(c)) is not None:
                heapq.heappush(heap, found)

    def _join_nearest(self) -> None:
        """Let everyone else join the nearest cohort they fit, those who have one nearby first."""
        lasting = np.flatnonzero(self._sizes)
        rows: list[int] = self.waiting.tolist()
        if not len(lasting):
            return
        near = {row: float(self.added_loss(np.array([row]), lasting).min()) for row in rows}
        for row in sorted(rows, key=lambda row: near[row]):
            for c in self._nearest_cohorts(row, lasting):
                if self._fits(row, c):
                    self._join(row, c)
                    break

    def _nearest_cohorts(self, row: int, lasting: IndexArray) -> Iterator[int]:
        room = lasting[self._sizes[lasting] < FULL * self._k]
        if not len(room):
            return
        cost = self.added_loss(np.array([row]), room)
        for at in np.argsort(cost, kind="stable")[:TRIES]:
            if cost[at] <= self._limit:
                yield int(room[at])

    def _let_return(self) -> None:
        """Let people who were shown before return to their cohort if that harms neither them nor the others."""
        for row in np.flatnonzero((self.cohort_of_row < 0) & (self._home >= 0)).tolist():
            c = int(self._home[row])
            near = self._sizes[c] > 0 and self.added_loss(np.array([row]), np.array([c]))[0] <= self._limit
            if near and self._fits(row, c):
                self._join(row, c)

    def _hold_back_far(self, c: int) -> None:
        """Hold back people at the edges of a cohort while that loses less than the width they ask of all others."""
        while len(far := self._far_rows(np.flatnonzero(self.cohort_of_row == c))):
            for row in far.tolist():
                if not self._leave(row, c):
                    return

    def _far_rows(self, rows: IndexArray) -> IndexArray:
        """The rows at an edge of a cohort without which most is gained, beyond what suppressing them loses."""
        codes, most, best, far = self._table.codes[rows], self.loss_of(rows), GAIN, rows[:0]
        for column in codes.T:
            for order in (np.argsort(column, kind="stable"), np.argsort(-column, kind="stable")):
                for count in range(1, min(len(rows) - self._k, EDGE) + 1):
                    gain = most - self.loss_of(rows[order[count:]]) - count * self._limit
                    if gain > best:
                        best, far = gain, rows[order[:count]]
        return far

    def _leave(self, row: int, c: int) -> bool:
        """Hold back a person of a cohort, whose row stays as a counterfeit where it must; whether that is possible."""
        stays = self._stays[c]
        at = max(i for i, stay in enumerate(stays) if stay.person == self._who[row])
        stay = stays[at]
        if stay.start == self._release:
            if not self._draft.is_safe([*stays[:at], *stays[at + 1 :]]):
                return False
            del stays[at]
        else:
            stays[at] = stay.leave(self._release)
            if not self._is_safe(c):
                stays[at] = replace(stays[at], stop=None)
        self.cohort_of_row[row], self._home[row] = -1, FAR
        self._fit_box(c, np.flatnonzero(self.cohort_of_row == c))
        return True

    def _fit_box(self, c: int, rows: IndexArray | Sequence[int]) -> None:
        codes = self._table.codes[rows]
        self._low[c], self._high[c], self._sizes[c] = codes.min(axis=0), codes.max(axis=0), len(rows)

    # ---- what a rearrangement asks and does -----------------------------------------------------

    @property
    def newcomers(self) -> IndexArray:
        """Rows of the people whom cohorts took who were never shown before."""
        return np.flatnonzero((self.cohort_of_row >= 0) & (self._home == NEWCOMER))

    @property
    def lasting(self) -> IndexArray:
        """The cohorts that have people."""
        return np.flatnonzero(self._sizes)

    def value_of(self, row: int) -> int:
        """The number of what a row says in the carried columns."""
        return self._numbers[row]

    def may_lose(self, row: int, c: int) -> bool:
        """Whether a cohort keeps k people without a newcomer, and is as safe as with them."""
        without = [stay for stay in self._stays[c] if stay.person != self._who[row]]
        return bool(self._sizes[c] > self._k) and (self._draft.is_safe(without) or not self._is_safe(c))

    def may_take(self, row: int, c: int) -> bool:
        """Whether a cohort is safe with a newcomer."""
        return self._fits(row, c)

    def move(self, row: int, c: int) -> None:
        """Put a newcomer into another cohort."""
        old = int(self.cohort_of_row[row])
        self._stays[old] = [stay for stay in self._stays[old] if stay.person != self._who[row]]
        self._join(row, c)
        self._fit_box(old, np.flatnonzero(self.cohort_of_row == old))

    def _keep_counterfeits(self, c: int) -> None:
        """Keep leavers shown, the rarest values first, until the cohort is safe."""
        stays = self._stays[c]
        shown = [stay.value for stay in stays if stay.stop is None]
        for at in sorted(self._leaving[c], key=lambda at: shown.count(stays[at].value)):
            if self._is_safe(c):
                return
            stays[at] = replace(stays[at], stop=None)


class Rearrangement:
    """Newcomers who change places, each where the loss of two cohorts falls most, and never at the cost of safety.

    Whether a newcomer fits depends on the value alone: so two of the same value may always change places.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._members = {int(c): np.flatnonzero(placement.cohort_of_row == c).tolist() for c in placement.lasting}
        self._loss = {c: placement.loss_of(rows) for c, rows in self._members.items()}
        self._cohorts: IndexArray = np.array(sorted(self._members), dtype=np.int64)

    def run(self) -> None:
        """Go through the newcomers, the costliest first, until no one moves."""
        if len(self._cohorts) < 2:
            return
        for _ in range(SWEEPS):
            rows: set[int] = set(self._placement.newcomers.tolist())
            gain = {row: self._gain_without(row) for row in rows}
            costly = sorted((row for row in rows if gain[row] > GAIN), key=lambda row: (-gain[row], row))[:COSTLIEST]
            if not sum(self._improve(row, rows) for row in costly):
                return

    def _gain_without(self, row: int) -> float:
        c = int(self._placement.cohort_of_row[row])
        return self._loss[c] - self._placement.loss_of([other for other in self._members[c] if other != row])

    def _improve(self, row: int, rows: set[int]) -> bool:
        """Move a newcomer, or exchange them with another; whether that was possible."""
        placement, gain = self._placement, self._gain_without(row)
        if gain <= GAIN:
            return False
        added = placement.added_loss(np.array([row]), self._cohorts)
        nearest = np.argsort(added, kind="stable")[: 2 * TRIES]
        own = int(placement.cohort_of_row[row])
        cheaper = [int(self._cohorts[at]) for at in nearest if added[at] < gain - GAIN and self._cohorts[at] != own]
        if cheaper and placement.may_lose(row, own):
            for c in cheaper:
                if placement.may_take(row, c):
                    self._move(row, c)
                    return True
        return self._exchange(row, rows, [int(c) for c in self._cohorts[nearest] if c != own])

    def _exchange(self, row: int, rows: set[int], cohorts: Sequence[int]) -> bool:
        """Exchange a newcomer with the one of the same value in some cohorts with whom most is gained."""
        placement, best, partner = self._placement, GAIN, -1
        own = int(placement.cohort_of_row[row])
        near = [(c, other) for c in cohorts for other in self._members[c] if other in rows]
        for c, other in near:
            if placement.value_of(other) == placement.value_of(row):
                mine = [other if each == row else each for each in self._members[own]]
                theirs = [row if each == other else each for each in self._members[c]]
                gain = self._loss[own] + self._loss[c] - placement.loss_of(mine) - placement.loss_of(theirs)
                if gain > best:
                    best, partner = gain, other
        if partner < 0:
            return False
        self._move(row, int(placement.cohort_of_row[partner]))
        self._move(partner, own)
        return True

    def _move(self, row: int, c: int) -> None:
        old = int(self._placement.cohort_of_row[row])
        self._placement.move(row, c)
        self._members[old].remove(row)
        self._members[c].append(row)
        for each in (old, c):
            self._loss[each] = self._placement.loss_of(self._members[each])
