"""Recursive (c, l)-diversity: the commonest value of a class is not much more common than the rare ones together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.parameters import parameter
from fedanon.privacy import MODELS
from fedanon.privacy.base import ROUNDING, Mask
from fedanon.privacy.counts import Counts
from fedanon.privacy.sensitive_model import SensitiveModel


@MODELS.register("recursive_l")
@dataclass(frozen=True, kw_only=True)
class RecursiveLDiversity(SensitiveModel):
    r"""The commonest value of ``column`` is rarer than ``c`` times all from the l-th on (Machanavajjhala et al. 2007).

    .. math:: r_1 < c \, (r_l + r_{l+1} + \dots + r_m)

    with the counts :math:`r_1 \ge \dots \ge r_m` of the values in the class.
    """

    title = "recursive (c, l)-diversity"

    l: int = parameter(help="the sum begins at the l-th commonest value", at_least=2)  # noqa: E741
    c: float = parameter(2.0, help="factor of the sum", at_least=0)

    def kept(self, counts: Counts) -> Mask:
        """Which classes keep the inequality."""
        falling = -np.sort(-counts.by_class, axis=1)
        rare = falling[:, self.l - 1 :].sum(axis=1)
        return np.asarray(falling[:, 0] < self.c * rare - ROUNDING)

    def describe(self) -> str:
        """One clause."""
        return (
            f"a commonest value of {self.column!r} that fewer people have than {self.c:g} times those with the "
            f"values from the {self.l}. commonest on"
        )

    def __str__(self) -> str:
        return f"recursive ({self.c:g}, {self.l})-diversity of {self.column!r}"
