"""(alpha, k)-anonymity: no sensitive value is held by more than a share alpha of a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.data.schema import Unit
from fedanon.fields import parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import ROUNDING
from fedanon.privacy.sensitive import CountRule, Counts, SensitiveModel, count_rule
from fedanon.types import BoolArray


@PRIVACY_MODELS.register("alpha")
@dataclass(frozen=True, kw_only=True)
class AlphaKAnonymity(SensitiveModel):
    r"""At most a share ``alpha`` of the people of a class have the same value of ``column`` (Wong et al. 2006).

    .. math:: \max_s \; n_s / n \le \alpha

    This is the alpha of (alpha, k)-anonymity, for all values; the k is that of the method.
    """

    title = "(alpha, k)-anonymity"

    alpha: float = parameter(help="largest share of a value in a class", at_least=0, at_most=1)

    def kept(self, counts: Counts) -> BoolArray:
        """Which classes have no commoner value."""
        return np.asarray(counts.shares.max(axis=1) <= self.alpha + ROUNDING)

    def count_rule(self, counts: Counts) -> CountRule:
        """A bound of every share."""
        return count_rule("shares", counts.whole_shares, high=np.full_like(counts.whole_shares, self.alpha))

    def describe(self, unit: Unit) -> str:
        """One clause."""
        return f"no value of {self.column!r} shared by more than {self.alpha:.4g} of the {unit}"

    def __str__(self) -> str:
        return f"(alpha, k)-anonymity of {self.column!r} with alpha={self.alpha:g}"
