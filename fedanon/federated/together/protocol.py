"""The server's side: clients join, questions are asked until the regions are final, a last count shows what they keep.

Knows nothing of Flower: a :class:`Conversation` carries arrays to the clients that take part. A client that does not
answer, or answers what cannot be, takes no further part: its rows are no longer counted. Too few left, or a claim that
does not hold, stop the run before anything is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedanon.data.hierarchy import IntArray
from fedanon.errors import UpdateRejectedError
from fedanon.federated.together.agreement import Agreement
from fedanon.federated.together.axes import Axis
from fedanon.federated.together.bounds import lower_bound, sure_pairs
from fedanon.federated.together.conversation import Answers, Arrays, Asking, Conversation
from fedanon.federated.together.merging import LowerBound, Merging
from fedanon.federated.together.method import FederatedAnonymizer
from fedanon.federated.together.neighbours import Neighbours, Pairs
from fedanon.federated.together.plan import Plan
from fedanon.federated.together.questions import FINAL, Asked, Counts, count_of_leaves
from fedanon.federated.together.regions import Regions


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
        method: FederatedAnonymizer,
        axes: Sequence[Axis],
        conversation: Conversation,
        *,
        persons: bool,
        n_clients: int,
    ) -> None:
        self._method = method
        self._axes = axes
        self._persons = persons
        self._asking = Asking(method, axes, conversation, persons=persons)
        self._n_clients = n_clients

    def run(self) -> Agreement:
        """Grow the regions, count them once more, merge what is too small, and sum up."""
        regions = self._method.grow(self._axes, self._n_clients, self._ask)
        return self._settle(regions, self._asking.ask(count_of_leaves(regions, len(self._axes)), FINAL))

    def _ask(self, question: Asked) -> tuple[Counts, Counts]:
        answers = self._asking.ask(question)
        return answers.rows, answers.people

    def _settle(self, regions: Regions, answers: Answers) -> Agreement:
        method = self._method
        neighbours = Neighbours.of(self._axes, *regions.boxes(regions.router.leaves)) if method.noisy else None
        matchings = neighbours.matchings() if neighbours else []
        merging = Merging(
            regions,
            self._axes,
            totals := answers.people.sum(axis=0),
            self._bound(totals, len(answers.clients)),
            additive=not self._persons,
            suppress=method.noisy,
            neighbours=neighbours,
            sure=self._sure(matchings, totals, len(answers.clients)),
        )
        classes = merging.run(method.k)
        plan = Plan(
            regions.router,
            classes.of_region,
            classes.low,
            classes.high,
            classes.least.astype(np.int32),
            np.array(answers.clients, dtype=np.int32),
        )

        def without(left: Sequence[int]) -> int:
            rows = [answers.clients.index(number) for number in left]
            totals = answers.people[rows].sum(axis=0)
            of_leaf = classes.of_region[regions.router.leaves]
            return int(self._least(of_leaf, totals, self._sure(matchings, totals, len(left)), len(left)).min())

        return Agreement(method, plan, without, self._asking.traffic)

    def _least(self, of_leaf: IntArray, totals: Counts, pairs: Pairs, n_clients: int) -> Counts:
        """People every class holds at least by these counts of the leaves: by their sum, or by one or two of them."""
        bound, kept = self._bound(totals, n_clients), of_leaf >= 0
        members = np.bincount(of_leaf[kept])
        summed = np.zeros(len(members), dtype=np.int64)
        (np.maximum if self._persons else np.add).at(summed, of_leaf[kept], totals[kept])
        least = np.array([bound(int(n), int(m)) for n, m in zip(summed, members, strict=True)])
        np.maximum.at(least, of_leaf[kept], [bound(int(total), 1) for total in totals[kept]])
        one, other = of_leaf[pairs].T
        together = one[(one == other) & (one >= 0)]
        least[together] = np.maximum(least[together], self._method.k)
        return least

    def _bound(self, totals: Counts, n_clients: int) -> LowerBound:
        return lower_bound(totals, self._method.k, **self._method.final_noise(n_clients))

    def _sure(self, matchings: Sequence[Pairs], totals: Counts, n_clients: int) -> Pairs:
        return sure_pairs(matchings, totals, self._method.k, **self._method.final_noise(n_clients))


def check_same_axes(found: Mapping[int, Arrays]) -> list[Axis]:
    """The axes all clients sent; UpdateRejectedError for one that no schema can mean."""
    first = next(iter(found.values()))
    for arrays in found.values():
        if len(arrays) != len(first) or any(not np.array_equal(a, b) for a, b in zip(arrays, first, strict=True)):
            raise UpdateRejectedError("its axes are others than those of the other clients")
    return [Axis.from_array(array) for array in first]
