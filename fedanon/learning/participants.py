"""The nodes of a run: who they are, whether they mean the same by the same columns, and what went wrong with them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any

from fedanon.errors import SchemaError, UpdateRejectedError
from fedanon.learning.node import NodeFacts
from fedanon.models.outcome import Outcome

log = logging.getLogger("fedanon")

#: what nodes must have in common -> what is wrong with one that differs
COMMON = {
    "schema_sha256": "its schema is not that of the others",
    "version": "its version of fedanon is not that of the others",
    "width": "it makes another number of features of its columns",
    "classes": "it predicts another number of classes",
}


class Participants:
    """The nodes of a run by their identifier: their numbers, names and facts, and what went wrong with them."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        #: under which nodes were registered, where that is known
        self.names: dict[int, str] = {}
        self.facts: dict[int, NodeFacts] = {}
        self.rejected: list[dict[str, Any]] = []
        self.unresponsive: list[dict[str, Any]] = []
        self._agreed: NodeFacts | None = None

    def admit(self, node: int, number: int, facts: NodeFacts) -> None:
        """Let a node take part, by the facts it reports.

        Raises
        ------
        UpdateRejectedError
            If another one has its number, or all have agreed on something else already.
        """
        if number in (self.numbers[other] for other in self.facts if other != node):
            raise UpdateRejectedError(f"another node has its number {number}; node.toml needs a number of its own")
        if self._agreed and (reason := _difference(self._agreed, facts)):
            raise UpdateRejectedError(reason)
        self.numbers[node], self.facts[node] = number, facts

    def check_agreement(self) -> None:
        """Leave out nodes that mean something else by the same columns, or run another version, than most.

        Raises
        ------
        SchemaError
            If there is no majority.
        """
        kinds = Counter(_kind(facts) for facts in self.facts.values())
        (most, count), *_ = kinds.most_common()
        if 2 * count <= len(self.facts):
            groups = ["; ".join(self.label(node) for node in self.nodes if _kind(self.facts[node]) == k) for k in kinds]
            raise SchemaError(
                f"The nodes do not agree: {len(kinds)} different schemas or versions among {len(self.facts)} nodes, "
                f"and no majority ({' against '.join(groups)})."
            )
        self._agreed = next(facts for facts in self.facts.values() if _kind(facts) == most)
        for node in self.nodes:
            if reason := _difference(self._agreed, self.facts[node]):
                self.reject(0, node, reason)
                del self.facts[node]

    @property
    def width(self) -> int:
        """Number of features."""
        return next(iter(self.facts.values())).width

    @property
    def outcome(self) -> Outcome:
        """What is predicted."""
        return Outcome(next(iter(self.facts.values())).classes)

    @property
    def nodes(self) -> list[int]:
        """All that take part, in the order of their numbers."""
        return sorted(self.facts, key=lambda node: self.numbers[node])

    @property
    def named(self) -> dict[int, str]:
        """Names by number."""
        return {number: self.names[node] for node, number in self.numbers.items() if node in self.names}

    def label(self, node: int) -> str:
        """A node as people know it."""
        if node in self.names:
            return self.names[node]
        return f"node {self.numbers[node]}" if node in self.numbers else unnamed(node)

    # ---- what went wrong ------------------------------------------------------------------------

    def reject(self, number: int, node: int, reason: str) -> None:
        """Note that what a node sent in a round is left out."""
        self.rejected.append({"round": number, **self._who(node), "reason": reason})
        log.warning("round %d: %s is left out: %s", number, self.label(node), reason)

    def note_unresponsive(self, number: int, nodes: Iterable[int], during: str) -> None:
        """Note that nodes did not answer a request of some kind."""
        self.unresponsive += [{"round": number, **self._who(node), "during": during} for node in nodes]

    def _who(self, node: int) -> dict[str, Any]:
        """A node's number, or what else it is known by."""
        name = self.names.get(node)
        known: Any = self.numbers.get(node, name or (node if node < SHORT else unnamed(node)))
        return {"node": known, **({"name": name} if name else {})}


#: identifiers below are those of a simulation; Flower's have nineteen digits or so
SHORT = 10_000


def unnamed(node: int) -> str:
    """A node that was registered without a name and has not said its number, by the end of its identifier."""
    return f"node {node}" if node < SHORT else f"node ...{node % SHORT:04d}"


def _kind(facts: NodeFacts) -> tuple[Any, ...]:
    return tuple(getattr(facts, what) for what in COMMON)


def _difference(agreed: NodeFacts, facts: NodeFacts) -> str:
    return next((why for what, why in COMMON.items() if getattr(agreed, what) != getattr(facts, what)), "")
