"""Disclosure: the rules that a node applies to its counts before they leave it.

``plain``      exact counts, for a server that all nodes trust with them
``threshold``  counts below t are sent as 0: rare combinations stay unseen, though differences of answers may show them
``secure``     exact counts behind masks that cancel in the sum: the server can read only sums over all nodes
``dp``         every count with discrete Laplace noise; epsilon is summed over all answers of a node
``secure_dp``  masks, and noise drawn once for the federation, of which every node adds a share

None dominates another: they differ in whom a node has to trust and in what the claim costs (docs/explanation/joint.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from fedanon.errors import ConfigError
from fedanon.joint.noise import RandomWords, add_noise, add_noise_shares, secure_words
from fedanon.types import CountArray

Rule = Literal["plain", "threshold", "secure", "dp", "secure_dp"]


def read_rules(text: str) -> list[str]:
    """Names of rules, separated by commas; all rules if the text is empty."""
    known = get_args(Rule)
    found = [name.strip() for name in text.split(",")] if text.strip() else list(known)
    if unknown := sorted(set(found) - set(known)):
        raise ConfigError(f"Unknown rules for counts: {', '.join(unknown)}. Known: {', '.join(known)}.")
    return found


class Disclosure(Protocol):
    """A rule for counts."""

    @property
    def exact(self) -> bool:
        """Whether a count of 0 means that there is no row, so that boxes may shrink to the rows in them."""

    @property
    def secure(self) -> bool:
        """Whether the server can read only sums."""

    def disclose(self, counts: CountArray, scale: float, n_nodes: int, words: RandomWords | None) -> CountArray:
        """What is sent for ``counts``; ``scale`` is that of the noise, if there is any, and ``words`` its source.

        Without a source, noise is drawn so that nobody can predict it.
        """

    def draws(self, n_nodes: int) -> float:
        """Number of discrete Laplace draws in a sum over all nodes."""

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""


@dataclass(frozen=True)
class Plain:
    """Exact counts."""

    exact: ClassVar[bool] = True
    secure: ClassVar[bool] = False

    def disclose(self, counts: CountArray, scale: float, n_nodes: int, words: RandomWords | None) -> CountArray:
        """The counts."""
        return counts

    def draws(self, n_nodes: int) -> float:
        """None."""
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "plain"}


@dataclass(frozen=True)
class Secure(Plain):
    """Exact counts of which the server can read only the sums."""

    secure: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "secure", "reads": "sums over all nodes"}


@dataclass(frozen=True)
class Threshold(Plain):
    """Counts below ``threshold`` look like 0, so that sums are lower bounds."""

    exact: ClassVar[bool] = False

    threshold: int

    def disclose(self, counts: CountArray, scale: float, n_nodes: int, words: RandomWords | None) -> CountArray:
        """The counts that are large enough, 0 for the others."""
        return np.where(counts >= self.threshold, counts, 0)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "threshold", "threshold": self.threshold}


@dataclass(frozen=True)
class Noisy:
    """Differential privacy of each node against everyone else (pure; neighbors differ by one row more or less)."""

    exact: ClassVar[bool] = False
    secure: ClassVar[bool] = False

    epsilon: float

    def disclose(self, counts: CountArray, scale: float, n_nodes: int, words: RandomWords | None) -> CountArray:
        """The counts with noise."""
        return add_noise(counts, scale) if words is None else add_noise_shares(counts, scale, 1, words)

    def draws(self, n_nodes: int) -> float:
        """One per node."""
        return float(n_nodes)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "dp", "epsilon": self.epsilon, "against": "everyone but the node itself"}


@dataclass(frozen=True)
class SecureNoisy(Noisy):
    """Differential privacy against everyone who sees only sums, if enough nodes are honest.

    The shares of ``honest`` nodes make up the full noise; 0 means more than half of those that take part.
    """

    secure: ClassVar[bool] = True

    honest: int

    def enough(self, n_nodes: int) -> int:
        """How many shares make up the full noise."""
        return self.honest or n_nodes // 2 + 1

    def disclose(self, counts: CountArray, scale: float, n_nodes: int, words: RandomWords | None) -> CountArray:
        """The counts with a share of the noise."""
        return add_noise_shares(counts, scale, self.enough(n_nodes), words or secure_words)

    def draws(self, n_nodes: int) -> float:
        """One per ``enough`` nodes."""
        return n_nodes / self.enough(n_nodes)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        honest = f"{self.honest} nodes" if self.honest else "more than half of the nodes"
        against = f"the server and all who see sums only, if {honest} add their noise and keep it to themselves"
        return {"counts": "secure_dp", "epsilon": self.epsilon, "honest": self.honest or "majority", "against": against}
