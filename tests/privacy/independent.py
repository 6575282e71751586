"""A second checker: plain Python over the published text, sharing no code with fedanon.privacy.

It is given the requirement as text and reads it with its own few lines, groups the rows by what they publish, and
computes every model by its definition.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.data.schema import Categorical, Numeric, Schema

SLACK = 1e-9
Members = list[int]


class Published:
    """A published table: its classes, and who is in them. A row that shows nothing at all is in none."""

    def __init__(self, frame: pd.DataFrame, schema: Schema, persons: Sequence[int] | None) -> None:
        self.schema = schema
        self.quasi = [a.name for a in schema.quasi_identifiers]
        rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
        everyone = list(range(len(frame))) if persons is None else list(persons)
        shown = [i for i, row in enumerate(rows) if set(row.values()) - {"*", None}]
        self.rows, self.persons = [rows[i] for i in shown], [everyone[i] for i in shown]
        classes: dict[tuple[Any, ...], Members] = defaultdict(list)
        for i, row in enumerate(self.rows):
            classes[tuple(str(row[name]) for name in self.quasi)].append(i)
        self.classes = classes

    def who(self, members: Members) -> set[int]:
        return {self.persons[i] for i in members}

    def counts(self, members: Members, column: str) -> dict[Hashable, int]:
        pairs = {(self.rows[i][column], self.persons[i]) for i in members}
        found: dict[Hashable, int] = defaultdict(int)
        for value, _ in pairs:
            found[value] += 1
        return found

    def broken(self, k: int, require: str) -> list[str]:
        """The parts of the requirement that do not hold."""
        small = any(len(self.who(members)) < k for members in self.classes.values())
        parts = [part for part in require.split(",") if part]
        return [f"k={k}"] * small + [part for part in parts if not self.holds(part)]

    def holds(self, part: str) -> bool:
        name, rest = part.split("=", 1)
        number, subject, *options = rest.split(":")
        if name == "k_map":
            return self._k_map(int(number), subject)
        if name == "presence":
            low = float(options[0].split("=")[1]) if options else 0.0
            return self._presence(low, float(number), subject)
        check = getattr(self, f"_{name}")
        everyone = list(range(len(self.rows)))
        return all(check(members, everyone, subject, float(number), options) for members in self.classes.values())

    # ---- diversity ----

    def _l(self, members: Members, _: Members, column: str, least: float, __: list[str]) -> bool:
        return len(self.counts(members, column)) >= least

    def _entropy_l(self, members: Members, _: Members, column: str, least: float, __: list[str]) -> bool:
        shares = self._distribution(members, column).values()
        return -sum(p * math.log(p) for p in shares) >= math.log(least) - SLACK

    def _recursive_l(self, members: Members, _: Members, column: str, least: float, options: list[str]) -> bool:
        c = float(options[0].split("=")[1]) if options else 2.0
        falling = sorted(self.counts(members, column).values(), reverse=True)
        return falling[0] < c * sum(falling[int(least) - 1 :])

    def _alpha(self, members: Members, _: Members, column: str, most: float, __: list[str]) -> bool:
        return max(self._shares(members, column).values()) <= most + SLACK

    # ---- against the whole ----

    def _beta(self, members: Members, everyone: Members, column: str, beta: float, options: list[str]) -> bool:
        whole = self._shares(everyone, column)
        for value, q in self._shares(members, column).items():
            p = whole[value]
            bound = min(beta, -math.log(p)) if options else beta
            if q > p and (q - p) / p > bound + SLACK / p:
                return False
        return True

    def _delta(self, members: Members, everyone: Members, column: str, delta: float, __: list[str]) -> bool:
        here = self._shares(members, column)
        whole = self._shares(everyone, column)
        return all(s in here and abs(math.log(here[s] / whole[s])) < delta for s in whole)

    def _t(self, members: Members, everyone: Members, column: str, t: float, options: list[str]) -> bool:
        p, q = self._distribution(members, column), self._distribution(everyone, column)
        attribute = self.schema[column]
        kind = options[0] if options else ("ordered" if isinstance(attribute, Numeric) else "equal")
        gap = {value: p.get(value, 0.0) - q[value] for value in q}
        if kind == "equal":
            moved = sum(abs(x) for x in gap.values()) / 2
        elif kind == "ordered":
            moved = _along_a_line([gap[value] for value in self._in_order(gap, column)])
        else:
            moved = self._through_the_tree(gap, column)
        return moved <= t + SLACK

    def _in_order(self, gap: dict[Hashable, float], column: str) -> list[Hashable]:
        attribute = self.schema[column]
        if isinstance(attribute, Numeric):
            return sorted(gap, key=lambda v: (v is None, float(v or 0)))  # type: ignore[arg-type]
        assert isinstance(attribute, Categorical)
        order = [path[0] for path in attribute.hierarchy.paths()]
        return sorted(gap, key=lambda v: len(order) if v is None else order.index(str(v)))

    def _through_the_tree(self, gap: dict[Hashable, float], column: str) -> float:
        """Two values are height(lowest common ancestor) / height(tree) apart: settle what can be, from below."""
        attribute = self.schema[column]
        assert isinstance(attribute, Categorical)
        up = {path[0]: path[1:] for path in attribute.hierarchy.paths()}
        root = next(iter(up.values()))[-1]
        height: dict[str, int] = defaultdict(int)
        for above in up.values():
            for steps, node in enumerate(above, start=1):
                height[node] = max(height[node], steps)
        left = {value: x for value, x in gap.items() if abs(x) > 0}
        cost = 0.0
        for node in sorted(height, key=lambda name: height[name]):
            below = [v for v in left if (root if v is None else node) in ((root,) if v is None else up[v])]  # type: ignore[index]
            below = below if node == root else [v for v in below if v is not None]
            over, under = (sum(max(s * left[v], 0.0) for v in below) for s in (1, -1))
            moved = min(over, under)
            cost += moved * height[node] / height[root]
            for sign, total in ((1, over), (-1, under)):
                for v in below:
                    if sign * left[v] > 0:
                        left[v] *= 1 - moved / total
        return cost

    def _shares(self, members: Members, column: str) -> dict[Hashable, float]:
        people = len(self.who(members))
        return {value: count / people for value, count in self.counts(members, column).items()}

    def _distribution(self, members: Members, column: str) -> dict[Hashable, float]:
        counts = self.counts(members, column)
        return {value: count / sum(counts.values()) for value, count in counts.items()}

    # ---- population ----

    def _matches(self, file: str) -> tuple[int, dict[tuple[Any, ...], Members]]:
        with Path(file).open(newline="") as opened:
            people = list(csv.DictReader(opened))
        return len(people), {
            key: [i for i, person in enumerate(people) if self._matched(key, person)] for key in self.classes
        }

    def _matched(self, key: tuple[Any, ...], person: dict[str, str]) -> bool:
        return all(self._inside(name, cell, person[name]) for name, cell in zip(self.quasi, key, strict=True))

    def _inside(self, name: str, cell: str, value: str) -> bool:
        attribute = self.schema[name]
        if isinstance(attribute, Numeric):
            low, high = (re.findall(r"[-\d.]+", cell) * 2)[:2]
            return float(low) <= float(value) <= float(high)
        assert isinstance(attribute, Categorical)
        paths = {path[0]: path for path in attribute.hierarchy.paths()}
        return cell in paths.get(value or "(missing)", [])

    def _k_map(self, k: int, file: str) -> bool:
        return all(len(found) >= k for found in self._matches(file)[1].values())

    def _presence(self, low: float, high: float, file: str) -> bool:
        n_people, matches = self._matches(file)
        chance: list[list[float]] = [[] for _ in range(n_people)]
        for key, found in matches.items():
            share = len(self.who(self.classes[key])) / max(len(found), 1)
            if share > high + SLACK:
                return False
            for i in found:
                chance[i].append(share)
        return all(max(c, default=0.0) >= low - SLACK and sum(c) <= high + SLACK for c in chance)


def _along_a_line(gaps: list[float]) -> float:
    carried, moved = 0.0, 0.0
    for gap in gaps:
        carried += gap
        moved += abs(carried)
    return moved / max(len(gaps) - 1, 1)
