"""What the annealer works on: records in a canonical order, a first partition, lists of near records, and rules.

Privacy models become rules that the annealer keeps at every step, and the first partition keeps them too. Models that
no rule can express are left to the repair after the search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from fedanon.anonymizers.base import publish_smallest_cells
from fedanon.anonymizers.enforcement import keep_requirements
from fedanon.anonymizers.microaggregation.base import standardized
from fedanon.data.groups import Groups
from fedanon.data.spans import code_table, points, span_table
from fedanon.data.table import Table
from fedanon.privacy.base import Claim, PrivacyModel, Rows
from fedanon.privacy.combined import Combined
from fedanon.privacy.sensitive import KINDS, Counter, CountRule, SensitiveModel
from fedanon.types import AnyArray, FloatArray, IntArray, Rng

Objective = Literal["ncp", "sse"]

#: up to this many distinct records, nearest ones are found among all others; beyond, by a tree or in such blocks
BLOCK = 2048
ROUNDS = 3
#: up to this many records a start may take time quadratic in their number
QUADRATIC = 20_000


@dataclass(frozen=True, eq=False)
class Problem:
    """A table as the annealer sees it; the tuples are those of :mod:`fedanon.anonymizers.anneal._kernel`.

    Parameters
    ----------
    k : minimum number of records in a class.
    costs : the objective, over the records in canonical order.
    near : near records and the unit of temperature.
    start : class of every record.
    unit : loss of a release (NCP, or IL in per cent) per unit of cost.
    rules : what classes must satisfy beyond their size; ``start`` satisfies them.
    largest : maximum number of records in a class.
    """

    k: int
    costs: Any
    near: Any
    start: IntArray
    unit: float
    rules: tuple[RecordRule, ...]
    largest: int

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.start)

    @property
    def kinds(self) -> tuple[AnyArray, AnyArray]:
        """Records that may take each other's place: the kind of every record, sorted, and where each kind begins.

        Equal records are of one kind, unless rules look at more than the quasi-identifiers. Squared errors are priced
        record by record, so there each is of its own.
        """
        if self.rules or not hasattr(self.costs, "codes"):
            return np.arange(self.n), np.arange(self.n + 1)
        return self.near.kind, self.near.first

    def classes(self) -> Any:
        """Memory for a partition."""
        from fedanon.anonymizers.anneal._costs import Classes

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


def choose_objective(table: Table) -> Objective:
    """``sse`` where every quasi-identifier is a number and none is missing, else ``ncp``."""
    numeric = all(column.values is not None and not column.has_missing for column in table.columns)
    return "sse" if numeric else "ncp"


def make_problem(table: Table, objective: Objective, k: int, claim: Claim | None, rng: Rng) -> Problem:
    """The search for the least loss among the partitions that satisfy ``claim``, as far as rules can express it."""
    costs, near, start, unit = (_sse_problem if objective == "sse" else _ncp_problem)(table, k, rng)
    start = split_large(start, k)
    rules: tuple[RecordRule, ...] = ()
    if isinstance(claim, Combined):
        rules, ruled = record_rules(table, claim)
        start = keeping_start(table, start, ruled) if rules else start
    largest = max(2 * k - 1, int(np.bincount(start).max(initial=0)))
    return Problem(k, costs, near, start, unit, rules, largest)


def _sse_problem(table: Table, k: int, rng: Rng) -> tuple[Any, Any, AnyArray, float]:
    """Least sum of squared errors, from a tour cut into classes; O(n^2) only for the tour of a small table."""
    from fedanon.anonymizers.microaggregation.orders import tsp_mhm_groups

    costs = _sse_costs(table, table.distinct.order, len(table) // k + 1)
    near = neighbors(_sse_costs(table, table.distinct.first_rows, 0), table.distinct, k, rng)
    small = len(table) <= QUADRATIC
    start = tsp_mhm_groups(costs.points, k, rng) if small else metric_groups(costs, k, rng)
    squares = float(np.square(costs.points).sum())
    return costs, near, start, 100.0 / squares if squares else 0.0


def _ncp_problem(table: Table, k: int, rng: Rng) -> tuple[Any, Any, AnyArray, float]:
    """Least normalized certainty penalty, from top-down greedy classes."""
    from fedanon.anonymizers.clustering._kernel import top_down_greedy

    costs = ncp_costs(table, table.distinct.order, len(table) // k + 1)
    near = neighbors(ncp_costs(table, table.distinct.first_rows, 0), table.distinct, k, rng)
    start = top_down_greedy(costs.spans, costs.codes, k, rng.random(len(table)))
    # a record that leaves a cell gains that much for each of about k others
    near = near._replace(scale=k * near.scale)
    return costs, near, start, 1.0 / table.codes.size


def _sse_costs(table: Table, rows: AnyArray, classes: int) -> Any:
    from fedanon.anonymizers.anneal._costs import SseCosts

    z = standardized(points(table))
    return SseCosts(np.ascontiguousarray(z[rows]), np.zeros((classes, z.shape[1])))


def ncp_costs(table: Table, rows: AnyArray, classes: int) -> Any:
    from fedanon.anonymizers.anneal._costs import NcpCosts

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


def _with_columns(table: Table, order: AnyArray) -> Table:
    columns = tuple(table.columns[i] for i in order)
    return replace(table, columns=columns, codes=np.ascontiguousarray(table.codes[:, order]))


# ---- The first partition -------------------------------------------------------------------------


def metric_groups(costs: Any, k: int, rng: Rng) -> IntArray:
    """Classes of k to 2k - 1 records by halving, in O(n log n) distances."""
    from fedanon.anonymizers.anneal._neighbors import metric_blocks

    rows = np.arange(len(costs.points))
    ends = metric_blocks(costs, rows, 2 * k - 1, k, rng.random(1024), np.empty(_lookup_size(costs)))
    labels = np.empty(len(rows), dtype=np.int32)
    labels[rows] = np.repeat(np.arange(len(ends), dtype=np.int32), np.diff(ends, prepend=0))
    return labels


def split_large(labels: AnyArray, k: int) -> IntArray:
    """Classes of 2k records or more, split into even parts of k to 2k - 1; neither objective can lose by it."""
    groups = Groups.from_labels(labels)
    parts = np.maximum(groups.sizes // k, 1)
    first = np.concatenate([[0], np.cumsum(parts)[:-1]])
    group = groups.labels[groups.order]
    rank = np.arange(len(labels)) - groups.starts[group]
    split = np.empty(len(labels), dtype=np.int32)
    split[groups.order] = first[group] + rank * parts[group] // groups.sizes[group]
    return split


# ---- Near records --------------------------------------------------------------------------------


def neighbors(costs: Any, distinct: Groups, k: int, rng: Rng) -> Any:
    """Lists of near distinct records: exact for squared distances and for small tables, else from a few divisions."""
    from fedanon.anonymizers.anneal._costs import SseCosts
    from fedanon.anonymizers.anneal._kernel import Neighbors
    from fedanon.anonymizers.anneal._neighbors import local_scale, metric_blocks, offer_blocks
    from fedanon.anonymizers.anneal._tree import nearest_points

    count = distinct.count
    width = min(max(25, 4 * k), count)
    near = np.full((count, width), -1, dtype=np.int32)
    distance = np.full((count, width), np.inf)
    lookup = np.empty(_lookup_size(costs))
    block = max(BLOCK, 2 * width)
    by_tree = isinstance(costs, SseCosts) and count > block
    if by_tree:
        nearest_points(costs.points, distinct.sizes > 1, near, distance)
    for _ in range(0 if by_tree else ROUNDS if count > block else 1):
        rows = np.arange(count)
        ends = metric_blocks(costs, rows, block, block // 2, rng.random(1024), lookup)
        offer_blocks(costs, rows, ends, distinct.sizes > 1, near, distance, lookup)
    scale = local_scale(near, distance, distinct.sizes, k - 1)
    near = np.where(near < 0, np.arange(count, dtype=np.int32)[:, None], near)
    first = np.append(distinct.starts, len(distinct.labels))
    return Neighbors(near, distinct.labels[distinct.order], first, scale)


def _lookup_size(costs: Any) -> int:
    return len(costs.codes.position) if hasattr(costs, "codes") else 0


# ---- Rules ---------------------------------------------------------------------------------------

#: a rule looks at all values at every step; for more of them the repair after the search is the better way
MOST_VALUES = 64


class RecordRule(NamedTuple):
    """A rule, and the place of every record's value in its order."""

    rule: CountRule
    codes: IntArray


