# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Records that wait, boxes that were published, and the class of a record whose time is up.

Waiting records fill the slots 0..m-1, one array per column, so that one pass compares a record with all of them; who is
oldest says their number. All state is in arrays, which a snapshot can hold.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.kernels.spans import span

#: what becomes of the oldest record: nothing of it is published, it reuses a box, or it starts a class
DROP, REUSE, CLASS = 0, 1, 2
#: places in ``tally``: waiting records, kept boxes, boxes ever made; in ``ratio``: losses of classes, and of neighbors
WAITING, BOXES, MADE = 0, 1, 2


@njit(cache=True, inline="always")
def _loss(space, c, low, high):
    """Loss of the cell low..high of a column."""
    if space.spans.scale[c] > 0.0:
        return min((high - low) * space.spans.scale[c], space.spans.cap)
    if space.start[c] >= 0:
        return space.table[space.start[c] + int(low) * space.leaves[c] + int(high)]
    return span(space.spans, c, low, high)


@njit(cache=True)
def distances(space, columns, m, x, out):
    """Loss of the cell of ``x`` and each of the first ``m`` records."""
    out[:m] = 0.0
    for c in range(x.shape[0]):
        column, at = columns[c], x[c]
        if space.spans.scale[c] > 0.0:
            scale, cap = space.spans.scale[c], space.spans.cap
            for j in range(m):
                out[j] += min(abs(column[j] - at) * scale, cap)
        elif space.start[c] >= 0:
            row = space.table[space.start[c] + int(at) * space.leaves[c] :]
            for j in range(m):
                out[j] += row[int(column[j])]
        else:
            for j in range(m):
                out[j] += span(space.spans, c, min(column[j], at), max(column[j], at))


@njit(cache=True)
def _grown(space, low, high, x, limit):
    """Loss of the cell low..high once it holds ``x``; infinite as soon as it is not below ``limit``."""
    total = 0.0
    for c in range(x.shape[0]):
        total += _loss(space, c, min(low[c], x[c]), max(high[c], x[c]))
        if total >= limit:
            return np.inf
    return total


@njit(cache=True)
def box_loss(space, low, high):
    """Loss of the box low..high, the sum over its columns."""
    total = 0.0
    for c in range(low.shape[0]):
        total += _loss(space, c, low[c], high[c])
    return total


@njit(cache=True)
def widen(space, low, high):
    """Widen the box in place to all that its published cells cover: the whole taxonomy node, not the leaves seen."""
    for c in range(low.shape[0]):
        if space.spans.scale[c] > 0.0 or low[c] == high[c]:
            continue
        loss = _loss(space, c, low[c], high[c])
        left, right = 0, int(low[c])
        while left < right:
            middle = (left + right) // 2
            if _loss(space, c, float(middle), high[c]) == loss:
                right = middle
            else:
                left = middle + 1
        low[c] = left
        left, right = int(high[c]), space.leaves[c] - 1
        while left < right:
            middle = (left + right + 1) // 2
            if _loss(space, c, low[c], float(middle)) == loss:
                left = middle
            else:
                right = middle - 1
        high[c] = left


@njit(cache=True)
def _best_cover(boxes, tally, x):
    """The kept box that holds ``x`` at the least loss, and that loss; -1 and infinity if none does."""
    best, found = np.inf, -1
    for b in range(tally[BOXES]):
        if boxes.loss[b] < best:
            inside = True
            for c in range(x.shape[0]):
                if x[c] < boxes.low[b, c] or x[c] > boxes.high[b, c]:
                    inside = False
                    break
            if inside:
                best, found = boxes.loss[b], b
    return found, best


# ---- Coming and going ----------------------------------------------------------------------------


@njit(cache=True)
def arrive(buffer, boxes, tally, x, person, number, moment):
    """Put a record into the next free slot."""
    slot = tally[WAITING]
    buffer.columns[:, slot] = x
    buffer.person[slot], buffer.number[slot], buffer.moment[slot] = person, number, moment
    buffer.near[slot] = -1.0
    buffer.cover[slot], buffer.cover_loss[slot] = _best_cover(boxes, tally, x)
    tally[WAITING] = slot + 1


@njit(cache=True)
def oldest(buffer, tally):
    """The slot of the record that came first; -1 if none waits."""
    slot = -1
    for j in range(tally[WAITING]):
        if slot < 0 or buffer.number[j] < buffer.number[slot]:
            slot = j
    return slot


