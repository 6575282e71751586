"""Entropy: what remains unknown of the original categories once the published ones are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.metrics.sdc.categories import CategoryPair, category_pairs


def entropy(categories: NDArray[Any]) -> float:
    r"""Entropy in nats, :math:`-\sum_c (f_c / N) \ln(f_c / N)` (Morais 2022, eq. 5.7)."""
    shares = np.unique(categories, return_counts=True)[1] / max(len(categories), 1)
    return float(-(shares * np.log(shares)).sum() + 0.0)


def conditional_entropy(original: NDArray[Any], published: NDArray[Any]) -> float:
    r"""Entropy of the original category given the published one, in nats.

    .. math:: H(X | Y) = \sum_{xy} \frac{n_{xy}}{N} \ln \frac{n_y}{n_{xy}}

    0 if the original can be told from what is published, H(X) if the two are independent. It is what PRAM loses
    (Domingo-Ferrer & Torra 2001, from the data instead of the transition matrix); eq. 5.7 of Morais 2022 prints H(Y).
    """
    joint = Groups.equal_rows(np.column_stack([published, original]))
    published_counts = np.unique(published, return_inverse=True, return_counts=True)
    of_joint = published_counts[2][published_counts[1]][joint.first_rows]
    return float((joint.sizes / max(len(original), 1) * np.log(of_joint / joint.sizes)).sum())


@metric("conditional_entropy", title="Entropy given the release", better="lower")
def mean_conditional_entropy(table: Table, release: Release) -> float:
    """Entropy of the original category given the published one in nats, averaged over categorical columns."""
    return _mean(table, release, lambda pair: conditional_entropy(pair.original, pair.published))


@metric("released_entropy", title="Entropy of the release", better="neither")
def released_entropy(table: Table, release: Release) -> float:
    """Entropy of the published categories in nats, averaged over categorical columns.

    Morais 2022, eq. 5.7 as printed: a description of the release, not a loss, since the original does not enter.
    """
    return _mean(table, release, lambda pair: entropy(pair.published))


def _mean(table: Table, release: Release, measure: Callable[[CategoryPair], float]) -> float:
    """Mean over the categorical columns, of the published rows."""
    kept = ~release.suppressed
    pairs = category_pairs(table, release)
    if not pairs or not kept.any():
        return np.nan
    return float(np.mean([measure(CategoryPair(pair.original[kept], pair.published[kept])) for pair in pairs]))