def record_rule(table: Table, model: PrivacyModel) -> RecordRule | None:
    """The rule of a model over the records in canonical order, or None if it has none."""
    if not isinstance(model, SensitiveModel):
        return None
    everyone = np.ones(len(table), dtype=bool)
    counts = Counter(Rows.from_table(table), model.column, everyone).counts(
        Groups(np.zeros(len(table), dtype=np.int32), 1)
    )
    if counts.values.size > MOST_VALUES or (rule := model.count_rule(counts)) is None:
        return None
    places = np.zeros(counts.values.size, dtype=np.int32)
    places[rule.order] = np.arange(len(rule.order))
    return RecordRule(rule, places[counts.values.codes[table.distinct.order]])


def record_rules(table: Table, claim: Combined) -> tuple[tuple[RecordRule, ...], Combined]:
    """The rules of those models of a claim that have one, and the claim of these models alone."""
    pairs = [(model, record_rule(table, model)) for model in claim.models]
    kept = [(model, rule) for model, rule in pairs if rule is not None]
    return tuple(rule for _, rule in kept), replace(claim, models=tuple(model for model, _ in kept))


def keeping_start(table: Table, start: IntArray, claim: Combined) -> IntArray:
    """A partition of the records in canonical order, merged until ``claim`` holds in every class."""
    order = table.distinct.order
    labels = np.empty(len(table), dtype=np.int32)
    labels[order] = start
    groups = Groups.from_labels(labels)

    def publish(merged: Groups) -> Any:
        return publish_smallest_cells(table, merged)

    kept, _ = keep_requirements(table, groups, publish(groups), claim, publish)
    return kept.labels[order]


def kernel_rules(rules: tuple[RecordRule, ...], classes: int) -> Any:
    """Rules in the form of :mod:`fedanon.anonymizers.anneal._rules`, with memory for the counts of all classes."""
    from fedanon.anonymizers.anneal._rules import NoRules, Rules

    if not rules:
        return NoRules()
    most = max(len(entry.rule.whole) for entry in rules)

    def padded(name: str) -> FloatArray:
        table = np.zeros((len(rules), most))
        for row, entry in zip(table, rules, strict=True):
            values = getattr(entry.rule, name)
            row[: len(values)] = values
        return table

    return Rules(
        kind=np.array([KINDS.index(entry.rule.kind) for entry in rules]),
        limit=np.array([entry.rule.limit for entry in rules], dtype=np.float64),
        values=np.array([len(entry.rule.whole) for entry in rules]),
        code=np.array([entry.codes for entry in rules]),
        count=np.zeros((classes, len(rules), most), dtype=np.int32),
        whole=padded("whole"),
        low=padded("low"),
        high=padded("high"),
    )
