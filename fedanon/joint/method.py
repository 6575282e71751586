"""What all federated anonymizers have in common: the claim, what counts give away, and what a budget is spent on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from fedanon.data.cells import Cells
from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.fields import check_fields, parameter
from fedanon.joint.axes import Axis
from fedanon.joint.bounds import FinalNoise
from fedanon.joint.disclosure import Disclosure, Noisy, Plain, Rule, Secure, SecureNoisy, Threshold
from fedanon.joint.noise import check_opendp
from fedanon.joint.plan import Plan
from fedanon.joint.queries import FINAL, Asked
from fedanon.joint.regions import Regions
from fedanon.privacy.federation_count import FederationCount
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.types import CountArray

#: asks all clients: counts of rows and of people (the same where rows are people), one line a client or one for all
Ask = Callable[[Asked], tuple[CountArray, CountArray]]


@dataclass(frozen=True, kw_only=True)
class FederatedAnonymizer(ABC):
    """One recoding for all: k counts the people of the federation, k_local those of each hospital."""

    name: ClassVar[str]
    #: share of epsilon of every step, where counts have noise
    shares: ClassVar[Mapping[int, float]]

    k: int = parameter(help="minimum number of people of the federation in an equivalence class", at_least=2)
    k_local: int = parameter(1, help="minimum number of people of each hospital in its classes", at_least=1)
    counts: Rule = parameter("plain", help="what the counts give away")
    threshold: int = parameter(5, help="counts: threshold; smaller counts of a client are sent as 0", at_least=2)
    epsilon: float = parameter(
        1.0, help="counts: dp, secure_dp; budget of each client over the whole protocol", at_least=1e-3
    )
    doubt: float = parameter(
        1e-2,
        help="counts: dp, secure_dp; probability that some class is smaller than claimed",
        at_least=1e-9,
        at_most=0.5,
    )
    honest: int = parameter(
        0, help="counts: secure_dp; clients whose noise must be enough; 0 means more than half", at_least=0
    )

    randomness: Literal["secure", "seeded"] = parameter(
        "secure", help="counts: dp, secure_dp; noise nobody can foretell, or from the seed: for experiments, no promise"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.k_local > self.k:
            raise ConfigError(f"k_local={self.k_local} is larger than k={self.k}.")

    @abstractmethod
    def grow(self, axes: Sequence[Axis], n_clients: int, ask: Ask) -> Regions:
        """The regions, by questions to all clients."""

    def check_possible(self) -> None:
        """Raise ConfigError if something this needs is not installed."""
        if self.counts == "dp" and self.randomness == "secure":
            check_opendp()

    # ---- what counts give away ------------------------------------------------------------------

    @property
    def noisy(self) -> bool:
        """Whether counts have noise."""
        return self.counts in ("dp", "secure_dp")

    @property
    def disclosure(self) -> Disclosure:
        """What a client does to its counts."""
        rules: dict[str, Disclosure] = {
            "plain": Plain(),
            "threshold": Threshold(self.threshold),
            "secure": Secure(),
            "dp": Noisy(self.epsilon),
            "secure_dp": SecureNoisy(self.epsilon, self.honest),
        }
        return rules[self.counts]

    @property
    def budget(self) -> Budget:
        """The epsilon of each client, divided."""
        return Budget(self.epsilon, self.shares)

    def scale(self, step: int, n_counted: int = 1) -> float:
        """Scale of the noise of a step; 0 where there is none."""
        return self.budget.scale(step, n_counted) if self.noisy else 0.0

    @property
    def confidence(self) -> float:
        """Probability that the claim holds."""
        return 1.0 - self.doubt if self.noisy else 1.0

    def slack(self, n_clients: int) -> int:
        """People of a class who may have been counted and are then suppressed for want of k_local neighbours.

        Noisy counts are of all rows: counting only those that are published would make an answer depend on one row
        by up to k_local.
        """
        return n_clients * (self.k_local - 1) if self.noisy else 0

    def final_noise(self, n_clients: int) -> FinalNoise:
        """What the final count does not tell."""
        return {
            "scale": self.scale(FINAL),
            "draws": self.disclosure.draws(n_clients),
            "doubt": self.doubt,
            "slack": self.slack(n_clients),
        }

    # ---- the claim ------------------------------------------------------------------------------

    def claim(self, plan: Plan, cells: Mapping[str, Cells]) -> KAnonymity:
        """What a release by the plan claims, with the evidence of the final count."""
        evidence = FederationCount.from_cells(
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


# ---- Budget --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """The epsilon of a client over the whole protocol, and the share of every step; the shares sum to 1."""

    epsilon: float
    shares: Mapping[int, float]

    def scale(self, step: int, n_counted: int = 1) -> float:
        """Scale of the noise of the question of a step, in which a row is counted ``n_counted`` times.

        The regions of a question share no rows, so one row more or less changes n_counted counts by 1: the
        sensitivity of the answer (parallel composition). The epsilon of all steps sum up (sequential composition).
        """
        if step not in self.shares:
            raise UpdateRejectedError("the question is not one the budget foresees")
        return n_counted / (self.epsilon * self.shares[step])
