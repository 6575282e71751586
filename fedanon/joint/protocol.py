"""The server's side of the protocol: grow regions by queries, count them a last time, merge, and hand out the plan.

A :class:`~fedanon.joint.query_runner.QueryTransport` carries arrays to the nodes that take part. A node that does not
answer, or whose answer is impossible, takes no further part: its rows are no longer counted. If too few nodes are left,
or the claim does not hold, the run stops before anything is released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.joint.axes import Axis
from fedanon.joint.bounds import confirmed_pairs, make_lower_bound
from fedanon.joint.masks import new_secret, public_key
from fedanon.joint.merging import LowerBound, Merging, RegionNeighbors
from fedanon.joint.method import JointMethod
from fedanon.joint.node import Participant
from fedanon.joint.plan import Plan
from fedanon.joint.queries import FINAL, Query, leaf_count_query, pack_counts
from fedanon.joint.query_runner import Answers, Arrays, QueryRunner, QueryTransport, Read
from fedanon.joint.regions import Regions
from fedanon.privacy.federation_count import WARNING
from fedanon.types import CountArray, IndexArray, IntArray


class JointProtocol:
    """One run of the protocol.

    Parameters
    ----------
    method : the joint method, with its parameters.
    axes : the quasi-identifiers, the same at every node.
    transport : the way to the nodes.
    persons : whether nodes count people as well as rows.
    n_nodes : number of nodes that joined.
    """

    def __init__(
        self, method: JointMethod, axes: Sequence[Axis], transport: QueryTransport, *, persons: bool, n_nodes: int
    ) -> None:
        self._method = method
        self._axes = method.weigh(axes)
        self._persons = persons
        self._runner = QueryRunner(method, self._axes, transport, persons=persons)
        self._n_nodes = n_nodes

    def run(self) -> Agreement:
        """Grow the regions, count them once more, and merge those that are too small."""
        regions = self._method.grow(self._axes, self._n_nodes, self._run_query)
        return self._conclude(regions, self._runner.run(leaf_count_query(regions, len(self._axes)), FINAL))

    def _run_query(self, query: Query) -> tuple[CountArray, CountArray]:
        answers = self._runner.run(query)
        return answers.rows, answers.people

    def _conclude(self, regions: Regions, answers: Answers) -> Agreement:
        """Merge by the final count."""
        method = self._method
        neighbors = (
            RegionNeighbors.from_boxes(self._axes, *regions.boxes(regions.router.leaves)) if method.noisy else None
        )
        matchings = neighbors.matchings() if neighbors else []
        merging = Merging(
            regions,
            self._axes,
            totals := answers.people.sum(axis=0),
            self._bound(totals, len(answers.nodes)),
            additive=not self._persons,
            suppress=method.noisy,
            neighbors=neighbors,
            confirmed=self._confirmed(matchings, totals, len(answers.nodes)),
        )
        classes = merging.run(method.k)
        plan = Plan(
            regions.router,
            classes.of_region,
            classes.low,
            classes.high,
            classes.least.astype(np.int32),
            np.array(answers.nodes, dtype=np.int32),
        )

        def smallest_of(left: Sequence[int]) -> int:
            lines = [answers.nodes.index(number) for number in left]
            totals = answers.people[lines].sum(axis=0)
            of_leaf = classes.of_region[regions.router.leaves]
            return int(self._least(of_leaf, totals, self._confirmed(matchings, totals, len(left)), len(left)).min())

        return Agreement(method, plan, smallest_of, self._runner.traffic)

    def _least(self, of_leaf: IntArray, totals: CountArray, pairs: IndexArray, n_nodes: int) -> CountArray:
        """People every class is sure to hold, by the sum of its leaves' counts, or by one or two of them alone."""
        bound, kept = self._bound(totals, n_nodes), of_leaf >= 0
        members = np.bincount(of_leaf[kept])
        summed = np.zeros(len(members), dtype=np.int64)
        (np.maximum if self._persons else np.add).at(summed, of_leaf[kept], totals[kept])
        least = np.array([bound(int(n), int(m)) for n, m in zip(summed, members, strict=True)])
        np.maximum.at(least, of_leaf[kept], [bound(int(total), 1) for total in totals[kept]])
        one, other = of_leaf[pairs].T
        joined = one[(one == other) & (one >= 0)]
        least[joined] = np.maximum(least[joined], self._method.k)
        return least

    def _bound(self, totals: CountArray, n_nodes: int) -> LowerBound:
        return make_lower_bound(totals, self._method.k, **self._method.final_noise(n_nodes))

    def _confirmed(self, matchings: Sequence[IndexArray], totals: CountArray, n_nodes: int) -> IndexArray:
        return confirmed_pairs(matchings, totals, self._method.k, **self._method.final_noise(n_nodes))


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the nodes agreed on.

    Parameters
    ----------
    method : the joint method.
    plan : the recoding for the nodes.
    smallest_of : given the numbers of some nodes, how many people the smallest class is sure to hold by their counts.
    traffic : number of queries, and the most bytes that any node received and sent.
    """

    method: JointMethod
    plan: Plan
    smallest_of: Callable[[Sequence[int]], int]
    traffic: Mapping[str, int]

    def check_confirmed(self, confirmed: set[int]) -> None:
        """Raise unless the claim also holds without the nodes that were counted and then did not release.

        With masked sums nobody can subtract what those nodes counted, so that any of them stops the run.
        """
        counted = self.plan.nodes.tolist()
        left = [number for number in counted if number in confirmed]
        if len(left) == len(counted):
            return
        if self.method.disclosure.secure or not left or self.smallest_of(left) < self.method.k:
            raise InfeasibleError(
                f"{len(counted) - len(left)} of {len(counted)} nodes were counted and did not confirm their release. "
                f"Without them not every class is sure to hold k={self.method.k} people: nothing was trained on; "
                "start again."
            )

    def to_dict(self, protocols: int = 1) -> dict[str, Any]:
        """For the manifest: no cells, and no count but the smallest; ``protocols`` is how often the run has agreed."""
        return {
            **self.method.to_dict(),
            "scope": "federation",
            "nodes": self.plan.nodes.tolist(),
            "classes": len(self.plan.people),
            "smallest_class_at_least": int(self.plan.people.min()),
            "confidence": self.method.confidence,
            "disclosure": self.method.disclosure.to_dict(),
            "protocols": protocols,
            **self._spent(protocols),
            "recoding_sha256": self.plan.sha256,
            "warning": WARNING,
            **self.traffic,
        }

    def _spent(self, protocols: int) -> dict[str, Any]:
        if not self.method.noisy:
            return {}
        return {"epsilon_spent": protocols * self.method.epsilon, "promised": self.method.randomness == "secure"}


def check_same_axes(found: Mapping[int, Arrays]) -> list[Axis]:
    """The axes that all nodes sent; UpdateRejectedError if they differ, or if no schema can have them."""
    first = next(iter(found.values()))
    for arrays in found.values():
        if len(arrays) != len(first) or any(not np.array_equal(a, b) for a, b in zip(arrays, first, strict=True)):
            raise UpdateRejectedError("its axes differ from those of the other nodes")
    return [Axis.from_array(array) for array in first]


# ---- all nodes in one process --------------------------------------------------------------------

NEVER = 10**9


class InProcess:
    """A transport to nodes of this process, asked one after the other.

    Parameters
    ----------
    participants : the nodes that take part.
    unresponsive_from : for some of them, by number, the first step that they do not answer.
    """

    def __init__(self, participants: Sequence[Participant], unresponsive_from: Mapping[int, int] | None = None) -> None:
        self._participants = list(participants)
        self._unresponsive_from = unresponsive_from or {}
        self._secrets = {participant.number: new_secret() for participant in participants}

    @property
    def keys(self) -> dict[int, bytes]:
        """Public keys of the nodes that still take part."""
        return {one.number: public_key(self._secrets[one.number]) for one in self._participants}

    @property
    def signatures(self) -> dict[int, bytes]:
        """None: nobody stands between the nodes of one process."""
        return {}

    def send(self, step: int, arrays: Arrays, read: Read) -> dict[int, CountArray]:
        """The answer of every node."""
        self._participants = [
            one for one in self._participants if step < self._unresponsive_from.get(one.number, NEVER)
        ]
        found = {one.number: one.answer(list(arrays), step, self._secrets[one.number]) for one in self._participants}
        return {number: read([pack_counts(counts)]) for number, counts in found.items()}


def agree(participants: Sequence[Participant], unresponsive_from: Mapping[int, int] | None = None) -> Agreement:
    """Run the protocol with nodes of this process."""
    first = participants[0]
    transport = InProcess(participants, unresponsive_from)
    persons = first.table.persons is not None
    return JointProtocol(first.method, first.axes, transport, persons=persons, n_nodes=len(participants)).run()
