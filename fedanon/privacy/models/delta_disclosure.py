"""delta-disclosure privacy: every sensitive value is about as common in a class as in the whole release."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedanon.data.schema import Unit
from fedanon.fields import parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import ROUNDING
from fedanon.privacy.sensitive import CountRule, Counts, SensitiveModel, count_rule
from fedanon.types import BoolArray


@PRIVACY_MODELS.register("delta")
@dataclass(frozen=True, kw_only=True)
class DeltaDisclosure(SensitiveModel):
    r"""Shares in a class and in all that is published differ by a factor below exp(delta) (Brickell & Shmatikov 2008).

    .. math:: \left| \ln \frac{q_s}{p_s} \right| < \delta

    for every value s of ``column`` in the release, with its share q in the class and p in all that is published. As in
    the paper, a value that a class lacks breaks the model. (pycanon leaves such values out; the model is then weaker,
    and merging classes may break it.)
    """

    title = "delta-disclosure privacy"

    delta: float = parameter(help="largest absolute logarithm of the ratio of shares", at_least=0)

    def kept(self, counts: Counts) -> BoolArray:
        """Which classes stay inside the bounds."""
        used = counts.whole > 0
        ratio = counts.shares[:, used] / counts.whole_shares[used]
        logs = np.log(ratio, out=np.full_like(ratio, -np.inf), where=ratio > 0)
        return np.asarray((np.abs(logs) < self.delta - ROUNDING).all(axis=1))

    def count_rule(self, counts: Counts) -> CountRule:
        """Bounds of every share, a little inside the open interval."""
        whole, factor = counts.whole_shares, math.exp(self.delta - 4 * ROUNDING)
        return count_rule("shares", whole, low=whole / factor + ROUNDING, high=whole * factor - ROUNDING)

    def describe(self, unit: Unit) -> str:
        """One clause."""
        return (
            f"every value of {self.column!r}, its share less than a factor exp({self.delta:g}) from that in the "
            "whole release"
        )

    def __str__(self) -> str:
        return f"{self.delta:g}-disclosure privacy of {self.column!r}"
