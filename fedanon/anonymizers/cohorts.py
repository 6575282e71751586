"""Placement: which cohort of a series every person of the next table is shown in, and which leavers must stay shown.

People stay where they are. Then newcomers are placed, the nearest first: one where a leaver would otherwise be exposed
by the difference, as many as a cohort lacks to k people, and all others where they enlarge the cells least. A person
joins only where everyone who was ever in the cohort stays safe, and only if that loses less than suppressing the row.
What is still exposed is mended by keeping leavers as counterfeit rows; with all kept and no newcomers, a cohort
is as safe as it was before. Then people change places as long as that loses less (:mod:`.rearrangement`), and those
for whom the cells of all others would have to be wide are held back, where that loses less than the width.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from fedanon.anonymizers.cohort_boxes import CohortBoxes
from fedanon.anonymizers.cohort_stays import CohortStays
from fedanon.anonymizers.rearrangement import Rearrangement
from fedanon.data.table import Table
from fedanon.privacy.series import Cohort, History, Stay
from fedanon.types import BoolArray, IndexArray, IntArray

#: how many of the nearest cohorts a newcomer tries
TRIES = 8
#: a cohort with this many times k people takes newcomers only to keep leavers safe; others form cohorts of their own
FULL = 5
#: how many people at the edge of a cohort are held back at once, at most
EDGE = 4
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
        self._table, self._who, self._numbers, self._k = table, who, numbers, k
        self._release = draft.releases - 1
        #: what suppressing a row loses
        self._limit = len(table.columns)
        self._standing = CohortStays(draft)
        self._leaving: list[list[int]] = [[] for _ in draft.cohorts]
        self._home = self._find_homes()
        cohort_of_row: IntArray = np.full(len(table), -1, dtype=np.int32)
        self._settle(cohort_of_row)
        self._boxes = CohortBoxes(table, cohort_of_row, len(draft.cohorts))

    def place(self) -> None:
        """Place whom cohorts can take, and keep as counterfeits whom they must."""
        lasting: list[int] = self._boxes.lasting.tolist()
        sizes, is_safe = self._boxes.sizes, self._standing.is_safe
        open_ = [c for c in lasting if not is_safe(c)]
        self._add_nearest(open_, lambda c: not is_safe(c))
        short = [c for c in lasting if sizes[c] < self._k and is_safe(c)]
        self._add_nearest(short, lambda c: bool(sizes[c] < self._k))
        self._join_nearest()
        for c in lasting:
            self._keep_counterfeits(c)
        self._restore_exposed(lasting)
        rearrangement = Rearrangement(self._table, self._who, self._numbers, self._boxes, self._standing, self._k)
        rearrangement.run()
        for c in lasting:
            self._hold_back_far(c)
        self._let_return()
        self._join_nearest()

    @property
    def cohorts(self) -> list[Cohort]:
        """The known cohorts after this release."""
        return [tuple(stays) for stays in self._standing.stays]

    @property
    def cohort_of_row(self) -> IntArray:
        """The known cohort of each row; -1 where it is in none."""
        return self._boxes.cohort_of_row

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

    # ---- people who were here -------------------------------------------------------------------

    def _find_homes(self) -> IndexArray:
        """The cohort in which the person of each row was last shown with the same value; or why there is none."""
        known: dict[str, tuple[int, int, int]] = {}
        for c, cohort in enumerate(self._standing.stays):
            for stay in cohort:
                known[stay.person] = max(known.get(stay.person, (-1, 0, 0)), (stay.start, c, stay.value))
        homes = np.full(len(self._who), NEWCOMER, dtype=np.int64)
        for row, person in enumerate(self._who):
            if person in known:
                _, home, value = known[person]
                homes[row] = home if value == self._numbers[row] else CHANGED
        return homes

    def _settle(self, cohort_of_row: IntArray) -> None:
        """Find everyone who stays, with the value that was shown, and end the stays of all others."""
        row_of = {person: row for row, person in enumerate(self._who)}
        for c, stays in enumerate(self._standing.stays):
            for at, stay in enumerate(stays):
                if stay.stop is not None:
                    continue
                row = row_of.get(stay.person)
                if row is not None and self._numbers[row] == stay.value:
                    stays[at], cohort_of_row[row] = stay.come_back(self._release), c
                else:
                    stays[at] = stay.leave(self._release)
                    self._leaving[c].append(at)

    def _keep_counterfeits(self, c: int) -> None:
        """Keep leavers shown, the rarest values first, until the cohort is safe."""
        stays = list(self._standing.stays[c])
        shown = [stay.value for stay in stays if stay.stop is None]
        for at in sorted(self._leaving[c], key=lambda at: shown.count(stays[at].value)):
            if self._standing.is_safe(c):
                return
            stays[at] = replace(stays[at], stop=None)
            self._standing.change({c: stays})

    def _restore_exposed(self, lasting: Sequence[int]) -> None:
        """Put every cohort in which someone is still exposed back as it was before this release."""
        restored = set[int]()
        while exposed := [c for c in lasting if c not in restored and not self._standing.is_safe(c)]:
            restored.update(exposed)
            for c in exposed:
                new = [row for row in self._boxes.members[c] if self._home[row] == NEWCOMER]
                for row in new:
                    self._boxes.leave(row)
                stays = self._standing.stays[c]
                kept = [replace(stay, stop=None) if stay.stop == self._release else stay for stay in stays]
                movers = [self._who[row] for row in new]
                self._standing.change({c: [stay for stay in kept if stay.start < self._release]}, movers)

    # ---- people who come ------------------------------------------------------------------------

    def _try_join(self, row: int, c: int) -> bool:
        """Put a person into a cohort, if everyone stays safe."""
        person, stays = self._who[row], self._standing.stays
        changes = {home: stays[home] for home in self._standing.cohorts_of(person)}
        changes[c] = [*stays[c], Stay(person, self._numbers[row], self._release)]
        if not self._standing.allows(changes, [person]):
            return False
        self._standing.change(changes, [person])
        self._boxes.join(row, c)
        return True

    def _nearest_fit(self, c: int) -> tuple[float, int, int] | None:
        """The unplaced row that may join a cohort at least cost and keeps everyone safe, with the cost and cohort."""
        rows = self.waiting
        if not len(rows):
            return None
        cost = self._boxes.added(rows, np.array([c]))
        tried = set[int]()
        for at in np.argsort(cost, kind="stable"):
            if cost[at] > self._limit:
                return None
            row = int(rows[at])
            if self._numbers[row] in tried:
                continue  # whether a newcomer fits depends on the value alone
            tried.add(self._numbers[row])
            new = Stay(self._who[row], self._numbers[row], self._release)
            if self._standing.allows({c: [*self._standing.stays[c], new]}, [self._who[row]]):
                return float(cost[at]), c, row
        return None

    def _add_nearest(self, cohorts: Sequence[int], lacks: Callable[[int], bool]) -> None:
        """Add the nearest row that fits to every cohort that lacks one, the cheapest first, again and again."""
        heap = [found for c in cohorts if (found := self._nearest_fit(c)) is not None]
        heapq.heapify(heap)
        while heap:
            _, c, row = heapq.heappop(heap)
            if not lacks(c):
                continue
            if self.cohort_of_row[row] < 0:
                self._try_join(row, c)
            if lacks(c) and (found := self._nearest_fit(c)) is not None:
                heapq.heappush(heap, found)

    def _join_nearest(self) -> None:
        """Let everyone else join the nearest cohort they fit, those who have one nearby first."""
        lasting = self._boxes.lasting
        rows: list[int] = self.waiting.tolist()
        if not len(lasting):
            return
        near = {row: float(self._boxes.added(np.array([row]), lasting).min()) for row in rows}
        for row in sorted(rows, key=lambda row: near[row]):
            any(self._try_join(row, c) for c in self._nearest_cohorts(row))

    def _nearest_cohorts(self, row: int) -> Iterator[int]:
        lasting, sizes = self._boxes.lasting, self._boxes.sizes
        room = lasting[sizes[lasting] < FULL * self._k]
        if not len(room):
            return
        cost = self._boxes.added(np.array([row]), room)
        for at in np.argsort(cost, kind="stable")[:TRIES]:
            if cost[at] <= self._limit:
                yield int(room[at])

    def _let_return(self) -> None:
        """Let people who were shown before join a cohort again, if that harms neither them nor the others."""
        for row in np.flatnonzero((self.cohort_of_row < 0) & (self._home >= 0)).tolist():
            any(self._try_join(row, c) for c in self._nearest_cohorts(row))

    # ---- people who are far away ----------------------------------------------------------------

    def _hold_back_far(self, c: int) -> None:
        """Hold back people at the edges of a cohort while that loses less than the width they ask of all others."""
        while len(far := self._far_rows(np.array(self._boxes.members[c], dtype=np.int64))):
            for row in far.tolist():
                if not self._hold_back(row, c):
                    return

    def _far_rows(self, rows: IndexArray) -> IndexArray:
        """The rows at an edge of a cohort without which most is gained, beyond what suppressing them loses."""
        codes, most, best, far = self._table.codes[rows], self._boxes.loss_of(rows), GAIN, rows[:0]
        if most <= self._limit:
            return far
        for column in codes.T:
            for order in (np.argsort(column, kind="stable"), np.argsort(-column, kind="stable")):
                for count in range(1, min(len(rows) - self._k, EDGE) + 1):
                    gain = most - self._boxes.loss_of(rows[order[count:]]) - count * self._limit
                    if gain > best:
                        best, far = gain, rows[order[:count]]
        return far

    def _hold_back(self, row: int, c: int) -> bool:
        """Take a person out of a cohort, whose row stays as a counterfeit where it must; whether that is possible."""
        stays, person = list(self._standing.stays[c]), self._who[row]
        at = max(i for i, stay in enumerate(stays) if stay.person == person)
        if stays[at].start == self._release:
            del stays[at]
            if not self._standing.allows({c: stays}, [person]):
                return False
        else:
            stays[at] = stays[at].leave(self._release)
            if not self._standing.allows({c: stays}):
                stays[at] = replace(stays[at], stop=None)
        self._standing.change({c: stays}, [person])
        self._boxes.leave(row)
        self._home[row] = FAR
        return True
