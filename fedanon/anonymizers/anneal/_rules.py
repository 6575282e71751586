# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""What a class must keep beyond its size while the annealer changes it: rules on the counts of sensitive values.

Without rules nothing is counted and nothing is asked; the compiler then leaves all of this out.
"""

# ruff: noqa: ARG001, ARG005 -- an overload names the arguments of the function it stands for

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

#: in the order of fedanon.privacy.sensitive.KINDS
DISTINCT, ENTROPY, EQUAL, ORDERED, SHARES = range(5)
ROUNDING = 1e-9


class NoRules(NamedTuple):
    """Nothing is required beyond k."""

    none: int = 0


class Rules(NamedTuple):
    """Rules on the counts of values, any number of them.

    Parameters
    ----------
    kind, limit, values : of every rule, with its number of values.
    code : for every rule and record the record's value.
    count : for every class, rule and value the number of records.
    whole, low, high : for every rule and value, see :class:`fedanon.privacy.sensitive.CountRule`.
    """

    kind: Any
    limit: Any
    values: Any
    code: Any
    count: Any
    whole: Any
    low: Any
    high: Any


def keeps(rules, group, size, leaves, joins):
    """Whether all rules hold for a class that has ``size`` records once ``leaves`` has gone and ``joins`` has come."""
    raise NotImplementedError


def note(rules, group, leaves, joins):
    """Record ``leaves`` has gone from a class, ``joins`` has come (-1: none)."""
    raise NotImplementedError


def forget(rules, group):
    """A class is empty."""
    raise NotImplementedError


@overload(keeps)
def _keeps(rules, group, size, leaves, joins):
    if rules.instance_class is NoRules:
        return lambda rules, group, size, leaves, joins: True
    return lambda rules, group, size, leaves, joins: _all_keep(rules, group, size, leaves, joins)


@overload(note)
def _note(rules, group, leaves, joins):
    if rules.instance_class is NoRules:
        return lambda rules, group, leaves, joins: None
    return lambda rules, group, leaves, joins: _recounted(rules, group, leaves, joins)


@overload(forget)
def _forget(rules, group):
    if rules.instance_class is NoRules:
        return lambda rules, group: None
    return lambda rules, group: _emptied(rules, group)


@njit(cache=True)
def _recounted(rules, group, leaves, joins):
    for rule in range(rules.kind.shape[0]):
        if leaves >= 0:
            rules.count[group, rule, rules.code[rule, leaves]] -= 1
        if joins >= 0:
            rules.count[group, rule, rules.code[rule, joins]] += 1


@njit(cache=True)
def _emptied(rules, group):
    rules.count[group] = 0


@njit(cache=True)
def _all_keep(rules, group, size, leaves, joins):
    for rule in range(rules.kind.shape[0]):
        gone = rules.code[rule, leaves] if leaves >= 0 else -1
        come = rules.code[rule, joins] if joins >= 0 else -1
        if not _keep(rules, rule, rules.count[group, rule], size, gone, come):
            return False
    return True


@njit(cache=True)
def _keep(rules, rule, count, size, gone, come):
    """One rule, in O(values)."""
    kind, limit = rules.kind[rule], rules.limit[rule]
    total, carried = 0.0, 0.0
    for value in range(rules.values[rule]):
        share = (count[value] + (value == come) - (value == gone)) / size
        whole = rules.whole[rule, value]
        if kind == DISTINCT:
            total += share > 0.0
        elif kind == ENTROPY:
            total -= share * np.log(share) if share > 0.0 else 0.0
        elif kind == EQUAL:
            total += 0.5 * abs(share - whole)
        elif kind == ORDERED:
            carried += share - whole
            total += abs(carried)
        elif share < rules.low[rule, value] - ROUNDING or share > rules.high[rule, value] + ROUNDING:
            return False
    if kind in (DISTINCT, ENTROPY):
        return total >= limit - ROUNDING
    if kind == ORDERED:
        total /= max(rules.values[rule] - 1, 1)
    return total <= limit + ROUNDING
