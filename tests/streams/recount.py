"""A checker that reads published messages alone: no engine, no class of fedanon, plain dictionaries and sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Message = dict[str, Any]


def short_combinations(publications: Iterable[list[Message]], quasi: list[str], k: int) -> int:
    """How often, after a publication, a combination of cells has been published for fewer than k people.

    Whose message it is stands in ``_person``, which a test adds; without it every message is a person of its own.
    """
    seen: dict[tuple[str, ...], set[Any]] = defaultdict(set)
    violations = count = 0
    for publication in publications:
        touched = set()
        for message in publication:
            key = tuple(message[name] for name in quasi)
            count += 1
            seen[key].add(message.get("_person", count))
            touched.add(key)
        violations += sum(len(seen[key]) < k for key in touched)
    return violations


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
