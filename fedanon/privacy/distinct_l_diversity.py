"""Distinct l-diversity: the people of a class have at least l different sensitive values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.parameters import parameter
from fedanon.privacy import MODELS
from fedanon.privacy.base import Mask
from fedanon.privacy.count_rule import CountRule, count_rule
from fedanon.privacy.counts import Counts
from fedanon.privacy.sensitive_model import SensitiveModel


@MODELS.register("l")
@dataclass(frozen=True, kw_only=True)
class DistinctLDiversity(SensitiveModel):
    """At least ``l`` different values of ``column`` in every class (Machanavajjhala et al. 2007).

    Nothing is said about how common they are: see :class:`~fedanon.privacy.entropy_l_diversity.EntropyLDiversity`.
    """

    title = "distinct l-diversity"

    l: int = parameter(help="least number of different values", at_least=2)  # noqa: E741  the model's own name

    def kept(self, counts: Counts) -> Mask:
        """Which classes have l values."""
        return np.asarray((counts.by_class > 0).sum(axis=1) >= self.l)

    def count_rule(self, counts: Counts) -> CountRule:
        """A number of values."""
        return count_rule("distinct", counts.whole_distribution, limit=self.l)

    def describe(self) -> str:
        """One clause."""
        return f"at least {self.l} different values of {self.column!r}"

    def __str__(self) -> str:
        return f"distinct {self.l}-diversity of {self.column!r}"
