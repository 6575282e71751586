# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""BoxPricing of k records that lose less than their prices add up to, by branch and bound.

A group of k records costs k times the loss of its cell. The search is over boxes: a box holds at least its root, and
the best group inside takes the k - 1 other records of largest prices. Extending the box only raises its loss.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fedanon.anonymizers.anneal._costs import _cell_loss


@njit(cache=True, nogil=True)
def _loss_with(costs, columns, base, low, high, record, limit):
    """Loss of a box once it holds the record; anything from ``limit`` on may be returned for more."""
    total = base
    for c in range(columns):
        x = costs.points[record, c]
        total += _cell_loss(costs, c, min(low[c], x), max(high[c], x))
        if total >= limit:
            return total
    return total


@njit(cache=True, nogil=True)
def _inside(losses, prices, rows, loss, k, chosen):
    """The k - 1 candidates of largest prices in the box; the sum of their prices, minus infinity if too few."""
    held, total = 0, 0.0
    room = np.empty(k - 1)
    for a in range(losses.shape[0]):
        if losses[a] > loss:
            break
        x = prices[a]
        if held == k - 1 and x <= room[k - 2]:
            continue
        at = min(held, k - 2)
        while at > 0 and room[at - 1] < x:
            room[at], chosen[at] = room[at - 1], chosen[at - 1]
            at -= 1
        room[at], chosen[at] = x, rows[a]
        held = min(held + 1, k - 1)
    for a in range(held):
        total += room[a]
    return total if held == k - 1 else -np.inf


@njit(cache=True, nogil=True)
def best_box(costs, columns, base, root, rows, pair, floor, prices, own, k, limit, nodes, group):
    """The least reduced cost of a group of the root and k - 1 of ``rows``, if below ``limit``: bound, whether found.

    The first ``columns`` are searched; the others lose ``base``, whatever the group.

    Depth first: a box is extended by each candidate outside, the least loss first; those tried are left out after. The
    bound holds also where the number of nodes is used up. No group with a candidate loses less than its ``floor``.
    """
    count = rows.shape[0]
    who, loss = np.empty((k, count), np.int64), np.empty((k, count))
    low, high = np.empty((k, columns)), np.empty((k, columns))
    left, at, here = np.zeros(k, np.int64), np.zeros(k, np.int64), np.zeros(k)
    largest, chosen = np.empty(k), np.empty(k - 1, np.int64)
    low[0], high[0] = costs.points[root, :columns], costs.points[root, :columns]
    here[0] = base
    who[0], loss[0], left[0] = np.arange(count), np.maximum(pair, floor), count
    best, least_open, found, used, depth, fresh = limit, np.inf, False, 0, 0, True
    while depth >= 0:
        if fresh:
            fresh = False
            used += 1
            order = np.argsort(loss[depth, : left[depth]])
            loss[depth, : left[depth]] = loss[depth, : left[depth]][order]
            who[depth, : left[depth]] = who[depth, : left[depth]][order]
            mine = prices[who[depth, : left[depth]]]
            value = (
                k * here[depth] - own - _inside(loss[depth, : left[depth]], mine, who[depth], here[depth], k, chosen)
            )
            if value < best:
                best, found = value, True
                group[0] = root
                group[1:] = rows[chosen]
            at[depth] = 0
            while at[depth] < left[depth] and loss[depth, at[depth]] <= here[depth]:
                at[depth] += 1
            if at[depth] == left[depth] or depth == k - 1:
                depth -= 1
                continue
        a = at[depth]
        bound = np.inf
        if a < left[depth]:
            # a group that leaves this box has this loss at least
            bound = _bound_from(loss[depth, : left[depth]], prices, who[depth], a, here[depth], k, own, largest)
        if bound >= best or used > nodes:
            least_open = min(least_open, bound if bound < best else np.inf)
            depth -= 1
            continue
        one = rows[who[depth, a]]
        at[depth] = a + 1
        here[depth + 1] = loss[depth, a]
        for c in range(columns):
            low[depth + 1, c] = min(low[depth, c], costs.points[one, c])
            high[depth + 1, c] = max(high[depth, c], costs.points[one, c])
        most = (own + _top(prices, who[depth, : left[depth]], k - 1, largest) + best) / k
        kept = 0
        for b in range(left[depth]):
            # candidates tried before are out, unless they lie in the box by now and so come for free
            other = who[depth, b]
            total = _loss_with(costs, columns, base, low[depth + 1], high[depth + 1], rows[other], most)
            if max(total, floor[other]) < most and (b >= a or total <= here[depth + 1]):
                who[depth + 1, kept], loss[depth + 1, kept] = other, max(total, here[depth + 1], floor[other])
                kept += 1
        left[depth + 1] = kept
        depth += 1
        fresh = True
    return min(best, least_open), found


