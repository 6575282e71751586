"""The server's side: clients join, questions are asked until the regions are final, a last count shows what they keep.

Knows nothing of Flower: a :class:`Conversation` carries arrays to the clients that take part. A client that does not
answer, or answers what cannot be, takes no further part: its rows are no longer counted. Too few left, or a claim that
does not hold, stop the run before anything is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedanon.errors import UpdateRejectedError
from fedanon.federated.together.agreement import Agreement
from fedanon.federated.together.axes import Axis
from fedanon.federated.together.bounds import lower_bound, sure_nodes
from fedanon.federated.together.conversation import Answers, Arrays, Asking, Conversation
from fedanon.federated.together.merging import Classes, LowerBound, Merging
from fedanon.federated.together.method import FederatedAnonymizer
from fedanon.federated.together.plan import Plan
from fedanon.federated.together.questions import FINAL, Asked, Counts, Question, count_only
from fedanon.federated.together.regions import Regions, Router


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
        leaves = regions.router.leaves.astype(np.int32)
        question = Question(regions.router, leaves, *regions.boxes(leaves), count_only(len(leaves), len(self._axes)))
        return self._settle(regions, self._asking.ask(question, FINAL))

    def _ask(self, question: Asked) -> tuple[Counts, Counts]:
        answers = self._asking.ask(question)
        return answers.rows, answers.people

    def _settle(self, regions: Regions, answers: Answers) -> Agreement:
        method = self._method
        merging = Merging(
            regions,
            self._axes,
            totals := answers.people.sum(axis=0),
            self._bound(totals, len(answers.clients)),
            additive=not self._persons,
            suppress=method.noisy,
            sure=self._sure(regions.router, totals, len(answers.clients)),
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
            return int(self._least(classes, regions.router, answers.people[rows].sum(axis=0), len(left)).min())

        return Agreement(method, plan, without, self._asking.traffic)

    def _least(self, classes: Classes, router: Router, totals: Counts, n_clients: int) -> Counts:
        """People every class holds at least by these counts of the leaves: by their sum, or by some of them."""
        of_leaf, bound = classes.of_region[router.leaves], self._bound(totals, n_clients)
        kept = of_leaf >= 0
        summed, members = np.zeros(len(classes), dtype=np.int64), np.bincount(of_leaf[kept], minlength=len(classes))
        (np.maximum if self._persons else np.add).at(summed, of_leaf[kept], totals[kept])
        least = np.array([bound(int(n), int(m)) for n, m in zip(summed, members, strict=True)])
        np.maximum.at(least, of_leaf[kept], [bound(int(total), 1) for total in totals[kept]])
        for leaves in self._sure(router, totals, n_clients):
            [one, *others] = np.unique(of_leaf[leaves]).tolist()
            if one >= 0 and not others:
                least[one] = max(int(least[one]), self._method.k)
        return least

    def _bound(self, totals: Counts, n_clients: int) -> LowerBound:
        return lower_bound(totals, self._method.k, **self._method.final_noise(n_clients))

    def _sure(self, router: Router, totals: Counts, n_clients: int) -> list[Counts]:
        return sure_nodes(router, totals, self._method.k, **self._method.final_noise(n_clients))


def check_same_axes(found: Mapping[int, Arrays]) -> list[Axis]:
    """The axes all clients sent; UpdateRejectedError for one that no schema can mean."""
    first = next(iter(found.values()))
    for arrays in found.values():
        if len(arrays) != len(first) or any(not np.array_equal(a, b) for a, b in zip(arrays, first, strict=True)):
            raise UpdateRejectedError("its axes are others than those of the other clients")
    return [Axis.from_array(array) for array in first]
