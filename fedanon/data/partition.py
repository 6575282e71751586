"""Partition: how the rows of one table are dealt out to the clients of a simulated federation.

Every partitioner returns one sorted array of row numbers a client; together they hold every row exactly once. What is
dealt out are people: where the table names persons, the rows of one stay together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.types import Rng

Rows = NDArray[np.int64]
#: ``(table, clients, rng)``; a split by column needs no number of clients
Partitioner = Callable[[Table, int | None, Rng], list[Rows]]

MAX_TRIES = 1000


def iid(table: Table, clients: int, rng: Rng) -> list[Rows]:
    """People dealt out at random, in equal shares."""
    people = _people(table)
    _check_clients(clients, people)
    shares = np.array_split(rng.permutation(people.count), clients)
    owner = np.empty(people.count, dtype=np.int64)
    for client, share in enumerate(shares):
        owner[share] = client
    return _rows(people, owner, clients)


def dirichlet(table: Table, clients: int, column: str | None, alpha: float, rng: Rng, at_least: int = 1) -> list[Rows]:
    """Label skew: the people of each value of ``column`` are divided by shares drawn from Dirichlet(alpha).

    Parameters
    ----------
    table : the rows to deal out.
    clients : number of clients.
    column : whose values are skewed; by default the schema's target.
    alpha : concentration; small is uneven, large is even (Hsu, Qi & Brown 2019).
    rng : source of randomness.
    at_least : rows every client must get; shares are drawn again until they do.

    Raises
    ------
    InfeasibleError
        If a bounded number of tries gives no such partition.
    """
    people = _people(table)
    labels = _codes(table, _target(table, column))[people.first_rows]

    def draw() -> NDArray[np.int64]:
        owner = np.empty(people.count, dtype=np.int64)
        for label in range(int(labels.max()) + 1):
            members = rng.permutation(np.flatnonzero(labels == label))
            owner[members] = _divided(len(members), clients, alpha, rng)
        return owner

    return _drawn_until(draw, people, clients, alpha, at_least)


def quantity(table: Table, clients: int, alpha: float, rng: Rng, at_least: int = 1) -> list[Rows]:
    """Quantity skew: clients of uneven size, by shares drawn from Dirichlet(alpha); values are not skewed."""
    people = _people(table)

    def draw() -> NDArray[np.int64]:
        return rng.permutation(_divided(people.count, clients, alpha, rng))

    return _drawn_until(draw, people, clients, alpha, at_least)


def by_column(table: Table, column: str) -> list[Rows]:
    """One client a value of ``column``, in sorted order; rows without a value are a client of their own, the last."""
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
        return lambda table, clients, rng: iid(table, _given(clients), rng)
    if kind == "dirichlet" and options:
        alpha, column = _number(options[0]), options[1] if len(options) > 1 else None
        return lambda table, clients, rng: dirichlet(table, _given(clients), column, alpha, rng)
    if kind == "quantity" and len(options) == 1:
        alpha = _number(options[0])
        return lambda table, clients, rng: quantity(table, _given(clients), alpha, rng)
    if kind == "by" and options:
        column = text.removeprefix("by:")
        return lambda table, clients, _rng: _as_many(by_column(table, column), clients, column)
    raise ConfigError(
        f"The partition {text!r} is not known. Write iid, dirichlet:ALPHA, dirichlet:ALPHA:COLUMN, quantity:ALPHA "
        "or by:COLUMN."
    )


# ---- people and shares ---------------------------------------------------------------------------


def _people(table: Table) -> Groups:
    """The rows of each person."""
    return Groups.from_labels(table.person_of_row)


def _rows(people: Groups, owner: NDArray[np.int64], clients: int) -> list[Rows]:
    """Row numbers of every client, given the client of every person."""
    client = owner[people.labels]
    return [np.flatnonzero(client == c) for c in range(clients)]


def _divided(count: int, clients: int, alpha: float, rng: Rng) -> NDArray[np.int64]:
    """A client for each of ``count`` people, in blocks whose sizes follow Dirichlet(alpha)."""
    ends = np.cumsum(rng.dirichlet(np.full(clients, alpha)))[:-1] * count
    return np.searchsorted(np.round(ends), np.arange(count), side="right").astype(np.int64)


def _drawn_until(
    draw: Callable[[], NDArray[np.int64]], people: Groups, clients: int, alpha: float, at_least: int
) -> list[Rows]:
    _check_clients(clients, people)
    if not (math.isfinite(alpha) and alpha > 0):
        raise ConfigError("The 'alpha' parameter of a partition must be a number above 0.")
    total = int(people.sizes.sum())
    if total >= clients * at_least:
        for _ in range(MAX_TRIES):
            owner = draw()
            sizes = np.bincount(owner, weights=people.sizes, minlength=clients)
            if sizes.min() >= max(at_least, 1):
                return _rows(people, owner, clients)
    raise InfeasibleError(
        f"{total} rows could not be dealt out to {clients} clients with alpha={alpha:g} so that each has at least "
        f"{at_least} rows. Take fewer clients or a larger alpha."
    )


# ---- checks --------------------------------------------------------------------------------------


def _check_clients(clients: int, people: Groups) -> None:
    if clients < 1:
        raise ConfigError(f"The 'clients' parameter of a partition must be an int >= 1. Got {clients!r} instead.")
    if clients > people.count:
        raise InfeasibleError(f"{people.count} people cannot be dealt out to {clients} clients.")


def _codes(table: Table, column: str) -> NDArray[Any]:
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


def _given(clients: int | None) -> int:
    if clients is None:
        raise ConfigError("This partition needs a number of clients.")
    return clients


def _as_many(parts: list[Rows], clients: int | None, column: str) -> list[Rows]:
    if clients is not None and clients != len(parts):
        raise ConfigError(f"The column {column!r} has {len(parts)} values, so {len(parts)} clients, not {clients}.")
    return parts


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError("The alpha of a partition must be a number, as in dirichlet:0.5.") from None
