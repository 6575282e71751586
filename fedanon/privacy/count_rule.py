"""CountRule: a model about the counts of a column's values, in a form a compiled search can check at every step."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray

Kind = Literal["distinct", "entropy", "equal", "ordered", "shares"]
KINDS: tuple[Kind, ...] = ("distinct", "entropy", "equal", "ordered", "shares")


class CountRule(NamedTuple):
    """What the counts of the values in a class must keep.

    Parameters
    ----------
    kind : number of different values, their entropy, or their distance to the whole at most or at least ``limit``;
        or the share of every value between ``low`` and ``high``.
    limit : see ``kind``.
    whole : distribution of all values, in the rule's order.
    low, high : bounds of the shares, for that kind.
    order : codes of the values in the rule's order; values it leaves out do not occur.
    """

    kind: Kind
    limit: float
    whole: FloatArray
    low: FloatArray
    high: FloatArray
    order: NDArray[np.int64]


def count_rule(
    kind: Kind,
    whole: FloatArray,
    *,
    limit: float = 0.0,
    low: FloatArray | None = None,
    high: FloatArray | None = None,
    order: NDArray[np.int64] | None = None,
) -> CountRule:
    """A rule over values with the distribution ``whole``; what is not given does not bound."""
    order = np.arange(len(whole)) if order is None else order
    low = np.zeros(len(whole)) if low is None else low
    high = np.ones(len(whole)) if high is None else high
    return CountRule(kind, limit, whole[order], low[order], high[order], order)
