"""The server's side: clients join, questions are asked until the regions are final, a last count shows what they keep.

Knows nothing of Flower: a :class:`Conversation` carries arrays to the clients that take part. A client that does not
answer, or answers what cannot be, takes no further part: its rows are no longer counted. Too few left, or a claim that
does not hold, stop the run before anything is released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.joint.axes import Axis
from fedanon.joint.bounds import lower_bound, sure_pairs
from fedanon.joint.conversation import Answers, Arrays, Asking, Conversation, Read
from fedanon.joint.hospital import Hospital
from fedanon.joint.masks import new_secret, public_key
from fedanon.joint.merging import LowerBound, Merging, Neighbours, Pairs
from fedanon.joint.method import FederatedAnonymizer
from fedanon.joint.plan import Plan
from fedanon.joint.queries import FINAL, Asked, count_of_leaves, pack_counts
from fedanon.joint.regions import Regions
from fedanon.privacy.federation_count import WARNING
from fedanon.types import CountArray, IntArray


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

    def _ask(self, question: Asked) -> tuple[CountArray, CountArray]:
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

    def _least(self, of_leaf: IntArray, totals: CountArray, pairs: Pairs, n_clients: int) -> CountArray:
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

    def _bound(self, totals: CountArray, n_clients: int) -> LowerBound:
        return lower_bound(totals, self._method.k, **self._method.final_noise(n_clients))

    def _sure(self, matchings: Sequence[Pairs], totals: CountArray, n_clients: int) -> Pairs:
        return sure_pairs(matchings, totals, self._method.k, **self._method.final_noise(n_clients))


def check_same_axes(found: Mapping[int, Arrays]) -> list[Axis]:
    """The axes all clients sent; UpdateRejectedError for one that no schema can mean."""
    first = next(iter(found.values()))
    for arrays in found.values():
        if len(arrays) != len(first) or any(not np.array_equal(a, b) for a, b in zip(arrays, first, strict=True)):
            raise UpdateRejectedError("its axes are others than those of the other clients")
    return [Axis.from_array(array) for array in first]


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the clients agreed on.

    Parameters
    ----------
    method : by which.
    plan : for the clients.
    smallest : people of the smallest class at least, by the counts of some clients alone.
    traffic : questions, and bytes a client received and sent at most.
    """

    method: FederatedAnonymizer
    plan: Plan
    smallest: Callable[[Sequence[int]], int]
    traffic: Mapping[str, int]

    def check_confirmed(self, confirmed: set[int]) -> None:
        """Raise unless the claim holds also without the clients that were counted and then did not release.

        Of sums nobody can take off what those counted.
        """
        counted = self.plan.clients.tolist()
        left = [number for number in counted if number in confirmed]
        if len(left) == len(counted):
            return
        if self.method.disclosure.secure or not left or self.smallest(left) < self.method.k:
            raise InfeasibleError(
                f"{len(counted) - len(left)} of {len(counted)} clients were counted and did not confirm their release. "
                f"Without them not every class is sure to hold k={self.method.k} people: nothing was trained on; "
                "start again."
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
            **self._spent(asked),
            "recoding_sha256": self.plan.sha256,
            "warning": WARNING,
            **self.traffic,
        }

    def _spent(self, asked: int) -> dict[str, Any]:
        if not self.method.noisy:
            return {}
        return {"epsilon_spent": asked * self.method.epsilon, "promised": self.method.randomness == "secure"}


NEVER = 10**9


class InProcess:
    """Asks one hospital after the other.

    Parameters
    ----------
    hospitals : that take part.
    silent_from : for some of them, by number, the step from which on they do not answer.
    """

    def __init__(self, hospitals: Sequence[Hospital], silent_from: Mapping[int, int] | None = None) -> None:
        self._hospitals = list(hospitals)
        self._silent_from = silent_from or {}
        self._secrets = {hospital.number: new_secret() for hospital in hospitals}

    @property
    def keys(self) -> dict[int, bytes]:
        """Public keys of the hospitals that still take part."""
        return {hospital.number: public_key(self._secrets[hospital.number]) for hospital in self._hospitals}

    @property
    def signatures(self) -> dict[int, bytes]:
        """None: nobody stands between hospitals of one process."""
        return {}

    def ask(self, step: int, arrays: Arrays, read: Read) -> dict[int, CountArray]:
        """What each hospital answers."""
        self._hospitals = [h for h in self._hospitals if step < self._silent_from.get(h.number, NEVER)]
        found = {h.number: h.answer(list(arrays), step, self._secrets[h.number]) for h in self._hospitals}
        return {number: read([pack_counts(counts)]) for number, counts in found.items()}


def agree(hospitals: Sequence[Hospital], silent_from: Mapping[int, int] | None = None) -> Agreement:
    """Run the protocol with hospitals of this process."""
    first = hospitals[0]
    conversation = InProcess(hospitals, silent_from)
    persons = first.table.persons is not None
    return Agreeing(first.method, first.axes, conversation, persons=persons, n_clients=len(hospitals)).run()
