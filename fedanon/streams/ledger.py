"""Ledger: the claim of a stream, recounted from what is published and from nothing else.

A gateway asks it before a window is written, `fedanon stream check` when windows are read back. It counts on its own
what the engines count; what l and t mean is said once, by the models of releases.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fedanon.errors import PrivacyViolationError
from fedanon.streams.requirements import published_values

if TYPE_CHECKING:
    from fedanon.data.schema import Attribute
    from fedanon.privacy.sensitive import SensitiveModel

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
    models : what else must hold in every class at each of its publications.
    attributes : the declarations of their columns.
    """

    def __init__(
        self,
        claim: Literal["records", "people"],
        k: int,
        quasi: Iterable[str],
        most: int = 100_000,
        *,
        models: Sequence[SensitiveModel] = (),
        attributes: Mapping[str, Attribute] | None = None,
    ) -> None:
        self._claim, self._k, self._most = claim, k, most
        self._values = published_values(models, attributes)
        self._required = [model.column for model in models]
        self._classes: dict[tuple[Any, ...], int] = {}
        self._numbers: dict[str, int] = {}
        self._columns = (*(SERIES if claim == "people" else ()), *quasi)
        self._people: OrderedDict[tuple[Any, ...], set[str] | None] = OrderedDict()
        self._boxes: dict[str, tuple[Any, ...]] = {}
        self._epoch, self._rows = 0, 0

    def add(self, rows: Iterable[Shown]) -> int:
        """Take in rows that are published at once; returns in how many combinations the claim is broken now."""
        touched: dict[tuple[Any, ...], list[int]] = {}
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
            touched.setdefault(key, []).append(self._rows)
            if self._values is not None:
                known = shown.person or (who if self._claim == "people" else "")
                number = self._numbers.setdefault(known, len(self._numbers)) if known else -1
                self._values.note(self._rows, number, {name: shown.row[name] for name in self._required})
        while len(self._people) > max(self._most, len(touched)):
            self._people.popitem(last=False)
        broken += sum(self._people[key] is not None for key in touched)
        return broken + sum(not self._keeps(key, rows) for key, rows in touched.items())

    def _keeps(self, key: tuple[Any, ...], rows: list[int]) -> bool:
        """Whether a class keeps the models with the rows that are published in it now."""
        if self._values is None:
            return True
        label = self._classes.get(key)
        kept = self._values.keep_if_added(rows, label)
        self._values.settle(rows, self._classes.setdefault(key, len(self._classes)))
        return kept

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
            "values": None if self._values is None else self._values.to_state(),
            "classes": [[list(key), label] for key, label in self._classes.items()],
            "numbers": self._numbers,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._people = OrderedDict((tuple(key), None if who is None else set(who)) for key, who in state["people"])
        self._boxes = {name: tuple(key) for name, key in state["boxes"]}
        self._epoch, self._rows = state["counts"]
        if self._values is not None:
            self._values.restore(state["values"])
        self._classes = {tuple(key): label for key, label in state["classes"]}
        self._numbers = dict(state["numbers"])
