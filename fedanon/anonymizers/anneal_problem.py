"""What the annealer works on: records in a canonical order, a first partition and lists of near records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.anneal_constraint import RecordRule, keeping_start, kernel_rules, record_rules
from fedanon.anonymizers.base import Rng
from fedanon.anonymizers.microaggregation.base import standardized
from fedanon.data.groups import Groups
from fedanon.data.release import Claim
from fedanon.data.spans import code_table, points, span_table
from fedanon.data.table import Table
from fedanon.privacy.combined import Combined

Labels = NDArray[np.int32]

#: nearest records are found among all others up to this many distinct records, beyond in blocks of this size
BLOCK = 2048
ROUNDS = 3
#: up to this many records a start may take time quadratic in their number
QUADRATIC = 20_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A table as the annealer sees it; the tuples are those of :mod:`fedanon.kernels.anneal`.

    Parameters
    ----------
    k : least size of a class.
    costs : the objective, over the records in canonical order.
    near : near records and the unit of temperature.
    start : class of every record.
    unit : loss of a release (NCP, or IL in per cent) for every unit of cost.
    rules : what classes keep beyond their size; ``start`` keeps them.
    largest : most records of a class.
    """

    k: int
    costs: Any
    near: Any
    start: Labels
    unit: float
    rules: tuple[RecordRule, ...]
    largest: int

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.start)

    def classes(self) -> Any:
        """Room for a partition."""
        from fedanon.kernels.anneal_costs import Classes

        most = self.n // self.k + 1
        return Classes(
            label=np.empty(self.n, dtype=np.int32),
            place=np.empty(self.n, dtype=np.int32),
            member=np.empty((most, self.largest), dtype=np.int32),
            size=np.zeros(most, dtype=np.int64),
            cost=np.zeros(most),
            free=np.zeros(most + 1, dtype=np.int64),
            rules=kernel_rules(self.rules, most),
        )


def make_problem(table: Table, objective: Literal["ncp", "sse"], k: int, claim: Claim | None, rng: Rng) -> Problem:
    """Least loss among the partitions that keep ``claim``, so far as rules can express it."""
    costs, near, start, unit = (_sse_problem if objective == "sse" else _ncp_problem)(table, k, rng)
    start = split_large(start, k)
    rules: tuple[RecordRule, ...] = ()
    if isinstance(claim, Combined):
        rules, ruled = record_rules(table, claim)
        start = keeping_start(table, start, ruled) if rules else start
    largest = max(2 * k - 1, int(np.bincount(start).max(initial=0)))
    return Problem(k, costs, near, start, unit, rules, largest)


