# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""What becomes of records whose time is up: the decision, what it changes, and the loop over arriving records."""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.streams._buffer import (
    CLASS,
    DROP,
    MADE,
    REUSE,
    WAITING,
    arrive,
    keep_box,
    leave,
    nearest_class,
    oldest,
    prospect_class,
    prospects,
    widen,
)

#: how fast the ratio of losses forgets
FORGET = 0.999


@njit(cache=True)
def decide(space, buffer, tally, ratio, rule, seed):
    """What becomes of the record in slot ``seed``: the action; members, box and loss of its class."""
    cover = buffer.cover_loss[seed]
    if rule.nearest:
        members, low, high, loss = nearest_class(space, buffer, tally, seed, rule.k)
        reuse = cover <= loss
    else:
        members, low, high, loss = prospect_class(space, buffer, tally, ratio, seed, rule.k, rule.caution, rule.reach)
        regret = loss - cover if cover < np.inf else -np.inf
        if loss < np.inf:
            regret += rule.regret * (loss - prospects(buffer, ratio, rule.caution, members[1:])).sum()
            ratio[0] = FORGET * ratio[0] + loss
            ratio[1] = FORGET * ratio[1] + buffer.near[seed]
        reuse = not regret < 0.0
    if not reuse and loss <= rule.max_loss:
        return CLASS, members, low, high, loss
    return REUSE if cover <= rule.max_loss else DROP, members, low, high, loss


@njit(cache=True)
def publish_class(space, buffer, boxes, tally, members, low, high, loss):
    """Free the slots of a class and keep its box; returns the numbers of its records."""
    numbers = buffer.number[members].copy()
    # the last slot moves into a freed one: from the highest slot down none of those still to go moves
    for slot in np.sort(members)[::-1]:
        leave(buffer, tally, slot)
    widen(space, low, high)
    place = keep_box(buffer, boxes, tally, low, high, loss)
    boxes.used[place] = numbers.max()
    return numbers


@njit(cache=True)
def is_due(buffer, slot, rule, number, now):
    """Whether the record in a slot may wait no longer."""
    if rule.seconds:
        return buffer.moment[slot] + rule.delay <= now
    return buffer.number[slot] + rule.delay <= number


@njit(cache=True)
def _expire(space, buffer, boxes, tally, ratio, rule, slot, out, done):
    """Publish or drop the record in ``slot``, noting who went where; returns how many notes there are."""
    action, members, low, high, loss = decide(space, buffer, tally, ratio, rule, slot)
    number = buffer.number[slot]
    if action == CLASS:
        numbers = publish_class(space, buffer, boxes, tally, members, low, high, loss)
        name = tally[MADE] - 1
        out.low[name - out.first], out.high[name - out.first], out.loss[name - out.first] = low, high, loss
        for i in range(numbers.shape[0]):
            out.number[done], out.name[done], out.cause[done] = numbers[i], name, number
            done += 1
        return done
    out.number[done], out.name[done], out.cause[done] = number, -1, number
    if action == REUSE:
        out.name[done] = boxes.name[buffer.cover[slot]]
        boxes.used[buffer.cover[slot]] = number
    leave(buffer, tally, slot)
    return done + 1


@njit(cache=True)
def run(space, buffer, boxes, tally, ratio, rule, points, persons, first, moments, out):
    """Take in records in order, publishing those whose time is up; returns how many were published or dropped."""
    done = 0
    slot = oldest(buffer, tally)
    for i in range(points.shape[0]):
        number = first + i
        while slot >= 0 and (
            tally[WAITING] == buffer.number.shape[0]
            or (rule.seconds and is_due(buffer, slot, rule, number, moments[i]))
        ):
            done = _expire(space, buffer, boxes, tally, ratio, rule, slot, out, done)
            slot = oldest(buffer, tally)
        arrive(buffer, boxes, tally, points[i], persons[i], number, moments[i])
        slot = slot if slot >= 0 else tally[WAITING] - 1
        while slot >= 0 and is_due(buffer, slot, rule, number, moments[i]):
            done = _expire(space, buffer, boxes, tally, ratio, rule, slot, out, done)
            slot = oldest(buffer, tally)
    return done


@njit(cache=True)
def expire_due(space, buffer, boxes, tally, ratio, rule, now, everything, out):
    """Publish or drop the records whose time is up at ``now``, or all of them."""
    done = 0
    slot = oldest(buffer, tally)
    while slot >= 0 and (everything or (rule.seconds and is_due(buffer, slot, rule, 0, now))):
        done = _expire(space, buffer, boxes, tally, ratio, rule, slot, out, done)
        slot = oldest(buffer, tally)
    return done
