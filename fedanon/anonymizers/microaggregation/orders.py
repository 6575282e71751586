"""Orders of the records in which neighbours are alike: by principal component, nearest point next, closed tour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray

Order = NDArray[np.int64]

#: neighbours of each record that 2-opt tries to link it to, and the most passes over all records
NEIGHBORS, PASSES = 12, 50


class Sorted(NamedTuple):
    """The records sorted along their first principal component, as the kernels of tours want them."""

    points: FloatArray
    along: FloatArray
    number: Order


def first_component(points: FloatArray) -> FloatArray:
    """Scores of the first principal component of the covariance; its largest loading is positive."""
    centered = points - points.mean(axis=0)
    loadings = np.linalg.eigh(centered.T @ centered)[1][:, -1]
    loadings = loadings * np.sign(loadings[np.argmax(np.abs(loadings))])
    return np.asarray(centered @ loadings)


def along_first_component(points: FloatArray) -> Order:
    """The order of the records along their first principal component; one column is simply sorted."""
    return np.argsort(first_component(points), kind="stable")


def sorted_along(points: FloatArray) -> Sorted:
    """The records in the order of their first principal component."""
    along = first_component(points)
    number = np.argsort(along, kind="stable")
    return Sorted(np.ascontiguousarray(points[number]), along[number], number)


def nearest_point_next(points: FloatArray, start: int) -> Order:
    """The order in which each record is followed by the nearest not yet visited. Exact, O(n) memory."""
    from fedanon.kernels.tour import nearest_next

    rows = sorted_along(points)
    return np.asarray(rows.number[nearest_next(*rows, _place(rows, start))])


def neighbor_lists(points: FloatArray, count: int) -> NDArray[np.int64]:
    """The ``count`` nearest other records of every record, nearest first; fewer where there are not as many."""
    from fedanon.kernels.neighbors import nearest_neighbors

    rows = sorted_along(points)
    near = np.empty((len(points), min(count, len(points) - 1)), dtype=np.int64)
    near[rows.number] = rows.number[nearest_neighbors(*rows, near.shape[1])]
    return near


def closed_tours(points: FloatArray, starts: Iterable[int]) -> Iterator[Order]:
    """Short closed tours, one from each start: nearest point next, then 2-opt over neighbour lists."""
    from fedanon.kernels.neighbors import nearest_neighbors
    from fedanon.kernels.tour import nearest_next, two_opt

    rows = sorted_along(points)
    neighbors = nearest_neighbors(*rows, min(NEIGHBORS, len(points) - 1))
    for start in starts:
        tour = nearest_next(*rows, _place(rows, start))
        two_opt(rows.points, tour, neighbors, PASSES)
        yield rows.number[tour]


def _place(rows: Sorted, record: int) -> int:
    """Where a record lies among the sorted ones."""
    return int(np.flatnonzero(rows.number == record)[0])
