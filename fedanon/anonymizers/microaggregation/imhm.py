"""IMHM: groups around their means by a linear program, again and again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.microaggregation.base import Microaggregation
from fedanon.anonymizers.microaggregation.derivative_free import LEAST_GAIN
from fedanon.anonymizers.microaggregation.orders import tsp_mhm_groups
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.types import FloatArray, IndexArray, Rng


@ANONYMIZERS.register("imhm")
@dataclass(frozen=True, kw_only=True)
class Imhm(Microaggregation):
    r"""Constrained clustering by linear programming, iterated (after Mortazavi, Jalili & Gohargazi 2013).

    With the means of the groups fixed, the best assignment of the records is a transportation problem,

    .. math:: \min \sum_{i,g} z_{ig} \lVert x_i - \bar x_g \rVert^2, \quad
              \sum_g z_{ig} = 1, \quad k \le \sum_i z_{ig} \le 2k - 1,

    whose linear program has an integral optimum. The means follow, and so on until the SSE no longer falls. Every
    record may go to its nearest groups only. The start is the cut of a tour. Of the paper only the abstract was at
    hand: it names the clustering, the linear program and the iteration, not the details.
    """

    name = "imhm"

    nearest: int = parameter(15, help="number of nearest groups that a record may go to", at_least=1)
    tours: int = parameter(1, help="number of tours the start is the best cut of", at_least=1)

    def gather(self, points: FloatArray, rng: Rng) -> IndexArray:
        """Group of every record."""
        labels = tsp_mhm_groups(points, self.k, rng, tours=self.tours)
        least = _sse(points, labels)
        while True:
            candidate = assign_records(points, labels, self.k, self.nearest)
            now = _sse(points, candidate)
            if now >= least - LEAST_GAIN:
                return labels
            labels, least = candidate, now


def assign_records(points: FloatArray, labels: IndexArray, k: int, nearest: int) -> IndexArray:
    """The records assigned to the means of the groups at least cost, each group with k to 2k - 1 of them."""
    try:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, vstack
    except ModuleNotFoundError:
        raise ConfigError("The method 'imhm' needs scipy: pip install 'fedanon[harness]'.") from None
    from fedanon.anonymizers.microaggregation._groups import group_means

    count = int(labels.max()) + 1
    means = group_means(points, labels, count)[0]
    apart = np.square(points).sum(axis=1)[:, None] - 2 * points @ means.T + np.square(means).sum(axis=1)
    # the present group stays among the choices, so that there is always an assignment
    apart[np.arange(len(points)), labels] = -np.inf
    chosen = np.argpartition(apart, min(nearest, count) - 1, axis=1)[:, : min(nearest, count)]
    records, groups = np.repeat(np.arange(len(points)), chosen.shape[1]), chosen.ravel()
    places = np.arange(len(groups))
    one = np.ones(len(groups))
    once = csr_array((one, (records, places)), shape=(len(points), len(groups)))
    sizes = csr_array((one, (groups, places)), shape=(count, len(groups)))
    found = linprog(
        np.square(points[records] - means[groups]).sum(axis=1),
        A_ub=vstack([sizes, -sizes]),
        b_ub=np.concatenate([np.full(count, 2 * k - 1), np.full(count, -k)]),
        A_eq=once,
        b_eq=np.ones(len(points)),
        bounds=(0, 1),
        method="highs-ds",
    )
    if found.x is None:
        return labels
    return np.asarray(chosen[np.arange(len(points)), found.x.reshape(chosen.shape).argmax(axis=1)])


def _sse(points: FloatArray, labels: IndexArray) -> float:
    from fedanon.anonymizers.microaggregation._groups import sse

    return float(sse(points, labels, int(labels.max()) + 1))
