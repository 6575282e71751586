"""What the counts give away: three rules a client applies to its counts before they leave it.

``plain``      exact counts, for a server that is trusted to be honest and curious about nothing.
``threshold``  counts below t are sent as 0: rare combinations stay unseen, though differences of answers may tell.
``dp``         every count with discrete Laplace noise; epsilon is summed over all answers of a client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.federated.together.noise import add_noise, reach

Counts = NDArray[np.int64]


class Disclosure(Protocol):
    """A rule."""

    @property
    def exact(self) -> bool:
        """An empty bucket is empty, so that boxes may shrink to what is in them."""

    def disclose(self, counts: Counts, scale: float) -> Counts:
        """What is sent for ``counts``; ``scale`` is that of the noise, where there is any."""

    def lower_bound(self, totals: NDArray[Any], draws: NDArray[Any], scale: float, log_doubt: float) -> Counts:
        """What sums of ``draws`` sent counts say at least, each but for a doubt of exp(log_doubt)."""

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""


@dataclass(frozen=True)
class Plain:
    """Exact counts."""

    exact: bool = True

    def disclose(self, counts: Counts, scale: float) -> Counts:
        """The counts."""
        return counts

    def lower_bound(self, totals: NDArray[Any], draws: NDArray[Any], scale: float, log_doubt: float) -> Counts:
        """The totals."""
        return np.asarray(totals, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "plain"}


@dataclass(frozen=True)
class Threshold:
    """Counts below ``threshold`` are not told from 0."""

    threshold: int
    exact: bool = False

    def disclose(self, counts: Counts, scale: float) -> Counts:
        """The counts that are large enough."""
        return np.where(counts >= self.threshold, counts, 0)

    def lower_bound(self, totals: NDArray[Any], draws: NDArray[Any], scale: float, log_doubt: float) -> Counts:
        """The totals: what was held back only adds to them."""
        return np.asarray(totals, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "threshold", "threshold": self.threshold}


@dataclass(frozen=True)
class Noisy:
    """Differential privacy of each client against the server, one row more or less (pure, unbounded)."""

    epsilon: float
    exact: bool = False

    def disclose(self, counts: Counts, scale: float) -> Counts:
        """The counts with noise."""
        return add_noise(counts, scale)

    def lower_bound(self, totals: NDArray[Any], draws: NDArray[Any], scale: float, log_doubt: float) -> Counts:
        """The totals less what the noise may have added."""
        above = np.array([reach(scale, int(n), log_doubt) for n in np.ravel(draws)])
        return np.asarray(totals - above.reshape(np.shape(draws)), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"counts": "dp", "epsilon": self.epsilon}
