"""Ledger: the claim of a stream, recounted from what is published and from nothing else.

A gateway asks it before a window is written, `fedanon stream check` when windows are read back. It shares no code with
the engines.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from fedanon.errors import PrivacyViolationError

#: what tells the classes of pseudonyms apart, besides their cells
SERIES = ("epoch", "class")
PSEUDONYM = "pseudonym"


class Shown(NamedTuple):
    """A published row, and who it is of where that is known here: '' makes every row a person of its own."""

    row: Mapping[str, Any]
    person: str = ""


class Ledger:
    """Who was published under every combination of cells.

    Of a combination that has k people no more is noted than that; the least recently used are forgotten beyond
    ``most``, which must be more than an engine may use again.

    Parameters
    ----------
    claim : whether pseudonyms are counted in every (epoch, class), or people under every combination of cells.
    k : the least number.
    quasi : names of the quasi-identifiers.
    most : number of combinations that are remembered.
    """

    def __init__(self, claim: Literal["records", "people"], k: int, quasi: Iterable[str], most: int = 100_000) -> None:
        self._claim, self._k, self._most = claim, k, most
        self._columns = (*(SERIES if claim == "people" else ()), *quasi)
        self._people: OrderedDict[tuple[Any, ...], set[str] | None] = OrderedDict()
        self._boxes: dict[str, tuple[Any, ...]] = {}
        self._epoch, self._rows = 0, 0

    def add(self, rows: Iterable[Shown]) -> int:
        """Take in rows that are published at once; returns in how many combinations the claim is broken now."""
        touched: set[tuple[Any, ...]] = set()
        broken = 0
        for shown in rows:
            self._rows += 1
            key = tuple([shown.row[name] for name in self._columns])
            if self._claim == "people":
                who = str(shown.row[PSEUDONYM])
                broken += self._boxes.setdefault(who, key) != key
                self._forget_epochs(int(shown.row["epoch"]))
            else:
                who = shown.person or f"row {self._rows}"
            people = self._people.setdefault(key, set())
            if people is not None:
                people.add(who)
                if len(people) >= self._k:
                    self._people[key] = None
            self._people.move_to_end(key)
            touched.add(key)
        while len(self._people) > max(self._most, len(touched)):
            self._people.popitem(last=False)
        return broken + sum(self._people[key] is not None for key in touched)

    def require(self, rows: Iterable[Shown]) -> None:
        """Take in rows; raise PrivacyViolationError if the claim does not hold with them."""
        broken = self.add(rows)
        if broken:
            raise PrivacyViolationError(
                f"{broken} classes of the stream break its claim of k={self._k}; the window is not published."
            )

    def _forget_epochs(self, epoch: int) -> None:
        """Pseudonyms of an epoch that is over for long do not come again."""
        if epoch > self._epoch:
            self._epoch = epoch
            self._boxes = {name: key for name, key in self._boxes.items() if int(key[0]) >= epoch - 1}

    def to_state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "people": [[list(key), None if who is None else sorted(who)] for key, who in self._people.items()],
            "boxes": [[name, list(key)] for name, key in self._boxes.items()],
            "counts": [self._epoch, self._rows],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._people = OrderedDict((tuple(key), None if who is None else set(who)) for key, who in state["people"])
        self._boxes = {name: tuple(key) for name, key in state["boxes"]}
        self._epoch, self._rows = state["counts"]
