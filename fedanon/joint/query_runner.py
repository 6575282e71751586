"""Running queries: each goes to all nodes that take part, and their counts come back one by one or as a sum.

A masked answer reveals nothing by itself. If a node does not answer, the masks of the others do not cancel. Exact
counts are then queried again among the rest, with new masks; with noise the run stops, as every answer costs epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.joint.axes import Axis
from fedanon.joint.masks import pack_keys, sum_masked_counts
from fedanon.joint.method import JointMethod
from fedanon.joint.queries import AnswerLayout, Query, check_counts, read_counts
from fedanon.types import CountArray

Arrays = Sequence[NDArray[Any]]
#: reads the arrays of an answer; raises UpdateRejectedError if they are no counts
Read = Callable[[Arrays], CountArray]


class QueryTransport(Protocol):
    """The way to the nodes that take part."""

    @property
    def keys(self) -> Mapping[int, bytes]:
        """Public keys of the nodes that still take part, by their numbers."""

    @property
    def signatures(self) -> Mapping[int, bytes]:
        """Signatures of these keys, by the nodes that sign."""

    def send(self, step: int, arrays: Arrays, read: Read) -> dict[int, CountArray]:
        """The answer of every node, by its number; one that does not answer, or that ``read`` rejects, is out for good.

        Raises InfeasibleError if too few are left.
        """


@dataclass(frozen=True, eq=False)
class Answers:
    """The counts of a query.

    Parameters
    ----------
    nodes : numbers of the nodes that were counted.
    rows, people : one line per node, or a single one for all; the same array where a row is a person.
    """

    nodes: list[int]
    rows: CountArray
    people: CountArray


class QueryRunner:
    """Runs the queries of a method, by its rule for counts.

    Parameters
    ----------
    method : the joint method.
    axes : the quasi-identifiers.
    transport : the way to the nodes.
    persons : whether nodes count people as well as rows.
    """

    def __init__(self, method: JointMethod, axes: Sequence[Axis], transport: QueryTransport, *, persons: bool) -> None:
        self._method = method
        self._axes = axes
        self._transport = transport
        self._persons = persons
        self._step = 0
        self.traffic = {"queries": 0, "bytes_down": 0, "bytes_up": 0}

    def run(self, query: Query, step: int = 0) -> Answers:
        """Query all nodes; ``step`` is given for a query that has a number of its own."""
        layout = query.layout(self._axes)
        self._step = max(step, self._step + 1)
        nodes, lines = (self._sum if self._method.disclosure.secure else self._each)(query, layout)
        rows = lines[:, : layout.total]
        return Answers(nodes, rows, lines[:, layout.total :] if self._persons else rows)

    def _each(self, query: Query, layout: AnswerLayout) -> tuple[list[int], CountArray]:
        def read(answer: Arrays) -> CountArray:
            counts = read_counts(answer, self._length(layout))
            self._check(counts, layout)
            return counts

        found = self._send(query.to_arrays(), read)
        return sorted(found), np.array([found[number] for number in sorted(found)])

    def _sum(self, query: Query, layout: AnswerLayout) -> tuple[list[int], CountArray]:
        while True:
            keys = dict(self._transport.keys)
            if len(keys) < 2:
                raise InfeasibleError(
                    "Only one node is left, and a sum over one node is its counts. Nothing was released."
                )
            arrays = [*query.to_arrays(), *pack_keys(keys, self._transport.signatures)]
            found = self._send(arrays, lambda answer: read_counts(answer, self._length(layout)))
            if set(found) == set(keys):
                break
            self._stop_if_paid(len(keys) - len(found))
            self._step += 1
        total = sum_masked_counts(found.values())
        try:
            self._check(total, layout)
        except UpdateRejectedError as error:
            raise InfeasibleError(
                f"The sum of {len(found)} nodes is impossible ({error}); behind masks nobody can tell whose counts are "
                "wrong. Nothing was released."
            ) from None
        return sorted(found), total[None]

    def _stop_if_paid(self, n_gone: int) -> None:
        if self._method.noisy:
            raise InfeasibleError(
                f"{n_gone} nodes left when noisy counts were summed. To query again would cost the others epsilon a "
                "second time: start a new run for that. Nothing was released."
            )

    def _send(self, arrays: Arrays, read: Read) -> dict[int, CountArray]:
        received = [0]

        def measure_and_read(answer: Arrays) -> CountArray:
            received.append(sum(array.nbytes for array in answer))
            return read(answer)

        found = self._transport.send(self._step, arrays, measure_and_read)
        self.traffic["queries"] += 1
        self.traffic["bytes_down"] += sum(array.nbytes for array in arrays)
        self.traffic["bytes_up"] += max(received)
        return found

    def _length(self, layout: AnswerLayout) -> int:
        return layout.total * (2 if self._persons else 1)

    def _check(self, counts: CountArray, layout: AnswerLayout) -> None:
        method = self._method
        check_counts(counts, layout, persons=self._persons, noisy=method.noisy, exact=method.disclosure.exact)
