"""Integer programs that choose classes: HiGHS's branch and bound through scipy, with its answer counted again."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from fedanon.types import FloatArray, IndexArray


class ChosenClasses(NamedTuple):
    """How often each class is chosen; None if no choice was found. Nodes it took; infinite if a limit ended it."""

    times: IndexArray | None
    nodes: float


def choose_classes(
    costs: FloatArray, constraints: Sequence[Any], *, most: float, gap: float, seconds: float | None, nodes: int
) -> ChosenClasses:
    """The cheapest whole numbers of classes that satisfy the constraints.

    A solver works with tolerances, and may be wrong: a choice that does not satisfy them to the record is none.

    Parameters
    ----------
    constraints : :class:`scipy.optimize.LinearConstraint`, of whole numbers.
    most : how often a class may be chosen.
    gap : how far from the optimum is near enough, as a share of the cost.
    seconds, nodes : the limit; branch-and-bound nodes where ``seconds`` is None, so that all machines find the same.
    """
    from scipy.optimize import Bounds, milp

    limit = {"node_limit": nodes} if seconds is None else {"time_limit": seconds}
    with _printing_to_stderr():
        solved = milp(
            costs,
            constraints=constraints,
            integrality=np.ones(len(costs)),
            bounds=Bounds(0, most),
            options={"mip_rel_gap": gap, **limit},
        )
    used = float(solved.mip_node_count) if solved.status == 0 else np.inf
    if solved.x is None:
        return ChosenClasses(None, used)
    times = np.round(solved.x).astype(np.int64)
    kept = times.min(initial=0) >= 0 and all(
        bool(np.all((one.A @ times >= one.lb) & (one.A @ times <= one.ub))) for one in constraints
    )
    return ChosenClasses(times if kept else None, used)


# ---- What the solver prints ----------------------------------------------------------------------
#
# HiGHS reports a repaired solution on standard output whatever it is told, where a program may expect JSON alone.

_lock = threading.Lock()
_redirected: list[int] = []


@contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """What compiled code prints inside goes to standard error; of several threads the last to leave restores it."""
    if os.name != "posix":
        yield
        return
    with _lock:
        _redirected.append(_redirected[0] if _redirected else os.dup(1))
        os.dup2(2, 1)
    try:
        yield
    finally:
        with _lock:
            ctypes.CDLL(None).fflush(None)
            before = _redirected.pop()
            if not _redirected:
                os.dup2(before, 1)
                os.close(before)
