"""CohortStays: the stays of all cohorts while people are placed, and whether a change leaves everyone safe."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fedanon.privacy.series import History, Stay

#: the stays of some cohorts after a change
Changes = Mapping[int, Sequence[Stay]]
#: values that a cohort leaves possible for each of its people
Possible = Mapping[str, frozenset[int]]


class CohortStays:
    """What is possible for whom, counted again only where something changes.

    Parameters
    ----------
    draft : the history, with the release to come already counted and all values numbered.
    """

    def __init__(self, draft: History) -> None:
        self._draft = draft
        #: number of the release to come
        self.release = draft.releases - 1
        self.stays: list[list[Stay]] = [list(cohort) for cohort in draft.cohorts]
        self._cohorts_of: dict[str, set[int]] = {}
        for c, cohort in enumerate(self.stays):
            for stay in cohort:
                self._cohorts_of.setdefault(stay.person, set()).add(c)
        self._possible: dict[int, Possible] = {}
        self._enough: dict[frozenset[int], bool] = {}

    def cohorts_of(self, person: str) -> set[int]:
        """The cohorts in which someone was ever shown."""
        return self._cohorts_of.get(person, set())

    def is_safe(self, c: int) -> bool:
        """Whether enough values stay possible for everyone who was ever in a cohort."""
        return self._leaves_enough({c: self._known(c)}, {})

    def allows(self, changes: Changes, movers: Collection[str] = ()) -> bool:
        """Whether everyone in the changed cohorts is safe after a change; ``movers`` are in other cohorts by it."""
        where = {person: self._where_after(person, changes) for person in movers}
        return self._leaves_enough({c: self._judge(stays, where) for c, stays in changes.items()}, where)

    def change(self, changes: Changes, movers: Collection[str] = ()) -> None:
        """Carry a change out."""
        for person in movers:
            self._cohorts_of[person] = self._where_after(person, changes)
        for c, stays in changes.items():
            self.stays[c] = list(stays)
            self._possible.pop(c, None)

    def _where_after(self, person: str, changes: Changes) -> set[int]:
        inside = {c for c, stays in changes.items() if any(stay.person == person for stay in stays)}
        return (self.cohorts_of(person) - set(changes)) | inside

    def _known(self, c: int) -> Possible:
        if c not in self._possible:
            self._possible[c] = self._judge(self.stays[c], {})
        return self._possible[c]

    def _judge(self, stays: Sequence[Stay], where: Mapping[str, set[int]]) -> Possible:
        people = {stay.person for stay in stays}
        bound = {person for person in people if len(where.get(person) or self._cohorts_of[person]) > 1}
        return self._draft.possible_in(stays, bound)

    def _leaves_enough(self, found: Mapping[int, Possible], where: Mapping[str, set[int]]) -> bool:
        for c, possible in found.items():
            for person, values in possible.items():
                left = values
                for other in where.get(person) or self._cohorts_of[person]:
                    if other != c:
                        left &= (found[other] if other in found else self._known(other))[person]
                if left not in self._enough:
                    self._enough[left] = self._draft.is_enough(left)
                if not self._enough[left]:
                    return False
        return True
