"""Recombination: the best partition that can be put together from the classes of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.anneal_problem import Labels, Problem
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.errors import ConfigError

#: branch-and-bound nodes where no time limit is given; the same on every machine
NODES = 1000


def recombine(problem: Problem, found: Sequence[Labels], seconds: float | None) -> Labels | None:
    r"""Solve set partitioning over all classes of ``found``; None if the time is not enough.

    .. math:: \min \sum_j c_j x_j \quad \text{so that} \quad \sum_{j \ni i} x_j = 1 \text{ for every record } i

    with x binary and c the cost of a class, by HiGHS's branch and bound. Each partition of ``found`` is feasible, so
    the solution is never worse than the best of them.
    """
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csc_array
    except ImportError:
        raise ConfigError("The 'recombine' parameter of Anneal needs scipy: pip install 'fedanon[harness]'.") from None

    classes, costs = _pool(problem, found)
    entry = np.concatenate(classes)
    column_ends = np.concatenate([[0], np.cumsum([len(c) for c in classes])])
    cover = csc_array((np.ones(len(entry)), entry, column_ends), shape=(problem.n, len(classes)))
    limit: dict[str, Any] = {"node_limit": NODES} if seconds is None else {"time_limit": seconds}
    solved = milp(
        costs,
        constraints=LinearConstraint(cover, 1, 1),
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, 1),
        options={**limit, "mip_rel_gap": 1e-6},
    )
    if solved.x is None:
        return None
    labels = np.empty(problem.n, dtype=np.int32)
    for number, j in enumerate(np.flatnonzero(solved.x > 0.5)):
        labels[classes[j]] = number
    return labels


def _pool(problem: Problem, found: Sequence[Labels]) -> tuple[list[NDArray[np.int64]], FloatArray]:
    """The distinct classes of several partitions, and their costs."""
    from fedanon.kernels.anneal import settle

    room = problem.classes()
    classes: dict[bytes, NDArray[np.int64]] = {}
    costs: list[float] = []
    for labels in found:
        groups = Groups.of(labels)
        settle(problem.costs, room, groups.labels)
        for number, members in enumerate(np.split(groups.order, groups.starts[1:])):
            key = members.tobytes()
            if key not in classes:
                classes[key] = members
                costs.append(room.cost[number])
    return list(classes.values()), np.array(costs)
