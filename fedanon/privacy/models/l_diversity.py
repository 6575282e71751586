"""Distinct l-diversity: the people of a class have at least l different sensitive values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedanon.data.schema import Unit
from fedanon.fields import parameter
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import ROUNDING
from fedanon.privacy.sensitive import CountRule, Counts, SensitiveModel, count_rule
from fedanon.types import BoolArray, FloatArray


@PRIVACY_MODELS.register("l")
@dataclass(frozen=True, kw_only=True)
class DistinctLDiversity(SensitiveModel):
    """At least ``l`` different values of ``column`` in every class (Machanavajjhala et al. 2007).

    Nothing is said about how common they are: see :class:`~fedanon.privacy.models.l_diversity.EntropyLDiversity`.
    """

    title = "distinct l-diversity"

    l: int = parameter(help="least number of different values", at_least=2)  # noqa: E741  the model's own name

    def kept(self, counts: Counts) -> BoolArray:
        """Which classes have l values."""
        return np.asarray((counts.by_class > 0).sum(axis=1) >= self.l)

    def count_rule(self, counts: Counts) -> CountRule:
        """A number of values."""
        return count_rule("distinct", counts.whole_distribution, limit=self.l)

    def describe(self, unit: Unit) -> str:
        """One clause."""
        return f"at least {self.l} different values of {self.column!r}"

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity of {self.column!r}"


# ---- Entropy l-diversity -------------------------------------------------------------------------


@PRIVACY_MODELS.register("entropy_l")
@dataclass(frozen=True, kw_only=True)
class EntropyLDiversity(SensitiveModel):
    r"""Entropy of ``column`` in every class at least that of ``l`` equally common values (Machanavajjhala et al. 2007).

    .. math:: -\sum_s p_s \ln p_s \ge \ln l

    with the distribution p of the values in the class. Entropy is concave, so the model is monotone.
    """

    title = "entropy l-diversity"

    l: float = parameter(help="number of equally common values with the least entropy allowed", at_least=1)  # noqa: E741

    def kept(self, counts: Counts) -> BoolArray:
        """Which classes have the entropy."""
        return np.asarray(entropies(counts.distributions) >= math.log(self.l) - ROUNDING)

    def count_rule(self, counts: Counts) -> CountRule:
        """An entropy."""
        return count_rule("entropy", counts.whole_distribution, limit=math.log(self.l))

    def describe(self, unit: Unit) -> str:
        """One clause."""
        return f"values of {self.column!r} as uncertain as {self.l:g} equally common ones"

    def __str__(self) -> str:
        return f"entropy {self.l:g}-diversity of {self.column!r}"


def entropies(distributions: FloatArray) -> FloatArray:
    """Entropy of every row in nats."""
    logs = np.log(distributions, out=np.zeros_like(distributions), where=distributions > 0)
    return np.asarray(-(distributions * logs).sum(axis=1))


# ---- Recursive (c, l)-diversity ------------------------------------------------------------------


@PRIVACY_MODELS.register("recursive_l")
@dataclass(frozen=True, kw_only=True)
class RecursiveLDiversity(SensitiveModel):
    r"""The commonest value of ``column`` is rarer than ``c`` times all from the l-th on (Machanavajjhala et al. 2007).

    .. math:: r_1 < c \, (r_l + r_{l+1} + \dots + r_m)

    with the counts :math:`r_1 \ge \dots \ge r_m` of the values in the class.
    """

    title = "recursive (c, l)-diversity"

    l: int = parameter(help="the sum begins at the l-th commonest value", at_least=2)  # noqa: E741
    c: float = parameter(2.0, help="factor of the sum", at_least=0)

    def kept(self, counts: Counts) -> BoolArray:
        """Which classes keep the inequality."""
        falling = -np.sort(-counts.by_class, axis=1)
        rare = falling[:, self.l - 1 :].sum(axis=1)
        return np.asarray(falling[:, 0] < self.c * rare - ROUNDING)

    def describe(self, unit: Unit) -> str:
        """One clause."""
        return (
            f"a commonest value of {self.column!r} that fewer {unit} have than {self.c:g} times those with the "
            f"values from the {self.l}. commonest on"
        )

    def __str__(self) -> str:
        return f"recursive ({self.c:g}, {self.l})-diversity of {self.column!r}"
