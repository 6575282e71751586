"""Federated Mondrian: regions cut top-down on the counts of all hospitals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fedanon.joint import TOGETHER
from fedanon.joint.axes import Axis
from fedanon.joint.bounds import expected_need
from fedanon.joint.cuts import Floor
from fedanon.joint.growth import Growth
from fedanon.joint.method import Ask, FederatedAnonymizer
from fedanon.joint.private_growth import PrivateGrowth
from fedanon.joint.queries import FINAL
from fedanon.joint.regions import Regions

#: questions of the growth; with joining, the final count and the plan no run has more than 40 messages
MAX_ROUNDS = 36


@TOGETHER.register("federated_mondrian")
@dataclass(frozen=True, kw_only=True)
class FederatedMondrian(FederatedAnonymizer):
    """Cut the space of quasi-identifiers top-down on the counts of all hospitals (after LeFevre et al. 2006).

    One recoding for all: k counts the people of the federation, k_local those of each hospital.
    """

    name: ClassVar[str] = "federated_mondrian"
    #: histograms of all rows, counts of ever smaller regions, the final count
    shares: ClassVar[Mapping[int, float]] = {1: 0.08, 2: 0.06, 3: 0.1, FINAL: 0.76}

    def grow(self, axes: Sequence[Axis], n_clients: int, ask: Ask) -> Regions:
        """Questions until nothing can be cut; with noise only three."""
        disclosure = self.disclosure
        if self.noisy:
            need = expected_need(self.k, **self.final_noise(n_clients))
            return PrivateGrowth(axes, need, budget=self.budget, draws=disclosure.draws(n_clients)).run(ask)
        # where nobody tells who has few people, k_local is kept by suppression alone
        floor = Floor(self.k, self.k_local if self.counts == "plain" else 1)
        threshold = 1 if disclosure.exact else self.threshold
        return Growth(axes, floor, exact=disclosure.exact, threshold=threshold, max_rounds=MAX_ROUNDS).run(ask)
