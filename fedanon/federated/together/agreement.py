"""Agreement: what a run of the protocol ends with, and what of it is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedanon.errors import InfeasibleError
from fedanon.federated.together.method import FederatedAnonymizer
from fedanon.federated.together.plan import Plan
from fedanon.privacy.federation_count import WARNING


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
