"""A checker that reads published messages alone: no engine, no class of fedanon, plain dictionaries and sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]


class Combinations:
    """People by combination of cells, publication by publication; a combination that has had k people keeps them.

    Whose message it is stands in ``_person``, which a test adds; without it every message is a person of its own.
    """

    def __init__(self, quasi: list[str], k: int) -> None:
        self.quasi, self.k, self.messages, self.violations = quasi, k, 0, 0
        self.short: dict[tuple[str, ...], set[Any]] = defaultdict(set)
        self.enough: set[tuple[str, ...]] = set()

    def add(self, publication: list[Message]) -> None:
        """Count a publication; it violates as often as it leaves a combination with fewer than k people."""
        for message in publication:
            self.messages += 1
            key = tuple(message[name] for name in self.quasi)
            if key not in self.enough:
                self.short[key].add(message.get("_person", self.messages))
        for key in {tuple(message[name] for name in self.quasi) for message in publication} - self.enough:
            if len(self.short[key]) < self.k:
                self.violations += 1
            else:
                self.enough.add(key)
                del self.short[key]


def short_combinations(publications: Iterable[list[Message]], quasi: list[str], k: int) -> int:
    """How often, after a publication, a combination of cells has been published for fewer than k people."""
    count = Combinations(quasi, k)
    for publication in publications:
        count.add(publication)
    return count.violations


def broken_pseudonyms(publications: Iterable[list[Message]], quasi: list[str], k: int) -> int:
    """How often an (epoch, class) is short of k pseudonyms after a publication, or a pseudonym has a second box."""
    seen: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    boxes: dict[str, tuple[Any, ...]] = {}
    violations = 0
    for publication in publications:
        touched = set()
        for message in publication:
            key = (message["epoch"], message["class"], *(message[name] for name in quasi))
            seen[key].add(message["pseudonym"])
            touched.add(key)
            violations += boxes.setdefault(message["pseudonym"], key) != key
        violations += sum(len(seen[key]) < k for key in touched)
    return violations


def fewest_values(publications: Iterable[list[Message]], quasi: list[str], column: str) -> int:
    """The smallest number of different values any combination has right after one of its publications."""
    seen: dict[tuple[str, ...], set[Any]] = defaultdict(set)
    fewest = 10**9
    for publication in publications:
        touched = set()
        for message in publication:
            key = tuple(message[name] for name in quasi)
            seen[key].add(message[column])
            touched.add(key)
        fewest = min([fewest, *(len(seen[key]) for key in touched)])
    return fewest


def largest_distance(publications: Iterable[list[Message]], key: list[str], column: str) -> tuple[int, float]:
    """Fewest values and largest distance of a class's distribution from all that was published, at any publication.

    A person (``_person``) counts once for each value, in a class and in the whole; the distance is half the sum of the
    differences of shares.
    """
    facts: dict[tuple[Any, ...], set[tuple[Any, Any]]] = defaultdict(set)
    whole: set[tuple[Any, Any]] = set()
    fewest, largest = 10**9, 0.0
    for publication in publications:
        new = [(tuple(message[name] for name in key), message["_person"], message[column]) for message in publication]
        whole |= {(person, value) for _, person, value in new}
        for name, person, value in new:
            facts[name].add((person, value))
        for name in {name for name, _, _ in new}:
            values = {value for _, value in whole}
            shares = [_share(facts[name], value) - _share(whole, value) for value in values]
            largest = max(largest, sum(map(abs, shares)) / 2)
            fewest = min(fewest, len({value for _, value in facts[name]}))
    return fewest, largest


def _share(facts: set[tuple[Any, Any]], value: Any) -> float:
    return sum(one == value for _, one in facts) / len(facts)
