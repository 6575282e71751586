"""beta-likeness: no sensitive value is much more common in a class than in the whole release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.data.schema import Unit
from fedanon.fields import parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import ROUNDING
from fedanon.privacy.sensitive import CountRule, Counts, SensitiveModel, count_rule
from fedanon.types import BoolArray, FloatArray


@PRIVACY_MODELS.register("beta")
@dataclass(frozen=True, kw_only=True)
class BetaLikeness(SensitiveModel):
    r"""Bound of the relative gain in knowledge about any value of ``column`` (Cao & Karras 2012).

    .. math:: \frac{q_s - p_s}{p_s} \le \beta, \qquad\text{or, enhanced,}\quad \le \min(\beta, -\ln p_s)

    for every value s that is more common in the class (share q) than in all that is published (share p). The enhanced
    form bounds common values too, whose gain can never reach beta.
    """

    title = "beta-likeness"

    beta: float = parameter(help="largest relative gain", at_least=0)
    enhanced: bool = parameter(False, help="at most -ln(share) for common values")

    def kept(self, counts: Counts) -> BoolArray:
        """Which classes gain no more."""
        return np.asarray((counts.shares <= self._most(counts.whole_shares) + ROUNDING).all(axis=1))

    def _most(self, whole: FloatArray) -> FloatArray:
        """Largest share of every value."""
        return np.maximum(whole * (1 + self._gain(whole)), whole)

    def _gain(self, whole: FloatArray) -> FloatArray:
        logs = np.log(whole, out=np.zeros_like(whole), where=whole > 0)
        return np.minimum(self.beta, -logs) if self.enhanced else np.full_like(whole, self.beta)

    def count_rule(self, counts: Counts) -> CountRule:
        """A bound of every share."""
        return count_rule("shares", counts.whole_shares, high=self._most(counts.whole_shares))

    def describe(self, unit: Unit) -> str:
        """One clause."""
        bound = f"min({self.beta:g}, -ln of its share)" if self.enhanced else f"{self.beta:g}"
        return f"no value of {self.column!r} more common than in the whole release by a factor above 1 + {bound}"

    def __str__(self) -> str:
        return f"{'enhanced' if self.enhanced else 'basic'} {self.beta:g}-likeness of {self.column!r}"
