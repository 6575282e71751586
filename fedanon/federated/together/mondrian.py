"""Federated Mondrian: regions cut top-down on the counts of all hospitals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from fedanon import parameters
from fedanon.data.cells import Cells
from fedanon.errors import ConfigError
from fedanon.federated.together import TOGETHER
from fedanon.federated.together.axes import Axis
from fedanon.federated.together.cuts import Floor
from fedanon.federated.together.disclosure import Disclosure, Noisy, Plain, Threshold
from fedanon.federated.together.growth import Ask, Growth
from fedanon.federated.together.noise import check_opendp
from fedanon.federated.together.plan import Plan
from fedanon.federated.together.private_growth import Budget, PrivateGrowth
from fedanon.federated.together.regions import GrowingRegions
from fedanon.parameters import parameter
from fedanon.privacy.federation_count import FederationCount
from fedanon.privacy.k_anonymity import KAnonymity

#: questions of the growth; with joining, the final count and the plan no run has more than 40 messages
MAX_ROUNDS = 36


@TOGETHER.register("federated_mondrian")
@dataclass(frozen=True, kw_only=True)
class FederatedMondrian:
    """Cut the space of quasi-identifiers top-down on the counts of all hospitals (after LeFevre et al. 2006).

    One recoding for all: k counts the people of the federation, k_local those of each hospital.
    """

    name: ClassVar[str] = "federated_mondrian"

    k: int = parameter(help="minimum number of people of the federation in an equivalence class", at_least=2)
    k_local: int = parameter(1, help="minimum number of people of each hospital in its classes", at_least=1)
    counts: Literal["plain", "threshold", "dp"] = parameter("plain", help="what the counts give away")
    threshold: int = parameter(5, help="counts: threshold; smaller counts of a client are sent as 0", at_least=2)
    epsilon: float = parameter(1.0, help="counts: dp; budget of each client over the whole protocol", at_least=1e-3)
    doubt: float = parameter(
        1e-3, help="counts: dp; probability that a class is smaller than claimed", at_least=1e-9, at_most=0.5
    )

    def __post_init__(self) -> None:
        parameters.check(self)
        if self.k_local > self.k:
            raise ConfigError(f"k_local={self.k_local} is larger than k={self.k}.")

    def check_possible(self) -> None:
        """Raise ConfigError if something this needs is not installed."""
        if self.counts == "dp":
            check_opendp()

    @property
    def disclosure(self) -> Disclosure:
        """What a client does to its counts."""
        if self.counts == "plain":
            return Plain()
        return Threshold(self.threshold) if self.counts == "threshold" else Noisy(self.epsilon)

    def scale(self, step: int, n_axes: int = 1) -> float:
        """Scale of the noise of a step; 0 where there is none."""
        return Budget(self.epsilon).scale(step, n_axes) if self.counts == "dp" else 0.0

    @property
    def confidence(self) -> float:
        """Probability that the claim holds."""
        return 1.0 - self.doubt if self.counts == "dp" else 1.0

    def slack(self, n_clients: int) -> int:
        """People of a class who may have been counted and are then suppressed for want of k_local neighbours.

        Noisy counts are of all rows: counting only those that are published would make an answer depend on one row
        by up to k_local.
        """
        return n_clients * (self.k_local - 1) if self.counts == "dp" else 0

    def grow(self, axes: Sequence[Axis], n_clients: int, ask: Ask) -> GrowingRegions:
        """The regions, by questions to all clients."""
        if self.counts == "dp":
            k, budget = self.k + self.slack(n_clients), Budget(self.epsilon)
            return PrivateGrowth(axes, k, budget=budget, n_clients=n_clients, doubt=self.doubt).run(ask)
        exact = self.disclosure.exact
        # a threshold hides who has few people, so there k_local is kept by suppression alone
        floor = Floor(self.k, self.k_local if exact else 1)
        threshold = 1 if exact else self.threshold
        return Growth(axes, floor, exact=exact, threshold=threshold, max_rounds=MAX_ROUNDS).run(ask)

    def claim(self, plan: Plan, cells: Mapping[str, Cells]) -> KAnonymity:
        """What a release by the plan claims, with the evidence of the final count."""
        evidence = FederationCount.of(
            cells,
            plan.people,
            clients=len(plan.clients),
            confidence=self.confidence,
            disclosure=self.disclosure.to_dict(),
        )
        return KAnonymity(k=self.k, scope="federation", k_local=self.k_local, evidence=evidence)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)
