# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators, allow-incomplete-defs
"""Groups of k records that cost less than their prices add up to: by branch and bound, and by a quick local search.

With prices p, k times the reduced cost of a group is a sum over its pairs,

    w(u, v) = |x_u - x_v|^2 - k / (k - 1) (p_u + p_v),

since a group's squared error is the sum of its pairs' squared distances over k. So the cheapest group is the lightest
clique of k records. A group is searched for from its *root*, the member of the largest price: dense records with small
prices then never look at outliers, whose prices are large.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: a listed group costs more than its prices by less than this share of its root's price
SPARE = 0.6


@njit(cache=True, nogil=True)
def _insert(smallest, count, most, x):
    """Keep the ``most`` smallest numbers in order; returns how many there are now."""
    if count == most and x >= smallest[most - 1]:
        return count
    at = count if count < most else most - 1
    while at > 0 and smallest[at - 1] > x:
        smallest[at] = smallest[at - 1]
        at -= 1
    smallest[at] = x
    return min(count + 1, most)


@njit(cache=True, inline="always")
def _squared(x, y):
    """Squared distance."""
    total = 0.0
    for c in range(x.shape[0]):
        total += (x[c] - y[c]) ** 2
    return total


@njit(cache=True, nogil=True)
def _half_of_least(w, who, wanted, room, out):
    """Half the ``wanted`` smallest weights of every candidate with the others: its share in any group among them."""
    for a in range(who.shape[0]):
        count = 0
        for b in range(who.shape[0]):
            if a != b:
                count = _insert(room, count, wanted, w[who[a], who[b]])
        out[a] = 0.5 * room[:wanted].sum() if count == wanted else np.inf


@njit(cache=True, nogil=True)
def _rank(w, who, weight, base, wanted, limit, keys, room):
    """Sort candidates by the least they add to a group; how many are left that can be in one below ``limit``.

    A group of the members so far, which weigh ``base``, and ``wanted`` candidates weighs at least ``base`` plus the sum
    of their keys: a candidate's weight with the members, and half of what it weighs at least with the other candidates.
    """
    left = who.shape[0]
    while left >= wanted:
        keys[:left] = 0.0
        if wanted > 1:
            _half_of_least(w, who[:left], wanted - 1, room, keys)
        for a in range(left):
            keys[a] += weight[who[a]]
        order = np.argsort(keys[:left])
        keys[:left] = keys[:left][order]
        who[:left] = who[:left][order]
        others = base + keys[: wanted - 1].sum()
        before = left
        while left > 0 and others + keys[left - 1] >= limit:
            left -= 1
        if wanted == 1 or left > 0.8 * before:
            break
    return left


@njit(cache=True, nogil=True)
def _weigh_cuts(cuts, extra, path, root):
    """The extra weight of the cuts of which the root and the path hold exactly two records."""
    total = 0.0
    for cut in range(cuts.shape[0]):
        held = 0
        for one in cuts[cut]:
            if one == root:
                held += 1
            for member in path:
                held += member == one
        if held == 2:
            total += extra[cut]
    return total


@njit(cache=True, nogil=True)
def _lightest(w, first, wanted, cuts, extra, limit, nodes, chosen):
    """The lightest group of a root and ``wanted`` candidates, if below ``limit``: lower bound, and how many found.

    With several rows, ``chosen`` takes that many groups below ``limit``, and the bound is not of use.

    ``extra`` is what a group weighs more if it holds exactly two records of a cut; ``cuts`` are places in ``w``, the
    root's behind the last.

    Depth first, the candidate with the least key first. Where the number of nodes is used up, the bound is the least of
    those of the branches left open, so it holds all the same.
    """
    count = w.shape[0]
    who = np.empty((wanted, count), np.int64)
    keys, weight = np.empty((wanted, count)), np.empty((wanted, count))
    left, at, base = np.zeros(wanted, np.int64), np.zeros(wanted, np.int64), np.zeros(wanted)
    path, room = np.empty(wanted, np.int64), np.empty(wanted + 1)
    who[0], weight[0], left[0] = np.arange(count), first, count
    best, least_open, found, used, depth, fresh = limit, np.inf, 0, 0, 0, True
    while depth >= 0:
        missing = wanted - depth
        if fresh:
            fresh = False
            used += 1
            at[depth] = 0
            left[depth] = _rank(
                w, who[depth, : left[depth]], weight[depth], base[depth], missing, best, keys[depth], room
            )
        a = at[depth]
        bound = np.inf
        if a + missing <= left[depth]:
            bound = base[depth] + keys[depth, a : a + missing].sum()
        if bound >= best or used > nodes:
            least_open = min(least_open, bound if bound < best else np.inf)
            depth -= 1
            continue
        one = who[depth, a]
        at[depth] = a + 1
        path[depth] = one
        total = base[depth] + weight[depth, one]
        if missing == 1:
            total += _weigh_cuts(cuts, extra, path, count)
            if total < best and chosen.shape[0] == 1:
                best, found = total, 1
                chosen[0] = path
            elif total < best and found < chosen.shape[0]:
                chosen[found] = path
                found += 1
            continue
        rest = left[depth] - a - 1
        who[depth + 1, :rest] = who[depth, a + 1 : left[depth]]
        for other in who[depth + 1, :rest]:
            weight[depth + 1, other] = weight[depth, other] + w[one, other]
        base[depth + 1], left[depth + 1] = total, rest
        depth += 1
        fresh = True
    return min(best, least_open), found


@njit(cache=True, nogil=True)
def _weights(points, shares, rows, root):
    """Pair weights among ``rows`` and of each with the root."""
    count, p = rows.shape[0], points.shape[1]
    w, first = np.empty((count, count)), np.empty(count)
    for a in range(count):
        w[a, a] = np.inf
        for b in range(-1, a):
            other = root if b < 0 else rows[b]
            total = -shares[rows[a]] - shares[other]
            for c in range(p):
                total += (points[rows[a], c] - points[other, c]) ** 2
            if b < 0:
                first[a] = total
            else:
                w[a, b] = w[b, a] = total
    return w, first


@njit(cache=True, nogil=True)
def _local_cuts(cuts, penalties, first, listed, rows, root, places, w, weight):
    """The cuts with two records or more among ``rows`` and the root, by places there, and what they weigh if only two.

    A third of a penalty goes to every pair of a cut, so that a group with all three records is charged once.
    """
    count = rows.shape[0]
    for a in range(count):
        places[rows[a]] = a
    places[root] = count
    mine, extra = [(0, 0, 0)], [0.0]
    mine.clear()
    extra.clear()
    for a in range(count + 1):
        record = root if a == count else rows[a]
        for cut in listed[first[record] : first[record + 1]]:
            held, lowest = 0, count
            for one in cuts[cut]:
                if places[one] >= 0:
                    held += 1
                    lowest = min(lowest, places[one])
            if held < 2 or lowest != a:
                continue
            x, y, z = places[cuts[cut, 0]], places[cuts[cut, 1]], places[cuts[cut, 2]]
            mine.append((x, y, z))
            extra.append(penalties[cut])
    for row in rows:
        places[row] = -1
    places[root] = -1
    out = np.empty((len(mine), 3), np.int64)
    more = np.empty(len(mine))
    for at in range(len(mine)):
        out[at, 0], out[at, 1], out[at, 2] = mine[at]
        more[at] = extra[at]
        for one in out[at]:
            for other in out[at]:
                if one >= 0 and other >= 0 and one < other:
                    if other == count:
                        weight[one] += more[at] / 3.0
                    else:
                        w[one, other] += more[at] / 3.0
                        w[other, one] += more[at] / 3.0
        more[at] *= 2.0 / 3.0
    return out, more


@njit(cache=True, nogil=True)
def price_roots(points, prices, k, begin, end, slack, nodes, cuts, least, low, groups):
    """The least reduced costs of the groups with roots ``begin`` to ``end``, into ``low``; number of ``groups`` found.

    Records are sorted by their prices. ``least`` keeps, for every record before ``begin``, its k - 2 smallest weights
    with the others before; it goes on from call to call. A root costs O(n columns) unless something may lie below
    ``-slack``; ``low`` is a lower bound in any case. With room for several ``groups`` per root, those are listed whose
    reduced cost is below ``-slack`` and a share of the root's price, and ``low`` is not of use. ``cuts``: triples of
    records, the penalty of a group that holds two of them, where the triples of every record begin, and these.
    """
    n, p = points.shape
    shares = prices * (k / (k - 1.0))
    wanted, others = k - 1, k - 2
    weight, keys, room = np.empty(n), np.empty(n), np.empty(k)
    each = groups.shape[0] // (end - begin)
    chosen, places = np.empty((each, wanted), np.int64), np.full(n, -1)
    triples, penalties, first_cut, listed = cuts
    found_groups = 0
    for root in range(begin, end):
        limit = -slack * k if each == 1 else k * min(-slack, SPARE * prices[root])
        low[root] = -slack
        count = 0
        for v in range(root):
            total = -shares[v] - shares[root]
            for c in range(p):
                total += (points[v, c] - points[root, c]) ** 2
            weight[v] = total
            keys[v] = total
            if others > 0:
                keys[v] += 0.5 * least[v].sum()
            count = _insert(room, count, wanted, keys[v])
        if count == wanted and room[:wanted].sum() < limit:
            rows = np.flatnonzero(keys[:root] + room[: wanted - 1].sum() < limit)
            w, first = _weights(points, shares, rows, root)
            mine, extra = _local_cuts(triples, k * penalties, first_cut, listed, rows, root, places, w, first)
            bound, found = _lightest(w, first, wanted, mine, extra, limit, nodes, chosen)
            low[root] = min(bound / k, -slack)
            for one in range(found):
                groups[found_groups, 0] = root
                groups[found_groups, 1:] = rows[chosen[one]]
                found_groups += 1
        if others > 0:
            for v in range(root):
                _insert(least[v], others, others, weight[v])
                _insert(least[root], others, others, weight[v])
    return found_groups


@njit(cache=True, nogil=True)
def near_groups(points, prices, near, center, steps, groups, value):
    """For every record a group of k with it that costs little: the k - 1 cheapest round a center, which then moves.

    ``center`` goes on from call to call. ``value`` is the reduced cost per member.
    """
    k = groups.shape[1]
    room, who, mean = np.empty(k), np.empty(k, np.int64), np.empty(points.shape[1])
    for record in range(points.shape[0]):
        value[record] = np.inf
        for _ in range(steps):
            count = 0
            for v in near[record]:
                if v == record:
                    continue
                key = _squared(points[v], center[record]) - prices[v]
                if count == k - 1 and key >= room[k - 2]:
                    continue
                at = min(count, k - 2)
                while at > 0 and room[at - 1] > key:
                    room[at], who[at] = room[at - 1], who[at - 1]
                    at -= 1
                room[at], who[at] = key, v
                count = min(count + 1, k - 1)
            who[k - 1] = record
            mean[:] = 0.0
            for v in who:
                for c in range(mean.shape[0]):
                    mean[c] += points[v, c] / k
            cost = 0.0
            for v in who:
                cost += _squared(points[v], mean) - prices[v]
            if cost / k >= value[record]:
                break
            value[record] = cost / k
            groups[record] = who
            center[record] = mean


@njit(cache=True, nogil=True)
def extend_groups(points, prices, near, members, largest, groups, sizes, reduced):
    """Larger groups: each of ``members`` takes in the near record that costs least beyond its price, again and again.

    One row of ``groups`` for every group and size up to ``largest``; returns how many, some fewer where none is near.
    """
    k, p = members.shape[1], points.shape[1]
    mean = np.empty(p)
    count = 0
    for j in range(members.shape[0]):
        group = np.full(largest, -1, np.int64)
        group[:k] = members[j]
        mean[:] = 0.0
        for i in group[:k]:
            for c in range(p):
                mean[c] += points[i, c] / k
        cost = 0.0
        for i in group[:k]:
            cost += _squared(points[i], mean) - prices[i]
        for size in range(k, largest):
            best, least = -1, np.inf
            for i in group[:k]:
                for v in near[i, : 2 * largest]:
                    added = _squared(points[v], mean) * size / (size + 1.0) - prices[v]
                    if added < least and not np.any(group[:size] == v):
                        best, least = v, added
            if best < 0:
                break
            for c in range(p):
                mean[c] += (points[best, c] - mean[c]) / (size + 1.0)
            group[size] = best
            cost += least
            groups[count] = group
            sizes[count], reduced[count] = size + 1, cost
            count += 1
    return count