@njit(cache=True)
def leave(buffer, tally, slot):
    """Free a slot; the last record moves into it."""
    last = tally[WAITING] - 1
    buffer.columns[:, slot] = buffer.columns[:, last]
    buffer.person[slot], buffer.number[slot] = buffer.person[last], buffer.number[last]
    buffer.moment[slot], buffer.near[slot] = buffer.moment[last], buffer.near[last]
    buffer.cover[slot], buffer.cover_loss[slot] = buffer.cover[last], buffer.cover_loss[last]
    tally[WAITING] = last


@njit(cache=True)
def keep_box(buffer, boxes, tally, low, high, loss):
    """Remember a published box, in place of the one unused for longest if there is no room; returns its place."""
    evicted = False
    if tally[BOXES] < boxes.loss.shape[0]:
        place = tally[BOXES]
        tally[BOXES] += 1
    else:
        place, evicted = np.argmin(boxes.used), True
    boxes.low[place], boxes.high[place], boxes.loss[place] = low, high, loss
    boxes.name[place] = tally[MADE]
    tally[MADE] += 1
    x = np.empty(low.shape[0])
    for j in range(tally[WAITING]):
        x[:] = buffer.columns[:, j]
        if evicted and buffer.cover[j] == place:
            buffer.cover[j], buffer.cover_loss[j] = _best_cover(boxes, tally, x)
        elif loss < buffer.cover_loss[j]:
            inside = True
            for c in range(x.shape[0]):
                if x[c] < low[c] or x[c] > high[c]:
                    inside = False
                    break
            if inside:
                buffer.cover[j], buffer.cover_loss[j] = place, loss
    return place


# ---- The class of the oldest record --------------------------------------------------------------


@njit(cache=True)
def _has(person, members, count, people):
    """Whether a person is among the first members; records without a person are all different."""
    if person < 0:
        return False
    for i in range(count):  # noqa: SIM110 (compiled)
        if people[members[i]] == person:
            return True
    return False


@njit(cache=True)
def nearest_class(space, buffer, tally, seed, k):
    """The seed and the k - 1 nearest records of other people: slots and box; the loss is infinite if there are too few.

    The rule of FADS (Guo & Zhang 2013).
    """
    m = tally[WAITING]
    members = np.full(k, -1, dtype=np.int64)
    low, high = buffer.columns[:, seed].copy(), buffer.columns[:, seed].copy()
    away = np.empty(m)
    distances(space, buffer.columns, m, low, away)
    order = np.argsort(away, kind="mergesort")
    members[0], held = seed, 1
    for i in range(m):
        j = order[i]
        if held == k:
            break
        if j == seed or _has(buffer.person[j], members, held, buffer.person):
            continue
        members[held] = j
        held += 1
        for c in range(low.shape[0]):
            low[c] = min(low[c], buffer.columns[c, j])
            high[c] = max(high[c], buffer.columns[c, j])
    return members, low, high, box_loss(space, low, high) if held == k else np.inf


@njit(cache=True)
def _measure_near(space, buffer, tally, k):
    """For records that came since, the loss of the pair with their k-th nearest: how hard they are to place."""
    m = tally[WAITING]
    away = np.empty(m)
    smallest = np.empty(k + 1)
    for j in range(m):
        if buffer.near[j] >= 0.0 or m <= k:
            continue
        distances(space, buffer.columns, m, buffer.columns[:, j].copy(), away)
        held = 0
        for i in range(m):  # the k + 1 smallest by insertion; the record itself is one of them
            value = away[i]
            if held == k + 1 and value >= smallest[k]:
                continue
            at = held if held <= k else k
            while at > 0 and smallest[at - 1] > value:
                smallest[at] = smallest[at - 1]
                at -= 1
            smallest[at] = value
            held = min(held + 1, k + 1)
        buffer.near[j] = smallest[k] + 1e-9


@njit(cache=True)
def prospects(buffer, ratio, caution, slots):
    """What waiting records would lose otherwise: under their best box, or in a class like those of late."""
    expected = np.empty(slots.shape[0])
    scale, most = caution * ratio[0] / ratio[1] if ratio[1] > 0.0 else 2.0 * caution, float(buffer.columns.shape[0])
    for i in range(slots.shape[0]):
        near = buffer.near[slots[i]]
        expected[i] = min(buffer.cover_loss[slots[i]], scale * near, most) if near >= 0.0 else most
    return expected


