"""What all joint methods share: parameters, the rule for counts, the privacy budget and the claim."""

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
from fedanon.joint.queries import FINAL, Query
from fedanon.joint.regions import Regions
from fedanon.privacy.federation_count import FederationCount
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.types import CountArray

#: sends a query to all nodes; counts of rows and of people (the same where a row is a person), one line per node or
#: a single one for all
RunQuery = Callable[[Query], tuple[CountArray, CountArray]]


@dataclass(frozen=True, kw_only=True)
class JointMethod(ABC):
    """One recoding for all nodes: k counts the people of the federation, k_local those of each node."""

    name: ClassVar[str]
    #: the share of epsilon of every step, where counts have noise
    shares: ClassVar[Mapping[int, float]]

    k: int = parameter(help="minimum number of people of the federation in an equivalence class", at_least=2)
    k_local: int = parameter(1, help="minimum number of people of each node in its classes", at_least=1)
    counts: Rule = parameter("plain", help="what the counts give away")
    threshold: int = parameter(5, help="counts: threshold; smaller counts of a node are sent as 0", at_least=2)
    epsilon: float = parameter(
        1.0, help="counts: dp, secure_dp; budget of each node over the whole protocol", at_least=1e-3
    )
    failure_probability: float = parameter(
        1e-2,
        help="counts: dp, secure_dp; probability that some class is smaller than claimed",
        at_least=1e-9,
        at_most=0.5,
        aliases=("doubt",),
    )
    honest: int = parameter(
        0, help="counts: secure_dp; number of nodes whose noise must suffice; 0 means more than half", at_least=0
    )

    randomness: Literal["secure", "seeded"] = parameter(
        "secure", help="counts: dp, secure_dp; 'seeded' noise is for experiments: it promises nothing"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.k_local > self.k:
            raise ConfigError(f"k_local={self.k_local} is larger than k={self.k}.")

    @abstractmethod
    def grow(self, axes: Sequence[Axis], n_nodes: int, run_query: RunQuery) -> Regions:
        """The regions, found by queries to all nodes."""

    def weigh(self, axes: Sequence[Axis]) -> Sequence[Axis]:
        """The axes with the weights by which the server compares losses: all alike, unless the method is guided."""
        return axes

    def check_possible(self) -> None:
        """Raise ConfigError if something that the method needs is not installed."""
        if self.counts == "dp" and self.randomness == "secure":
            check_opendp()

    # ---- the rule for counts --------------------------------------------------------------------

    @property
    def noisy(self) -> bool:
        """Whether counts have noise."""
        return self.counts in ("dp", "secure_dp")

    @property
    def disclosure(self) -> Disclosure:
        """What a node does to its counts before it sends them."""
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
        """The epsilon of each node, divided among the steps."""
        return Budget(self.epsilon, self.shares)

    def scale(self, step: int, n_counted: int = 1) -> float:
        """Scale of the noise of a step; 0 where there is none."""
        return self.budget.scale(step, n_counted) if self.noisy else 0.0

    @property
    def confidence(self) -> float:
        """Probability that the claim holds."""
        return 1.0 - self.failure_probability if self.noisy else 1.0

    def slack(self, n_nodes: int) -> int:
        """People of a class who may have been counted and are then suppressed for lack of k_local people.

        Noisy counts cover all rows: if only published ones were counted, a single row could change an answer by up to
        k_local.
        """
        return n_nodes * (self.k_local - 1) if self.noisy else 0

    def final_noise(self, n_nodes: int) -> FinalNoise:
        """The uncertainty of the final count."""
        return {
            "scale": self.scale(FINAL),
            "draws": self.disclosure.draws(n_nodes),
            "failure_probability": self.failure_probability,
            "slack": self.slack(n_nodes),
        }

    # ---- the claim ------------------------------------------------------------------------------

    def claim(self, plan: Plan, cells: Mapping[str, Cells]) -> KAnonymity:
        """The claim of a release by the plan, with the final count as evidence."""
        evidence = FederationCount.from_cells(
            cells,
            plan.people,
            nodes=len(plan.nodes),
            confidence=self.confidence,
            disclosure=self.disclosure.to_dict(),
        )
        return KAnonymity(k=self.k, scope="federation", k_local=self.k_local, evidence=evidence)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


@dataclass(frozen=True)
class Budget:
    """The epsilon of a node for the whole protocol, and the share of every step; the shares sum to 1."""

    epsilon: float
    shares: Mapping[int, float]

    def scale(self, step: int, n_counted: int = 1) -> float:
        """Scale of the noise in the answer of a step whose query counts a row ``n_counted`` times.

        The regions of a query share no rows, so one row more or less changes n_counted counts by 1: that is the
        sensitivity of the answer (parallel composition). The epsilons of all steps add up (sequential composition).
        """
        if step not in self.shares:
            raise UpdateRejectedError("the budget has no share for this query")
        return n_counted / (self.epsilon * self.shares[step])
