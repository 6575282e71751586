"""PublishedValues: the sensitive values published in every class so far, for what is required beyond k.

The models are those of releases (:class:`fedanon.privacy.sensitive.SensitiveModel`), asked with counts that are kept up
to date. What a class is compared with (t-closeness) is all that was published until then, this publication included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.schema import Attribute, FreeText, Role
from fedanon.privacy.sensitive import Counts, Sensitive, SensitiveModel
from fedanon.types import BoolArray, IndexArray


class PublishedValues:
    """Who was published in every class with which values.

    A fact is a (person, value); a person counts once for each value, in a class and in all that is published. Records
    without a person (below 0) are people of their own.

    Parameters
    ----------
    models : what is required.
    attributes : the declaration of the columns; text where none is given.
    """

    def __init__(self, models: Sequence[SensitiveModel], attributes: Mapping[str, Attribute] | None = None) -> None:
        self._models = models
        columns = dict.fromkeys(model.column for model in models)
        known = attributes or {}
        self._attributes = {name: known.get(name, FreeText(name, Role.SENSITIVE)) for name in columns}
        self._waiting: dict[int, tuple[int, dict[str, Any]]] = {}
        self._classes: dict[int, dict[str, set[tuple[int, Any]]]] = {}
        self._whole: dict[str, Counter[Any]] = {name: Counter() for name in columns}
        self._published: dict[str, set[tuple[int, Any]]] = {name: set() for name in columns}

    def note(self, number: int, person: int, values: Mapping[str, Any]) -> None:
        """Take in the values of a record that begins to wait."""
        # a record of nobody is a person of its own, whose number no person has
        someone = person if person >= 0 else -2 - number
        self._waiting[number] = someone, {name: _plain(values[name]) for name in self._attributes}

    def keep_if_added(self, numbers: Sequence[int], name: int | None) -> bool:
        """Whether a class, a new one if None, keeps all models once the records are published in it."""
        for column, attribute in self._attributes.items():
            new = {(who, values[column]) for who, values in map(self._waiting.__getitem__, numbers)}
            facts = new | (self._classes[name][column] if name is not None else set())
            counts = self._counts(column, attribute, facts, new)
            if not all(bool(m.kept(counts)[0]) for m in self._models if m.column == column):
                return False
        return True

    def _counts(
        self, column: str, attribute: Attribute, facts: set[tuple[int, Any]], new: set[tuple[int, Any]]
    ) -> Counts:
        whole = self._whole[column].copy()
        whole.update(value for who, value in new if (who, value) not in self._published[column])
        missing = None in whole
        values = sorted(value for value in whole if value is not None)
        order = [*values, *([None] if missing else [])]
        inside = Counter(value for _, value in facts)
        sensitive = Sensitive(attribute, np.empty(0, dtype=np.int32), pd.Index(values), len(order))
        return Counts(
            np.array([[inside[value] for value in order]], dtype=np.int64),
            np.array([len({who for who, _ in facts})], dtype=np.int64),
            np.array([whole[value] for value in order], dtype=np.int64),
            max(sum(whole.values()), 1),
            sensitive,
        )

    def rare_in(self, numbers: Sequence[int], candidates: IndexArray) -> BoolArray:
        """Which candidates have, in some column, a value that is not the most common one of the records."""
        rare = np.zeros(len(candidates), dtype=bool)
        for column in self._attributes:
            held = Counter(self._waiting[number][1][column] for number in numbers)
            most = max(held.values())
            values = [self._waiting[int(number)][1][column] for number in candidates]
            rare |= np.array([held[value] < most for value in values], dtype=bool)
        return rare

    def settle(self, numbers: Iterable[int], name: int) -> None:
        """Take note that records were published in a class, or dropped if it is below 0."""
        for number in numbers:
            who, values = self._waiting.pop(number)
            if name < 0:
                continue
            held = self._classes.setdefault(name, {column: set() for column in self._attributes})
            for column, value in values.items():
                held[column].add((who, value))
                if (who, value) not in self._published[column]:
                    self._whole[column][value] += 1
                    if who >= 0:  # a record of nobody never comes again
                        self._published[column].add((who, value))

    def to_state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "waiting": [[number, who, values] for number, (who, values) in self._waiting.items()],
            "classes": [[n, {c: sorted(f, key=repr) for c, f in held.items()}] for n, held in self._classes.items()],
            "whole": {column: list(counts.items()) for column, counts in self._whole.items()},
            "published": {column: sorted(facts, key=repr) for column, facts in self._published.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._waiting = {number: (who, values) for number, who, values in state["waiting"]}
        self._classes = {
            name: {column: {(who, value) for who, value in facts} for column, facts in held.items()}
            for name, held in state["classes"]
        }
        self._whole = {column: Counter(dict(map(tuple, counts))) for column, counts in state["whole"].items()}
        self._published = {c: {(who, value) for who, value in facts} for c, facts in state["published"].items()}


def _plain(value: Any) -> Any:
    """A value as JSON gives it back; a missing one is None."""
    if hasattr(value, "item"):
        value = value.item()
    return None if value is None or value != value else value
