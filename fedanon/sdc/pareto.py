"""Risk against loss: the points that no other point beats on both, and the ones to choose for three goals.

The goals are those of the conclusion of Morais 2022: the least loss, the best compromise, the least risk; the first two
within an acceptable risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedanon.types import AnyArray, BoolArray, FloatArray, IndexArray

Goal = Literal["least loss", "best compromise", "least risk"]

GOALS: tuple[Goal, ...] = ("least loss", "best compromise", "least risk")
#: the risk beyond which Morais 2022 (section 7.5) accepts no method
LIMIT = 0.5


@dataclass(frozen=True)
class Choice:
    """The point to choose for a goal.

    Parameters
    ----------
    goal : what is wanted.
    index : position of the point among all.
    risk, loss : of the point.
    why : the reason, in one sentence.
    """

    goal: Goal
    index: int
    risk: float
    loss: float
    why: str


def pareto_front(risk: ArrayLike, loss: ArrayLike) -> BoolArray:
    r"""Mark the points that are not dominated; equal points are marked alike.

    A point dominates another if it is worse on neither axis and better on one:
    :math:`r \le r', \ell \le \ell'` and :math:`(r, \ell) \ne (r', \ell')`. Points with a missing number are dominated.
    """
    r, x = np.asarray(risk, dtype=np.float64), np.asarray(loss, dtype=np.float64)
    on_front = np.zeros(len(r), dtype=bool)
    least, before = np.inf, (np.nan, np.nan)
    for i in np.lexsort((x, r)):
        if np.isnan(r[i]) or np.isnan(x[i]):
            continue
        on_front[i] = x[i] < least or (r[i], x[i]) == before
        if on_front[i]:
            least, before = x[i], (r[i], x[i])
    return on_front


def choose(risk: ArrayLike, loss: ArrayLike, *, limit: float = LIMIT) -> list[Choice]:
    r"""Choose one point of the front for every goal.

    *Least risk* takes the point of least risk, *least loss* that of least loss among the points with a risk up to
    ``limit``. *Best compromise* takes, among the same points of the front, the one nearest to the ideal point, with
    the axes scaled to the span of these points:

    .. math:: \min_i \Big(\frac{r_i - r_{min}}{r_{max} - r_{min}}\Big)^2
                   + \Big(\frac{\ell_i - \ell_{min}}{\ell_{max} - \ell_{min}}\Big)^2

    Ties are broken by the other axis, then by order. If no point is within the limit, only the least risk is named.
    """
    r, x = np.asarray(risk, dtype=np.float64), np.asarray(loss, dtype=np.float64)
    front = np.flatnonzero(pareto_front(r, x))
    if not len(front):
        return []
    safest = _first(front, r[front], x[front])
    # a point within the limit is dominated only by points within the limit: their risk is no higher
    within = front[r[front] <= limit]
    if not len(within):
        return [Choice("least risk", safest, r[safest], x[safest], "It has the least risk, which is above the limit.")]
    distance = np.hypot(_scaled(r[within]), _scaled(x[within]))
    chosen = {
        "least loss": _first(within, x[within], r[within]),
        "best compromise": _first(within, distance, x[within]),
        "least risk": safest,
    }
    return [
        Choice(goal, chosen[goal], r[chosen[goal]], x[chosen[goal]], _why(goal, len(within), limit)) for goal in GOALS
    ]


def _first(rows: AnyArray, *keys: FloatArray) -> int:
    """Return the row with the least first key, then the least second one."""
    return int(rows[np.lexsort(keys[::-1])[0]])


def _scaled(values: FloatArray) -> FloatArray:
    span = np.ptp(values)
    return (values - values.min()) / span if span > 0 else np.zeros_like(values)


def _why(goal: Goal, n: int, limit: float) -> str:
    among = f"of the {n} points that no other beats on both axes and whose risk is at most {limit:g}"
    return {
        "least loss": f"It loses the least {among}.",
        "best compromise": f"It comes closest to the least risk and the least loss at once {among}.",
        "least risk": "It has the least risk of all, and the least loss among those that do.",
    }[goal]


def ranks(risk: ArrayLike, loss: ArrayLike) -> IndexArray:
    """Return the front each point lies on: 1 for the front, 2 for the front of the others, and so on; 0 if missing."""
    r, x = np.asarray(risk, dtype=np.float64), np.asarray(loss, dtype=np.float64)
    rank = np.zeros(len(r), dtype=np.int64)
    left = ~(np.isnan(r) | np.isnan(x))
    layer = 0
    while left.any():
        layer += 1
        rows = np.flatnonzero(left)
        found = rows[pareto_front(r[rows], x[rows])]
        rank[found] = layer
        left[found] = False
    return rank
