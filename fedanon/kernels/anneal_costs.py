"""What a class costs, for the annealer: two objectives behind five functions.

An objective is a NamedTuple of arrays, the records and an aggregate of every class. The functions below are replaced by
those of its type when the search is compiled, so the search is written once and pays for no indirection.
"""

# ruff: noqa: ARG001 -- an overload names the arguments of the function it stands for

from __future__ import annotations

from typing import Any, NamedTuple

from numba.extending import overload

from fedanon.kernels.anneal_ncp import ncp_change, ncp_distances, ncp_exchange, ncp_recount, ncp_update
from fedanon.kernels.anneal_sse import SseCosts, sse_change, sse_distances, sse_exchange, sse_recount, sse_update


class Classes(NamedTuple):
    """A partition under change.

    Parameters
    ----------
    label, place : class of every record, and where it stands among that class's members.
    member, size : the records of every class; size 0 marks an empty class.
    cost : cost of every class.
    free : stack of the empty classes; its last entry counts them.
    rules : what classes keep beyond their size, see :mod:`fedanon.kernels.anneal_rules`.
    """

    label: Any
    place: Any
    member: Any
    size: Any
    cost: Any
    free: Any
    rules: Any


def change(costs, classes, group, leaves, joins):
    """Change of a class's cost when record ``leaves`` goes and ``joins`` comes (-1: none)."""
    raise NotImplementedError


def exchange(costs, classes, a, b, record, other):
    """Changes of the costs of classes a and b when ``record`` of a and ``other`` of b trade places."""
    raise NotImplementedError


def update(costs, classes, group, leaves, joins):
    """Bring the aggregate of a class up to date, after its members have changed."""
    raise NotImplementedError


def recount(costs, classes, group):
    """Aggregate and cost of a class from its members."""
    raise NotImplementedError


def distances(costs, row, rows, lookup, out):
    """Distance of a record to each of ``rows``, into ``out``: squared (SSE) or the loss of the cell of both (NCP)."""
    raise NotImplementedError


@overload(change)
def _change(costs, classes, group, leaves, joins):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, group, leaves, joins: sse_change(costs, classes, group, leaves, joins)
    return lambda costs, classes, group, leaves, joins: ncp_change(costs, classes, group, leaves, joins)


@overload(exchange)
def _exchange(costs, classes, a, b, record, other):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, a, b, record, other: sse_exchange(costs, classes, a, b, record, other)
    return lambda costs, classes, a, b, record, other: ncp_exchange(costs, classes, a, b, record, other)


@overload(update)
def _update(costs, classes, group, leaves, joins):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, group, leaves, joins: sse_update(costs, classes, group, leaves, joins)
    return lambda costs, classes, group, leaves, joins: ncp_update(costs, classes, group, leaves, joins)


@overload(recount)
def _recount(costs, classes, group):
    if costs.instance_class is SseCosts:
        return lambda costs, classes, group: sse_recount(costs, classes, group)
    return lambda costs, classes, group: ncp_recount(costs, classes, group)


@overload(distances)
def _distances(costs, row, rows, lookup, out):
    if costs.instance_class is SseCosts:
        return lambda costs, row, rows, lookup, out: sse_distances(costs, row, rows, lookup, out)
    return lambda costs, row, rows, lookup, out: ncp_distances(costs, row, rows, lookup, out)
