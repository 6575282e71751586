"""A slow attacker over several releases: tries every assignment of values that all published counts allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

#: per release, the groups of rows seen together: who is in each, and how often it shows each value
Seen = Sequence[tuple[frozenset[str], Counter[object]]]


def worlds(groups: Seen) -> Iterator[dict[str, object]]:
    """Every assignment of one value per person that agrees with all groups; a person keeps their value."""
    people = sorted({person for members, _ in groups for person in members})
    left = [counts.copy() for _, counts in groups]
    inside = {person: [i for i, (members, _) in enumerate(groups) if person in members] for person in people}
    yield from _extend({}, people, inside, left)


def possible(groups: Seen) -> dict[str, set[object]]:
    """The values each person has in some world."""
    found: dict[str, set[object]] = {}
    for world in worlds(groups):
        for person, value in world.items():
            found.setdefault(person, set()).add(value)
    return found


def _extend(
    world: dict[str, object], people: Sequence[str], inside: dict[str, list[int]], left: list[Counter[object]]
) -> Iterator[dict[str, object]]:
    if len(world) == len(people):
        yield dict(world)
        return
    person = people[len(world)]
    at = inside[person]
    for value in [value for value in left[at[0]] if all(left[i][value] > 0 for i in at)]:
        for i in at:
            left[i][value] -= 1
        yield from _extend({**world, person: value}, people, inside, left)
        for i in at:
            left[i][value] += 1