@njit(cache=True, nogil=True)
def _top(prices, who, wanted, room):
    """Sum of the largest prices."""
    held = 0
    for a in who:
        x = prices[a]
        if held == wanted and x <= room[wanted - 1]:
            continue
        at = min(held, wanted - 1)
        while at > 0 and room[at - 1] < x:
            room[at] = room[at - 1]
            at -= 1
        room[at] = x
        held = min(held + 1, wanted)
    return room[:held].sum()


@njit(cache=True, nogil=True)
def _bound_from(losses, prices, who, a, inside, k, own, largest):
    """A lower bound for groups that hold one of the candidates from ``a`` on and none of those tried before it."""
    best, held, total = np.inf, 0, 0.0
    for b in range(losses.shape[0]):
        if b < a and losses[b] > inside:
            continue
        x = prices[who[b]]
        if held < k - 1 or x > largest[k - 2]:
            if held == k - 1:
                total -= largest[k - 2]
            at = min(held, k - 2)
            while at > 0 and largest[at - 1] < x:
                largest[at] = largest[at - 1]
                at -= 1
            largest[at] = x
            total += x
            held = min(held + 1, k - 1)
        if b >= a and held == k - 1:
            best = min(best, k * losses[b] - own - total)
    return best


@njit(cache=True, nogil=True)
def candidates(costs, columns, base, root, among, counts, k, limit, least, rows, losses):
    """The records that can be in a group with the root that loses less than ``limit``, as often as they occur."""
    found = 0
    here = costs.points[root]
    for v in among:
        if least[v] < limit:
            loss = _loss_with(costs, columns, base, here, here, v, limit)
            if loss < limit:
                for _ in range(min(counts[v] - (v == root), k - 1)):
                    rows[found], losses[found] = v, loss
                    found += 1
    return found


@njit(cache=True, nogil=True)
def near_boxes(costs, prices, near, nodes, groups, value):
    """For every record a group of k with it and near records that costs little; its reduced cost per member."""
    k, columns = groups.shape[1], costs.points.shape[1]
    losses, floor = np.empty(near.shape[1]), np.zeros(near.shape[1])
    for record in range(near.shape[0]):
        here = costs.points[record]
        for a in range(near.shape[1]):
            losses[a] = _loss_with(costs, columns, 0.0, here, here, near[record, a], np.inf)
        mine = near[record].astype(np.int64)
        best_box(
            costs,
            columns,
            0.0,
            record,
            mine,
            losses,
            floor,
            prices[mine],
            prices[record],
            k,
            np.inf,
            nodes,
            groups[record],
        )
        value[record] = _reduced_cost(costs, prices, groups[record]) / k


@njit(cache=True, nogil=True)
def _reduced_cost(costs, prices, group):
    low, high = costs.points[group[0]].copy(), costs.points[group[0]].copy()
    columns, total = low.shape[0], 0.0
    for record in group:
        total -= prices[record]
        for c in range(columns):
            low[c] = min(low[c], costs.points[record, c])
            high[c] = max(high[c], costs.points[record, c])
    return total + group.shape[0] * _loss_with(costs, columns, 0.0, low, high, group[0], np.inf)


@njit(cache=True, nogil=True)
def group_costs(costs, members):
    """k times the loss of the cell of each group."""
    none = np.zeros(costs.points.shape[0])
    out = np.empty(members.shape[0])
    for j in range(members.shape[0]):
        out[j] = _reduced_cost(costs, none, members[j])
    return out


@njit(cache=True, nogil=True)
def smallest_boxes(costs, counts, most, k, begin, end, nodes, low):
    """Loss of the smallest box of k records around each, from below; ``most``: from above, by any such box."""
    n, columns = costs.points.shape
    room = counts.sum()
    rows, losses, none = np.empty(room, np.int64), np.empty(room), np.zeros(room)
    group, everyone = np.empty(k, np.int64), np.arange(n)
    for record in range(begin, end):
        low[record] = most[record]
        count = candidates(costs, columns, 0.0, record, everyone, counts, k, most[record], none, rows, losses)
        if count >= k - 1:
            limit = k * most[record]
            mine = rows[:count].copy()
            bound, _ = best_box(
                costs, columns, 0.0, record, mine, losses[:count], none[:count], none, 0.0, k, limit, nodes, group
            )
            low[record] = bound / k


@njit(cache=True, nogil=True)
def near_rows(near, counts, k, rows):
    """The near records of every record, itself apart, as often as they occur; a short list ends with the next ones."""
    n, width = rows.shape
    listed = np.full(n, -1)
    for record in range(n):
        count = 0
        for place in range(-1, near.shape[1] + n):
            other = record if place < 0 else place - near.shape[1]
            if 0 <= place < near.shape[1]:
                other = near[record, place]
            if listed[other] == record:
                continue
            listed[other] = record
            for _ in range(min(counts[other] - (other == record), k)):
                if count < width:
                    rows[record, count] = other
                    count += 1
            if count == width:
                break
