"""What the counts give away: the rules a client applies to its counts before they leave it.

``plain``      exact counts, for a server that is trusted to be honest and curious about nothing.
``threshold``  counts below t are sent as 0: rare combinations stay unseen, though differences of answers may tell.
``secure``     exact counts behind masks that cancel in the sum: the server reads sums over all clients only.
``dp``         every count with discrete Laplace noise; epsilon is summed over all answers of a client.
``secure_dp``  masks, and noise drawn once for the federation, of which every client adds a share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from fedanon.errors import ConfigError
from fedanon.joint.noise import RandomWords, add_noise, add_shares, secure_words
from fedanon.types import CountArray

Rule = Literal["plain", "threshold", "secure", "dp", "secure_dp"]


def read_rules(text: str) -> list[str]:
    """Names of rules, separated by commas; all of them if there is no text."""
    known = get_args(Rule)
    found = [name.strip() for name in text.split(",")] if text.strip() else list(known)
    if unknown := sorted(set(found) - set(known)):
        raise ConfigError(f"Unknown rules for counts: {', '.join(unknown)}. Known: {', '.join(known)}.")
    return found


class Disclosure(Protocol):
    """A rule."""

    @property
    def exact(self) -> bool:
        """An empty bucket is empty, so that boxes may shrink to what is in them."""

    @property
    def secure(self) -> bool:
        """Only sums can be read."""

    def disclose(self, counts: CountArray, scale: float, n_clients: int, words: RandomWords | None) -> CountArray:
        """What is sent for ``counts``; ``scale`` is that of the noise, where there is any, ``words`` its source.

        Without a source noise is such as nobody can foretell.
        """

    def draws(self, n_clients: int) -> float:
        """How many discrete Laplace noises are in a sum over all clients."""

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""


@dataclass(frozen=True)
class Plain:
    """Exact counts."""

    exact: ClassVar[bool] = True
    secure: ClassVar[bool] = False

    def disclose(self, counts: CountArray, scale: float, n_clients: int, words: RandomWords | None) -> CountArray:
        """The counts."""
        return counts

    def draws(self, n_clients: int) -> float:
        """None."""
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "plain"}


@dataclass(frozen=True)
class Secure(Plain):
    """Exact counts of which the server reads the sums."""

    secure: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "secure", "reads": "sums over all clients"}


@dataclass(frozen=True)
class Threshold(Plain):
    """Counts below ``threshold`` are not told from 0; what is held back only adds to the sums."""

    exact: ClassVar[bool] = False

    threshold: int

    def disclose(self, counts: CountArray, scale: float, n_clients: int, words: RandomWords | None) -> CountArray:
        """The counts that are large enough."""
        return np.where(counts >= self.threshold, counts, 0)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "threshold", "threshold": self.threshold}


@dataclass(frozen=True)
class Noisy:
    """Differential privacy of each client against everyone else, one row more or less (pure, unbounded)."""

    exact: ClassVar[bool] = False
    secure: ClassVar[bool] = False

    epsilon: float

    def disclose(self, counts: CountArray, scale: float, n_clients: int, words: RandomWords | None) -> CountArray:
        """The counts with noise."""
        return add_noise(counts, scale) if words is None else add_shares(counts, scale, 1, words)

    def draws(self, n_clients: int) -> float:
        """One of each client."""
        return float(n_clients)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "dp", "epsilon": self.epsilon, "against": "everyone but the client itself"}


@dataclass(frozen=True)
class SecureNoisy(Noisy):
    """Differential privacy against all who see sums only, if enough clients are honest.

    ``honest`` clients add enough noise together; 0 means more than half of those who take part.
    """

    secure: ClassVar[bool] = True

    honest: int

    def enough(self, n_clients: int) -> int:
        """How many shares make one noise."""
        return self.honest or n_clients // 2 + 1

    def disclose(self, counts: CountArray, scale: float, n_clients: int, words: RandomWords | None) -> CountArray:
        """The counts with a share of the noise."""
        return add_shares(counts, scale, self.enough(n_clients), words or secure_words)

    def draws(self, n_clients: int) -> float:
        """One of every ``enough`` clients."""
        return n_clients / self.enough(n_clients)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        honest = f"{self.honest} clients" if self.honest else "more than half of the clients"
        against = f"the server and all who see sums only, if {honest} add their noise and keep it to themselves"
        return {"counts": "secure_dp", "epsilon": self.epsilon, "honest": self.honest or "majority", "against": against}
