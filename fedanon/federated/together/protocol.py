"""The server's side: clients join, questions are asked until the regions are final, a last count shows what they keep.

Knows nothing of Flower: a :class:`Conversation` carries arrays to the clients that take part. A client that does not
answer, or answers what cannot be, takes no further part: its rows are no longer counted. Too few left, or a claim that
does not hold, stop the run before anything is released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.federated.together.answers import read_counts
from fedanon.federated.together.axes import Axis
from fedanon.federated.together.folding import Folding
from fedanon.federated.together.merging import Classes, merge_short
from fedanon.federated.together.mondrian import FederatedMondrian
from fedanon.federated.together.plan import Plan
from fedanon.federated.together.questions import FINAL, Counts, Layout, Question, count_only
from fedanon.federated.together.regions import GrowingRegions
from fedanon.privacy.federation_count import WARNING

Arrays = Sequence[NDArray[Any]]
Read = Callable[[Arrays], Counts]


class Conversation(Protocol):
    """The way to the clients that take part."""

    def ask(self, step: int, arrays: Arrays, read: Read) -> dict[int, Counts]:
        """What each client answers, by its number; who does not answer, or what ``read`` refuses, is left out for good.

        Raises InfeasibleError if too few are left.
        """


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the clients agreed on.

    Parameters
    ----------
    method : by which.
    plan : for the clients.
    counts : final counts of every client and region that is not cut.
    lower_bound : of the people of the classes, by the counts of some clients.
    traffic : questions, and bytes a client received and sent at most.
    """

    method: FederatedMondrian
    plan: Plan
    counts: Mapping[int, Counts]
    lower_bound: Callable[[Sequence[int]], Counts]
    traffic: Mapping[str, int]

    def check_without(self, missing: Sequence[int]) -> None:
        """Raise unless the claim holds also without the rows of clients that were counted and then did not release."""
        left = [number for number in self.counts if number not in missing]
        if missing and (not left or self.lower_bound(left).min() < self.method.k):
            raise InfeasibleError(
                f"{len(missing)} of {len(self.counts)} clients were counted and did not confirm their release. Without "
                f"them not every class is sure to hold k={self.method.k} people: nothing was trained on; start again."
            )

    def to_dict(self, asked: int = 1) -> dict[str, Any]:
        """For the manifest: no cells, no counts but the smallest; ``asked`` is how often the protocol has run."""
        return {
            **self.method.to_dict(),
            "scope": "federation",
            "clients": self.plan.clients.tolist(),
            "classes": len(self.plan.people),
            "smallest_class_at_least": int(self.plan.people.min()),
            "confidence": self.method.confidence,
            "disclosure": self.method.disclosure.to_dict(),
            "protocols": asked,
            **({"epsilon_spent": asked * self.method.epsilon} if self.method.counts == "dp" else {}),
            "recoding_sha256": self.plan.sha256,
            "warning": WARNING,
            **self.traffic,
        }


class Agreeing:
    """One run of the protocol.

    Parameters
    ----------
    method : with its parameters.
    axes : the quasi-identifiers, as every client has them.
    persons : whether clients also count people.
    conversation : with the clients.
    n_clients : that joined.
    """

    def __init__(
        self,
        method: FederatedMondrian,
        axes: Sequence[Axis],
        conversation: Conversation,
        *,
        persons: bool,
        n_clients: int,
    ) -> None:
        self._method = method
        self._axes = axes
        self._persons = persons
        self._conversation = conversation
        self._n_clients = n_clients
        self._step = 0
        self._traffic = {"questions": 0, "bytes_down": 0, "bytes_up": 0}

    def run(self) -> Agreement:
        """Grow the regions, count them once more, merge what is too small, and sum up."""
        regions = self._method.grow(self._axes, self._n_clients, self._ask)
        leaves = regions.tree.leaves
        question = Question(
            regions.tree, leaves.astype(np.int32), *regions.boxes(leaves), count_only(len(leaves), len(self._axes))
        )
        counts = {number: people for number, (_, people) in self._answers(FINAL, question).items()}
        return self._settle(regions, leaves, counts)

    # ---- questions ------------------------------------------------------------------------------

    def _ask(self, question: Question) -> tuple[Counts, Counts]:
        """Answers of the growth, clients first."""
        self._step += 1
        answers = list(self._answers(self._step, question).values())
        rows = np.array([rows for rows, _ in answers])
        return rows, np.array([people for _, people in answers]) if self._persons else rows

    def _answers(self, step: int, question: Question) -> dict[int, tuple[Counts, Counts]]:
        layout, arrays = Layout(question, self._axes), question.to_arrays()
        noisy, exact = self._method.counts == "dp", self._method.disclosure.exact
        received: list[int] = [0]

        def read(answer: Arrays) -> Counts:
            received.append(sum(array.nbytes for array in answer))
            return read_counts(answer, layout, persons=self._persons, noisy=noisy, exact=exact and step != FINAL)

        found = self._conversation.ask(step, arrays, read)
        self._traffic["questions"] += 1
        self._traffic["bytes_down"] += sum(array.nbytes for array in arrays)
        self._traffic["bytes_up"] += max(received)
        return {number: (counts[: layout.total], counts[-layout.total :]) for number, counts in found.items()}

    # ---- the end --------------------------------------------------------------------------------

    def _settle(self, regions: GrowingRegions, leaves: NDArray[np.int64], counts: dict[int, Counts]) -> Agreement:
        numbers = sorted(counts)
        totals = np.sum([counts[number] for number in numbers], axis=0)

        def bounds(totals: Counts, members: Counts) -> Counts:
            return self._bounds(totals, members, len(numbers), len(regions))

        if self._method.counts == "dp":
            folding = Folding(regions, self._axes, self._method.k, lambda n, m: int(bounds(np.array(n), np.array(m))))
            classes, least = folding.run(dict(zip(leaves.tolist(), totals.tolist(), strict=True)))
        else:
            each = Classes.of_leaves(regions, totals)
            classes, least = merge_short(each, self._axes, self._method.k, bounds, additive=not self._persons)
        plan = Plan(
            regions.tree, classes.of_region, classes.low, classes.high, least.astype(np.int32), np.array(numbers)
        )

        def without(left: Sequence[int]) -> Counts:
            of_leaf = classes.of_region[leaves]
            together = np.zeros(len(classes), dtype=np.int64)
            summed = np.sum([counts[number] for number in left], axis=0)
            (np.maximum if self._persons else np.add).at(together, of_leaf[of_leaf >= 0], summed[of_leaf >= 0])
            return self._bounds(together, classes.members, len(left), len(regions))

        return Agreement(self._method, plan, counts, without, self._traffic)

    def _bounds(self, totals: Counts, members: Counts, n_clients: int, n_regions: int) -> Counts:
        """People each class holds at least; every region, cut or not, may become a class (union bound)."""
        method = self._method
        log_doubt = float(np.log(method.doubt / n_regions))
        least = method.disclosure.lower_bound(totals, members * n_clients, method.scale(FINAL), log_doubt)
        return np.asarray(least - method.slack(n_clients))


def check_same_axes(found: Mapping[int, Arrays]) -> list[Axis]:
    """The axes all clients sent; UpdateRejectedError for one that no schema can mean."""
    first = next(iter(found.values()))
    for arrays in found.values():
        if len(arrays) != len(first) or any(not np.array_equal(a, b) for a, b in zip(arrays, first, strict=True)):
            raise UpdateRejectedError("its axes are others than those of the other clients")
    return [Axis.from_array(array) for array in first]
