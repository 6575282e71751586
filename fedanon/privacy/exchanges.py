"""Exchanges: which values people may have, given how often each value occurs in a group from one release to the next.

A stay is an arc in time, from the first release that shows a row to the first that does not. Two values are exchanged
along a closed way: forward by arcs that have the first, back by arcs that have the second. Every arc on the way takes
the other value, each release still counts the same, and so the exchanged world is as good as the true one. An arc may
hence have the other value if its end leads back to its beginning; where there are two values only, exactly then.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

#: value, beginning and end of a stay
Arc = tuple[int, int, int]


def possible_values(
    arcs: Mapping[str, Sequence[Arc]], bound: Collection[str] = frozenset()
) -> dict[str, frozenset[int]]:
    """The values each person of a group may have in some world that all counts of the group allow.

    ``arcs`` are the stays of every person; ``bound`` are people who have stays in other groups too. Who has several
    stays must exchange all of them at once, by ways that share no arc, and nobody's way leads over theirs: others count
    on people with one stay alone. What a bound person may have is what all of their groups allow.
    """
    single = Counter(own[0] for person, own in arcs.items() if len(own) == 1 and person not in bound)
    kinds = frozenset(single)
    exchanged = _exchanges(kinds)
    values = sorted({arc[0] for own in arcs.values() for arc in own})
    found = dict[str, frozenset[int]]()
    for person, own in arcs.items():
        if len(own) > 1:
            found[person] = _joint_exchanges(own, single, values)
        else:
            found[person] = exchanged[own[0]] if person not in bound else _bound_exchanges(own[0], kinds)
    return found


@lru_cache(maxsize=100_000)
def _exchanges(arcs: frozenset[Arc]) -> dict[Arc, frozenset[int]]:
    """The values each arc may have; the number of equal arcs does not matter."""
    by_value: dict[int, list[Arc]] = {}
    for arc in arcs:
        by_value.setdefault(arc[0], []).append(arc)
    possible = {arc: {arc[0]} for arc in arcs}
    for one, other in combinations(sorted(by_value), 2):
        reach = _closure([(i, j) for _, i, j in by_value[one]] + [(j, i) for _, i, j in by_value[other]])
        for arc in by_value[one]:
            if arc[1] in reach[arc[2]]:
                possible[arc].add(other)
        for arc in by_value[other]:
            if arc[2] in reach[arc[1]]:
                possible[arc].add(one)
    return {arc: frozenset(found) for arc, found in possible.items()}


@lru_cache(maxsize=100_000)
def _bound_exchanges(arc: Arc, single: frozenset[Arc]) -> frozenset[int]:
    """The values an arc may have that no other way leads over."""
    return _exchanges(single | {arc})[arc]


def _closure(steps: Sequence[tuple[int, int]]) -> dict[int, set[int]]:
    """The points in time that each one leads to."""
    reach: dict[int, set[int]] = {}
    for i, j in steps:
        reach.setdefault(i, {i}).add(j)
        reach.setdefault(j, {j})
    for middle in reach:
        for found in reach.values():
            if middle in found:
                found |= reach[middle]
    return reach


def _joint_exchanges(own: Sequence[Arc], others: Counter[Arc], values: Sequence[int]) -> frozenset[int]:
    """The values someone with several stays may have in all of them."""
    mine = {arc[0] for arc in own}
    if len(mine) > 1:
        return frozenset(mine)
    (value,) = mine
    return frozenset([value, *(other for other in values if other != value and _find_ways(own, others, other))])


def _find_ways(own: Sequence[Arc], others: Counter[Arc], other: int) -> bool:
    """Whether every own arc has a way back over arcs of its value and, against time, of the other one."""
    left = Counter({arc: count for arc, count in others.items() if arc[0] in (own[0][0], other)})
    for _, start, end in own:
        way = _shortest_way(end, start, left, own[0][0])
        if way is None:
            return False
        left.subtract(way)
    return True


def _shortest_way(start: int, end: int, left: Counter[Arc], forward: int) -> list[Arc] | None:
    came: dict[int, tuple[int, Arc]] = {}
    queue, seen = deque([start]), {start}
    while queue:
        at = queue.popleft()
        if at == end:
            way = []
            while at != start:
                at, arc = came[at]
                way.append(arc)
            return way
        for arc, count in left.items():
            tail, head = arc[1:] if arc[0] == forward else arc[:0:-1]
            if count > 0 and tail == at and head not in seen:
                seen.add(head)
                came[head] = (at, arc)
                queue.append(head)
    return None
