"""Budget: how a client's epsilon is divided among the questions of a protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedanon.errors import UpdateRejectedError


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