def _sse_problem(table: Table, k: int, rng: Rng) -> tuple[Any, Any, NDArray[Any], float]:
    """Least sum of squared errors, from a tour cut into classes; O(n^2) only for the tour of a small table."""
    from fedanon.anonymizers.microaggregation.tsp_mhm import tsp_mhm_groups

    costs = _sse_costs(table, table.distinct.order, len(table) // k + 1)
    near = neighbors(_sse_costs(table, table.distinct.first_rows, 0), table.distinct, k, rng)
    small = len(table) <= QUADRATIC
    start = tsp_mhm_groups(costs.points, k, rng) if small else metric_groups(costs, k, rng)
    squares = float(np.square(costs.points).sum())
    return costs, near, start, 100.0 / squares if squares else 0.0


def _ncp_problem(table: Table, k: int, rng: Rng) -> tuple[Any, Any, NDArray[Any], float]:
    """Least normalised certainty penalty, from top-down greedy classes."""
    from fedanon.kernels.top_down_greedy import top_down_greedy

    costs = _ncp_costs(table, table.distinct.order, len(table) // k + 1)
    near = neighbors(_ncp_costs(table, table.distinct.first_rows, 0), table.distinct, k, rng)
    start = top_down_greedy(costs.spans, costs.codes, k, rng.random(len(table)))
    # a record that leaves a cell gains that much for each of about k others
    near = near._replace(scale=k * near.scale)
    return costs, near, start, 1.0 / table.codes.size


def _sse_costs(table: Table, rows: NDArray[Any], classes: int) -> Any:
    from fedanon.kernels.anneal_sse import SseCosts

    z = standardized(points(table))
    return SseCosts(np.ascontiguousarray(z[rows]), np.zeros((classes, z.shape[1])))


def _ncp_costs(table: Table, rows: NDArray[Any], classes: int) -> Any:
    from fedanon.kernels.anneal_ncp import NcpCosts

    numeric = np.array([column.values is not None for column in table.columns])
    table = _with_columns(table, np.argsort(~numeric, kind="stable"))
    codes = code_table(table)
    longest = max(column.size for column in table.columns)
    return NcpCosts(
        span_table(table.columns),
        codes._replace(flat=np.ascontiguousarray(codes.flat[rows])),
        np.ascontiguousarray(points(table)[rows]),
        int(numeric.sum()),
        np.log2(np.maximum(np.arange(longest), 1)).astype(np.int64),
        np.zeros((classes, len(numeric), 2, 4)),
    )


def _with_columns(table: Table, order: NDArray[Any]) -> Table:
    columns = tuple(table.columns[i] for i in order)
    return replace(table, columns=columns, codes=np.ascontiguousarray(table.codes[:, order]))


# ---- first partition ------------------------------------------------------------------------------------------------


def metric_groups(costs: Any, k: int, rng: Rng) -> Labels:
    """Classes of k to 2k - 1 records by halving, in O(n log n) distances."""
    from fedanon.kernels.anneal_neighbors import metric_blocks

    rows = np.arange(len(costs.points))
    ends = metric_blocks(costs, rows, 2 * k - 1, k, rng.random(1024), np.empty(_lookup_size(costs)))
    labels = np.empty(len(rows), dtype=np.int32)
    labels[rows] = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
    return labels


def split_large(labels: NDArray[Any], k: int) -> Labels:
    """Classes of 2k records and more in even parts of k to 2k - 1; neither objective can lose by it."""
    groups = Groups.of(labels)
    parts = np.maximum(groups.sizes // k, 1)
    first = np.concatenate([[0], np.cumsum(parts)[:-1]])
    group = groups.labels[groups.order]
    rank = np.arange(len(labels)) - groups.starts[group]
    split = np.empty(len(labels), dtype=np.int32)
    split[groups.order] = first[group] + rank * parts[group] // groups.sizes[group]
    return split


# ---- near records ---------------------------------------------------------------------------------------------------


def neighbors(costs: Any, distinct: Groups, k: int, rng: Rng) -> Any:
    """Lists of near distinct records: exact for a small table, from a few divisions into blocks for a large one."""
    from fedanon.kernels.anneal import Neighbors
    from fedanon.kernels.anneal_neighbors import local_scale, metric_blocks, offer_blocks

    count = distinct.count
    width = min(max(25, 4 * k), count)
    near = np.full((count, width), -1, dtype=np.int32)
    distance = np.full((count, width), np.inf)
    lookup = np.empty(_lookup_size(costs))
    block = max(BLOCK, 2 * width)
    for _ in range(ROUNDS if count > block else 1):
        rows = np.arange(count)
        ends = metric_blocks(costs, rows, block, block // 2, rng.random(1024), lookup)
        offer_blocks(costs, rows, ends, distinct.sizes > 1, near, distance, lookup)
    scale = local_scale(near, distance, distinct.sizes, k - 1)
    near = np.where(near < 0, np.arange(count, dtype=np.int32)[:, None], near)
    first = np.append(distinct.starts, len(distinct.labels))
    return Neighbors(near, distinct.labels[distinct.order], first, scale)


def _lookup_size(costs: Any) -> int:
    return len(costs.codes.position) if hasattr(costs, "codes") else 0
