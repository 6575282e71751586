"""Asking: a question goes to all clients that take part, and their counts come back one by one or as a sum.

Behind masks an answer says nothing alone. If a client does not answer, the masks of the others do not cancel: exact
counts are asked again among the rest, with other masks; with noise the run stops, as every answer is paid for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.joint.axes import Axis
from fedanon.joint.masks import pack_keys, unmasked_sum
from fedanon.joint.method import FederatedAnonymizer
from fedanon.joint.queries import Answered, Asked, check_counts, read_counts
from fedanon.types import CountArray

Arrays = Sequence[NDArray[Any]]
Read = Callable[[Arrays], CountArray]


class Conversation(Protocol):
    """The way to the clients that take part."""

    @property
    def keys(self) -> Mapping[int, bytes]:
        """Public keys of the clients that still take part, by their numbers."""

    @property
    def signatures(self) -> Mapping[int, bytes]:
        """What clients signed their keys with, of those that sign."""

    def ask(self, step: int, arrays: Arrays, read: Read) -> dict[int, CountArray]:
        """What each client answers, by its number; who does not answer, or what ``read`` refuses, is left out for good.

        Raises InfeasibleError if too few are left.
        """


@dataclass(frozen=True, eq=False)
class Answers:
    """Counts of a question.

    Parameters
    ----------
    clients : numbers of the clients that were counted.
    rows, people : one line for each of them, or one for all; the same array where a row is a person.
    """

    clients: list[int]
    rows: CountArray
    people: CountArray


class Asking:
    """Questions by the rule of a method.

    Parameters
    ----------
    method : whose rule for counts holds.
    axes : the quasi-identifiers.
    conversation : with the clients.
    persons : whether clients also count people.
    """

    def __init__(
        self, method: FederatedAnonymizer, axes: Sequence[Axis], conversation: Conversation, *, persons: bool
    ) -> None:
        self._method = method
        self._axes = axes
        self._conversation = conversation
        self._persons = persons
        self._step = 0
        self.traffic = {"questions": 0, "bytes_down": 0, "bytes_up": 0}

    def ask(self, question: Asked, step: int = 0) -> Answers:
        """Ask all; ``step`` is that of a question that has a number of its own."""
        layout = question.layout(self._axes)
        self._step = max(step, self._step + 1)
        clients, lines = (self._sum if self._method.disclosure.secure else self._each)(question, layout)
        rows = lines[:, : layout.total]
        return Answers(clients, rows, lines[:, layout.total :] if self._persons else rows)

    def _each(self, question: Asked, layout: Answered) -> tuple[list[int], CountArray]:
        def read(answer: Arrays) -> CountArray:
            counts = read_counts(answer, self._length(layout))
            self._check(counts, layout)
            return counts

        found = self._send(question.to_arrays(), read)
        return sorted(found), np.array([found[number] for number in sorted(found)])

    def _sum(self, question: Asked, layout: Answered) -> tuple[list[int], CountArray]:
        while True:
            keys = dict(self._conversation.keys)
            if len(keys) < 2:
                raise InfeasibleError("A sum over one client is its counts: one is left. Nothing was released.")
            arrays = [*question.to_arrays(), *pack_keys(keys, self._conversation.signatures)]
            found = self._send(arrays, lambda answer: read_counts(answer, self._length(layout)))
            if set(found) == set(keys):
                break
            self._stop_if_paid(len(keys) - len(found))
            self._step += 1
        total = unmasked_sum(found.values())
        try:
            self._check(total, layout)
        except UpdateRejectedError as error:
            raise InfeasibleError(
                f"The sum of {len(found)} clients cannot be ({error}); behind masks nobody can tell whose counts are "
                "wrong. Nothing was released."
            ) from None
        return sorted(found), total[None]

    def _stop_if_paid(self, n_left: int) -> None:
        if self._method.noisy:
            raise InfeasibleError(
                f"{n_left} clients left when noisy counts were summed. To ask again costs the others epsilon a second "
                "time: start a new run for that. Nothing was released."
            )

    def _send(self, arrays: Arrays, read: Read) -> dict[int, CountArray]:
        received = [0]

        def counting(answer: Arrays) -> CountArray:
            received.append(sum(array.nbytes for array in answer))
            return read(answer)

        found = self._conversation.ask(self._step, arrays, counting)
        self.traffic["questions"] += 1
        self.traffic["bytes_down"] += sum(array.nbytes for array in arrays)
        self.traffic["bytes_up"] += max(received)
        return found

    def _length(self, layout: Answered) -> int:
        return layout.total * (2 if self._persons else 1)

    def _check(self, counts: CountArray, layout: Answered) -> None:
        method = self._method
        check_counts(counts, layout, persons=self._persons, noisy=method.noisy, exact=method.disclosure.exact)