@njit(cache=True)
def _lowest(score, count):
    """The places of the ``count`` lowest scores, in their order; fewer if the others are infinite."""
    kept = (
        np.flatnonzero(score <= np.partition(score, count)[count])
        if count < score.shape[0]
        else np.arange(score.shape[0])
    )
    order = kept[np.argsort(score[kept], kind="mergesort")][:count]
    return order[score[order] < np.inf]


@njit(cache=True)
def prospect_class(space, buffer, tally, ratio, seed, k, caution, reach):
    """A class grown for the seed of records that lose little in it and would lose much elsewhere.

    At every step the record joins for which k times the growth of the loss, less its own prospect, is least; then each
    is swapped for a better one, twice. Only the ``reach`` best records of the first comparison are looked at.
    """
    m, q = tally[WAITING], buffer.columns.shape[0]
    members = np.full(k, -1, dtype=np.int64)
    x = buffer.columns[:, seed].copy()
    low, high = x.copy(), x.copy()
    _measure_near(space, buffer, tally, k)
    expected = prospects(buffer, ratio, caution, np.arange(m))
    away = np.empty(m)
    distances(space, buffer.columns, m, x, away)
    score = np.empty(m)
    for j in range(m):
        score[j] = k * away[j] - expected[j]
    score[seed] = np.inf
    slots = _lowest(score, reach)
    count = slots.shape[0]
    points, least, wish = np.empty((count, q)), np.empty(count), np.empty(count)
    for i in range(count):
        points[i] = buffer.columns[:, slots[i]]
        least[i], wish[i] = away[slots[i]], expected[slots[i]]
    taken = np.zeros(count, dtype=np.bool_)
    chosen = np.full(k, -1, dtype=np.int64)
    members[0], loss = seed, 0.0
    for step in range(1, k):
        best, found = np.inf, -1
        for i in range(count):
            if taken[i]:
                continue
            bound = (best + wish[i]) / k + loss
            if bound <= loss or bound <= least[i]:  # no box with the seed and this record loses less than they alone
                continue
            grown = _grown(space, low, high, points[i], bound)
            if grown < bound and not _has(buffer.person[slots[i]], members, step, buffer.person):
                best, found = k * (grown - loss) - wish[i], i
        if found < 0:
            return members, low, high, np.inf
        taken[found] = True
        members[step], chosen[step] = slots[found], found
        for c in range(q):
            low[c] = min(low[c], points[found, c])
            high[c] = max(high[c], points[found, c])
        loss = box_loss(space, low, high)
    for _ in range(2):
        if not _swap(space, buffer.person, wish, least, slots, points, taken, chosen, members, x, low, high):
            break
    return members, low, high, box_loss(space, low, high)


@njit(cache=True)
def _swap(space, people, wish, least, slots, points, taken, chosen, members, x, low, high):
    """Swap each member but the first for the record that serves best in its place; whether any was."""
    k, q = members.shape[0], x.shape[0]
    improved = False
    loss = box_loss(space, low, high)
    less_low, less_high = np.empty(q), np.empty(q)
    for i in range(1, k):
        less_low[:], less_high[:] = x, x
        for other in range(1, k):
            if other != i:
                for c in range(q):
                    less_low[c] = min(less_low[c], points[chosen[other], c])
                    less_high[c] = max(less_high[c], points[chosen[other], c])
        floor = box_loss(space, less_low, less_high)
        best, found = k * loss - wish[chosen[i]] - 1e-9, -1
        own = members[i]
        members[i] = members[0]  # so that another record of the same person may take the place
        for j in range(slots.shape[0]):
            bound = (best + wish[j]) / k
            if taken[j] or bound <= floor or bound <= least[j]:
                continue
            grown = _grown(space, less_low, less_high, points[j], bound)
            if grown < bound and not _has(people[slots[j]], members, k, people):
                best, found = k * grown - wish[j], j
        members[i] = own
        if found < 0:
            continue
        taken[chosen[i]], taken[found] = False, True
        chosen[i], members[i], improved = found, slots[found], True
        for c in range(q):
            low[c] = min(less_low[c], points[found, c])
            high[c] = max(less_high[c], points[found, c])
        loss = box_loss(space, low, high)
    return improved


@njit(cache=True)
def growth(space, columns, m, low, high):
    """Loss of the box low..high once it holds each of the first ``m`` records."""
    out = np.empty(m)
    for j in range(m):
        out[j] = _grown(space, low, high, columns[:, j], np.inf)
    return out
