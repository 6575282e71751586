"""Partition: how the rows of one table are dealt out to the nodes of a simulated federation.

Every partitioner returns one sorted array of row numbers per node; together they hold every row exactly once. What is
dealt out are people: where the table names persons, the rows of one stay together.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.types import AnyArray, IndexArray, Rng

#: ``(table, nodes, rng)``; a split by column needs no number of nodes
Partitioner = Callable[[Table, int | None, Rng], list[IndexArray]]

MAX_TRIES = 1000


def iid(table: Table, nodes: int, rng: Rng) -> list[IndexArray]:
    """People dealt out at random, in equal shares."""
    people = _people(table)
    _check_nodes(nodes, people)
    shares = np.array_split(rng.permutation(people.count), nodes)
    owner = np.empty(people.count, dtype=np.int64)
    for node, share in enumerate(shares):
        owner[share] = node
    return _rows(people, owner, nodes)


def dirichlet(
    table: Table, nodes: int, column: str | None, alpha: float, rng: Rng, at_least: int = 1
) -> list[IndexArray]:
    """Label skew: the people of each value of ``column`` are divided by shares drawn from Dirichlet(alpha).

    Parameters
    ----------
    table : the rows to deal out.
    nodes : number of nodes.
    column : whose values are skewed; by default the schema's target.
    alpha : concentration; small is uneven, large is even (Hsu, Qi & Brown 2019).
    rng : source of randomness.
    at_least : rows every node must get; shares are drawn again until they do.

    Raises
    ------
    InfeasibleError
        If a bounded number of tries gives no such partition.
    """
    people = _people(table)
    labels = _codes(table, _target(table, column))[people.first_rows]

    def draw() -> IndexArray:
        owner = np.empty(people.count, dtype=np.int64)
        for label in range(int(labels.max()) + 1):
            members = rng.permutation(np.flatnonzero(labels == label))
            owner[members] = _divided(len(members), nodes, alpha, rng)
        return owner

    return _drawn_until(draw, people, nodes, alpha, at_least)


def quantity(table: Table, nodes: int, alpha: float, rng: Rng, at_least: int = 1) -> list[IndexArray]:
    """Quantity skew: nodes of uneven size, by shares drawn from Dirichlet(alpha); values are not skewed."""
    people = _people(table)

    def draw() -> IndexArray:
        return rng.permutation(_divided(people.count, nodes, alpha, rng))

    return _drawn_until(draw, people, nodes, alpha, at_least)


def by_column(table: Table, column: str) -> list[IndexArray]:
    """One node per value of ``column``, in sorted order; rows without a value are a node of their own, the last."""
    codes = _codes(table, column)
    if table.persons is not None:
        torn = int((_people(table).distinct(codes) > 1).sum())
        if torn:
            raise InfeasibleError(
                f"{torn} people have rows with different values of {column!r}; they cannot be divided."
            )
    return [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]


def parse_partition(text: str) -> Partitioner:
    """The partitioner a text names.

    Parameters
    ----------
    text : 'iid', 'dirichlet:0.5', 'dirichlet:0.5:column', 'quantity:0.5' or 'by:column'.
    """
    kind, *options = text.split(":", 2)
    if kind == "iid" and not options:
        return lambda table, nodes, rng: iid(table, _given(nodes), rng)
    if kind == "dirichlet" and options:
        alpha, column = _number(options[0]), options[1] if len(options) > 1 else None
        return lambda table, nodes, rng: dirichlet(table, _given(nodes), column, alpha, rng)
    if kind == "quantity" and len(options) == 1:
        alpha = _number(options[0])
        return lambda table, nodes, rng: quantity(table, _given(nodes), alpha, rng)
    if kind == "by" and options:
        column = text.removeprefix("by:")
        return lambda table, nodes, _rng: _as_many(by_column(table, column), nodes, column)
    raise ConfigError(
        f"The partition {text!r} is not known. Write iid, dirichlet:ALPHA, dirichlet:ALPHA:COLUMN, quantity:ALPHA "
        "or by:COLUMN."
    )


def partition_column(text: str) -> str | None:
    """The column by which a partition divides, if it names one."""
    kind, *options = text.split(":", 2)
    if kind == "by":
        return text.removeprefix("by:")
    return options[1] if kind == "dirichlet" and len(options) == 2 else None


# ---- people and shares ---------------------------------------------------------------------------


def _people(table: Table) -> Groups:
    """The rows of each person."""
    return Groups.from_labels(table.person_of_row)


def _rows(people: Groups, owner: IndexArray, nodes: int) -> list[IndexArray]:
    """Row numbers of every node, given the node of every person."""
    node = owner[people.labels]
    return [np.flatnonzero(node == c) for c in range(nodes)]


def _divided(count: int, nodes: int, alpha: float, rng: Rng) -> IndexArray:
    """A node for each of ``count`` people, in blocks whose sizes follow Dirichlet(alpha)."""
    ends = np.cumsum(rng.dirichlet(np.full(nodes, alpha)))[:-1] * count
    return np.searchsorted(np.round(ends), np.arange(count), side="right").astype(np.int64)


def _drawn_until(
    draw: Callable[[], IndexArray], people: Groups, nodes: int, alpha: float, at_least: int
) -> list[IndexArray]:
    _check_nodes(nodes, people)
    if not (math.isfinite(alpha) and alpha > 0):
        raise ConfigError("The 'alpha' parameter of a partition must be a number above 0.")
    total = int(people.sizes.sum())
    if total >= nodes * at_least:
        for _ in range(MAX_TRIES):
            owner = draw()
            sizes = np.bincount(owner, weights=people.sizes, minlength=nodes)
            if sizes.min() >= max(at_least, 1):
                return _rows(people, owner, nodes)
    raise InfeasibleError(
        f"{total} rows could not be dealt out to {nodes} nodes with alpha={alpha:g} so that each has at least "
        f"{at_least} rows. Take fewer nodes or a larger alpha."
    )


# ---- checks --------------------------------------------------------------------------------------


def _check_nodes(nodes: int, people: Groups) -> None:
    if nodes < 1:
        raise ConfigError(f"The 'nodes' parameter of a partition must be an int >= 1. Got {nodes!r} instead.")
    if nodes > people.count:
        raise InfeasibleError(f"{people.count} people cannot be dealt out to {nodes} nodes.")


def _codes(table: Table, column: str) -> AnyArray:
    """The values of a column as numbers in sorted order; missing is the last."""
    if column not in table.frame:
        raise ConfigError(f"The table has no column {column!r} to be divided by (identifying columns are dropped).")
    codes, values = pd.factorize(table.frame[column], sort=True)
    return np.where(codes < 0, len(values), codes)


def _target(table: Table, column: str | None) -> str:
    name = column or table.schema.target
    if name is None:
        raise ConfigError("The schema names no target; write the column: dirichlet:ALPHA:COLUMN.")
    return name


def _given(nodes: int | None) -> int:
    if nodes is None:
        raise ConfigError("This partition needs a number of nodes.")
    return nodes


def _as_many(parts: list[IndexArray], nodes: int | None, column: str) -> list[IndexArray]:
    if nodes is not None and nodes != len(parts):
        raise ConfigError(f"The column {column!r} has {len(parts)} values, so {len(parts)} nodes, not {nodes}.")
    return parts


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError("The alpha of a partition must be a number, as in dirichlet:0.5.") from None
