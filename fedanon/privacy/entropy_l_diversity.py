"""Entropy l-diversity: the sensitive values of a class are as uncertain as l equally common ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedanon.data.hierarchy import FloatArray
from fedanon.parameters import parameter
from fedanon.privacy import MODELS
from fedanon.privacy.base import ROUNDING, Mask
from fedanon.privacy.count_rule import CountRule, count_rule
from fedanon.privacy.counts import Counts
from fedanon.privacy.sensitive_model import SensitiveModel


@MODELS.register("entropy_l")
@dataclass(frozen=True, kw_only=True)
class EntropyLDiversity(SensitiveModel):
    r"""Entropy of ``column`` in every class at least that of ``l`` equally common values (Machanavajjhala et al. 2007).

    .. math:: -\sum_s p_s \ln p_s \ge \ln l

    with the distribution p of the values in the class. Entropy is concave, so the model is monotone.
    """

    title = "entropy l-diversity"

    l: float = parameter(help="number of equally common values with the least entropy allowed", at_least=1)  # noqa: E741

    def kept(self, counts: Counts) -> Mask:
        """Which classes have the entropy."""
        return np.asarray(entropies(counts.distributions) >= math.log(self.l) - ROUNDING)

    def count_rule(self, counts: Counts) -> CountRule:
        """An entropy."""
        return count_rule("entropy", counts.whole_distribution, limit=math.log(self.l))

    def describe(self) -> str:
        """One clause."""
        return f"values of {self.column!r} as uncertain as {self.l:g} equally common ones"

    def __str__(self) -> str:
        return f"entropy {self.l:g}-diversity of {self.column!r}"


def entropies(distributions: FloatArray) -> FloatArray:
    """Entropy of every row in nats."""
    logs = np.log(distributions, out=np.zeros_like(distributions), where=distributions > 0)
    return np.asarray(-(distributions * logs).sum(axis=1))
