"""Two aims at once: information loss (IL) against linkage (DLD), from the least loss to where no group is linked.

    python experiments/benchmarks/loss_and_linkage.py

The BRKGA paper calls microaggregation a problem with two aims and leaves the search for both to later work. A group is
linked if the original nearest to its mean is a member; DLD is the number of linked groups over that of records, so an
attacker who takes the second nearest is not counted. From a partition of `anneal`, a linked group swaps a record with a
near group, takes one in or gives one away, where that unlinks at no more than a price in squared error per link; the
price is raised from step to step. Every step is a point; those that no other beats in both aims are stored, into
experiments/results/loss_and_linkage.json. Needs FEDANON_DATA.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from fedanon.anonymizers.anneal.method import Anneal
from fedanon.anonymizers.microaggregation.base import standardized
from fedanon.data.spans import points
from fedanon.datasets import load
from fedanon.metrics import dld, il
from fedanon.types import FloatArray, IndexArray

STORED = Path(__file__).parents[1] / "results" / "loss_and_linkage.json"
DATASETS, K, TRIALS = ("tarragona", "census"), (3, 5, 10), 20_000_000
#: near records of a mean that are tried, and prices of a link, as shares of the mean squared error of a group
NEAR, PRICES, SWEEPS = 8, (0.01, 0.03, 0.1, 0.3, 1.0, 3.0), 6


class Change(NamedTuple):
    """New members of two groups, what they cost more per link that goes."""

    price: float
    groups: tuple[int, int]
    members: tuple[IndexArray, IndexArray]


class Partition:
    """Groups of standardized records, and which of them are linked."""

    def __init__(self, values: FloatArray, labels: IndexArray, k: int) -> None:
        self.values, self.k, self.tree = values, k, cKDTree(values)
        self.labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        self.groups = [np.flatnonzero(self.labels == g) for g in range(self.labels.max() + 1)]

    def mean(self, members: IndexArray) -> FloatArray:
        """Of a group."""
        return np.asarray(self.values[members].mean(axis=0))

    def error(self, members: IndexArray) -> float:
        """Squared error of a group."""
        return float(np.square(self.values[members] - self.mean(members)).sum())

    def linked(self, groups: list[IndexArray]) -> FloatArray:
        """Whether the original nearest to the mean is a member."""
        nearest = self.tree.query(np.array([self.mean(members) for members in groups]))[1]
        return np.array([near in members for near, members in zip(nearest, groups, strict=True)])

    def measure(self) -> tuple[float, float]:
        """IL in per cent, and DLD."""
        total = sum(self.error(members) for members in self.groups)
        return 100 * total / float(np.square(self.values).sum()), self.linked(self.groups).sum() / len(self.values)

    def changes(self, g: int) -> list[tuple[int, IndexArray, IndexArray]]:
        """Other groups that a group can change records with, and the members of both after."""
        mine, found = self.groups[g], []
        near = self.tree.query(self.mean(mine), k=NEAR + len(mine))[1]
        for b in near[self.labels[near] != g][:NEAR]:
            h = int(self.labels[b])
            rest = np.setdiff1d(self.groups[h], [b])
            if len(rest) >= self.k and len(mine) < 2 * self.k - 1:
                found.append((h, np.append(mine, b), rest))
            for a in mine:
                found.append((h, np.append(np.setdiff1d(mine, [a]), b), np.append(rest, a)))
                if len(mine) > self.k and len(rest) + 1 < 2 * self.k - 1:
                    found.append((h, np.setdiff1d(mine, [a]), np.append(self.groups[h], a)))
        return found

    def unlink(self, price: float) -> int:
        """Apply the cheapest changes that unlink for at most the price each, no group twice; how many."""
        linked = self.linked(self.groups)
        best = [self._cheapest(int(g), linked) for g in np.flatnonzero(linked)]
        touched: set[int] = set()
        for change in sorted(filter(None, best), key=lambda change: change.price):
            if change.price > price:
                break
            if touched.isdisjoint(change.groups):
                touched.update(change.groups)
                for group, members in zip(change.groups, change.members, strict=True):
                    self.groups[group] = members
                    self.labels[members] = group
        return len(touched) // 2

    def _cheapest(self, g: int, linked: FloatArray) -> Change | None:
        found = self.changes(g)
        after = self.linked([members for _, *both in found for members in both]).reshape(-1, 2).sum(axis=1)
        best: Change | None = None
        for (h, mine, other), left in zip(found, after, strict=True):
            gone = int(linked[g]) + int(linked[h]) - int(left)
            if gone > 0:
                more = self.error(mine) + self.error(other) - self.error(self.groups[g]) - self.error(self.groups[h])
                if best is None or more / gone < best.price:
                    best = Change(more / gone, (g, h), (mine, other))
        return best


def search(dataset: str, k: int) -> list[tuple[float, float]]:
    """The points that no other beats in both aims, by IL."""
    table = load(dataset)
    release = Anneal(k=k, objective="sse", iterations=TRIALS).anonymize(table, rng=0)
    partition = Partition(standardized(points(table)), np.asarray(release.groups.labels, dtype=np.int64), k)
    seen = [partition.measure()]
    assert np.allclose(seen[0], (il(table, release), dld(table, release)), rtol=1e-3)  # the metrics' own numbers
    per_group = float(np.mean([partition.error(members) for members in partition.groups]))
    for price in PRICES:
        for _ in range(SWEEPS):
            if not partition.unlink(price * per_group):
                break
        seen.append(partition.measure())
    return sorted(p for p in set(seen) if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in seen))


def main() -> None:
    """Store and print a front per table and k."""
    fronts = {f"{dataset} k={k}": search(dataset, k) for dataset in DATASETS for k in K}
    rounded = {name: [[round(loss, 3), round(link, 4)] for loss, link in front] for name, front in fronts.items()}
    STORED.write_text(json.dumps(rounded, indent=1) + "\n")
    for name, front in rounded.items():
        print(name, "; ".join(f"IL {loss} DLD {link}" for loss, link in front))


if __name__ == "__main__":
    main()
