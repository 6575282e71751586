"""CASTLE: clusters grow as records come, and are published when the time of one of their records is up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fedanon.data.coded_column import CodedColumn
from fedanon.fields import parameter
from fedanon.streams import RECORD_METHODS
from fedanon.streams.base import DROPPED, Arrivals, Departures, RecordEngine, RecordMethod
from fedanon.streams.space import make_space
from fedanon.types import FloatArray


@RECORD_METHODS.register("castle")
@dataclass(frozen=True, kw_only=True)
class Castle(RecordMethod):
    """Cao, Carminati, Ferrari & Tan 2011, "CASTLE: Continuously Anonymizing Data Streams".

    A record joins the cluster that it enlarges least, if that then loses no more than tau, the mean loss of the ``mu``
    clusters published last; else it starts a cluster, of which there are at most ``beta``. When the time of a record is
    up, its cluster is published if it has k people (split where it has 2k), else the record goes under a kept box, is
    dropped as an outlier if most clusters are larger than its own, or its cluster is merged with its nearest. Boxes
    that lose less than tau are kept for use again.
    """

    name = "castle"
    keeps_requirements = False

    beta: int = parameter(50, help="most clusters that are not published yet", at_least=1)
    mu: int = parameter(100, help="published clusters whose mean loss is tau", at_least=1)

    def start(self, columns: Sequence[CodedColumn], *, seed: int = 0) -> RecordEngine:
        """An engine without records; where clusters are equal, and in splits, it draws at random."""
        return CastleEngine(self, columns, seed)


@dataclass
class Cluster:
    """Records that wait together: numbers in order of arrival, and their box."""

    low: FloatArray
    high: FloatArray
    numbers: list[int] = field(default_factory=list)


class CastleEngine(RecordEngine):
    """Clusters that wait, boxes that are kept, and the losses of late."""

    def __init__(self, method: Castle, columns: Sequence[CodedColumn], seed: int) -> None:
        self._method, self.space = method, make_space(columns)
        self._rng = np.random.default_rng(seed)
        self._clusters: list[Cluster] = []
        self._records: dict[int, tuple[FloatArray, int, float, Cluster]] = {}  # point, person, moment, cluster
        self._boxes: list[tuple[int, float, FloatArray, FloatArray]] = []  # class, loss, bounds
        self._losses: list[float] = []
        self._taken = self._made = 0
        self._notes: list[tuple[int, int, int]] = []
        self._new: dict[int, tuple[FloatArray, FloatArray]] = {}

    @property
    def waiting(self) -> int:
        """Number of records that wait."""
        return len(self._records)

    def kept_names(self) -> list[int]:
        """Numbers of the classes whose boxes may be used again."""
        return [name for name, *_ in self._boxes]

    def feed(self, arrivals: Arrivals) -> Departures:
        """Take in records; see :class:`RecordEngine`."""
        seconds = self._method.clock == "seconds"
        for point, person, moment in zip(arrivals.points, arrivals.persons, arrivals.moments, strict=True):
            if seconds:
                self._expire_until(float(moment) - self._method.patience)
                while self.waiting >= self._method.buffer:
                    self._expire(next(iter(self._records)))
            cluster = self._select(point)
            cluster.numbers.append(self._taken)
            cluster.low, cluster.high = np.minimum(cluster.low, point), np.maximum(cluster.high, point)
            self._records[self._taken] = point, int(person), float(moment), cluster
            if not seconds:
                while self._records and (first := next(iter(self._records))) + self._method.patience <= self._taken:
                    self._expire(first)
            self._taken += 1
        return self._outcome()

    def advance(self, now: float) -> Departures:
        """Let time pass; see :class:`RecordEngine`."""
        if self._method.clock == "seconds":
            self._expire_until(now - self._method.patience)
        return self._outcome()

    def finish(self) -> Departures:
        """Publish or drop all that wait; see :class:`RecordEngine`."""
        self._expire_until(np.inf)
        return self._outcome()

    def _outcome(self) -> Departures:
        number, name, cause = np.array(self._notes, dtype=np.int64).reshape(-1, 3).T
        outcome = Departures(number, name, cause, self._new)
        self._notes, self._new = [], {}
        return outcome

    def _expire_until(self, moment: float) -> None:
        while self._records and self._records[first := next(iter(self._records))][2] <= moment:
            self._expire(first)

    # ---- which cluster ----------------------------------------------------------------------------

    def _loss(self, low: FloatArray, high: FloatArray) -> float:
        from fedanon.streams._buffer import box_loss

        return float(box_loss(self.space, low, high))

    def _growths(self, clusters: Sequence[Cluster], low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By how much each cluster's loss grows if it takes in a box, and the loss it then has."""
        after = np.array([self._loss(np.minimum(c.low, low), np.maximum(c.high, high)) for c in clusters])
        before = np.array([self._loss(c.low, c.high) for c in clusters])
        return after - before, after

    @property
    def _tau(self) -> float:
        return float(np.mean(self._losses)) if self._losses else 0.0

    def _select(self, point: FloatArray) -> Cluster:
        """The paper's best_selection."""
        if self._clusters:
            growth, after = self._growths(self._clusters, point, point)
            least = np.flatnonzero(growth <= growth.min() + 1e-12)
            good = least[after[least] <= self._tau + 1e-12]
            if len(good) or len(self._clusters) >= self._method.beta:
                return self._clusters[int(self._rng.choice(good if len(good) else least))]
        cluster = Cluster(point.copy(), point.copy())
        self._clusters.append(cluster)
        return cluster

    # ---- when the time of a record is up ----------------------------------------------------------

    def _people(self, cluster: Cluster) -> dict[int, int]:
        """One record of every person of a cluster; a record of nobody is a person of its own."""
        return {(p if (p := self._records[n][1]) >= 0 else -2 - n): n for n in cluster.numbers}

    def _expire(self, number: int) -> None:
        """The paper's delay_constraint."""
        point, _, _, cluster = self._records[number]
        if len(self._people(cluster)) >= self._method.k:
            self._publish(cluster, number)
            return
        holding = [b for b in self._boxes if (b[2] <= point).all() and (point <= b[3]).all()]
        if holding:
            self._note(number, holding[int(self._rng.integers(len(holding)))][0], number)
            return
        larger = sum(len(other.numbers) > len(cluster.numbers) for other in self._clusters)
        united = {who for each in self._clusters for who in self._people(each)}
        if larger * 2 > len(self._clusters) or len(united) < self._method.k:
            self._note(number, DROPPED, number)
            return
        self._publish(self._merge(cluster), number)

    def _merge(self, cluster: Cluster) -> Cluster:
        """The paper's merge_clusters: the nearest until there are k people."""
        while len(self._people(cluster)) < self._method.k:
            others = [c for c in self._clusters if c is not cluster]
            growth, _ = self._growths(others, cluster.low, cluster.high)
            other = others[int(np.argmin(growth))]
            self._clusters = [c for c in self._clusters if c is not other]
            cluster.low, cluster.high = np.minimum(cluster.low, other.low), np.maximum(cluster.high, other.high)
            cluster.numbers = sorted([*cluster.numbers, *other.numbers])
            for number in other.numbers:
                self._records[number] = (*self._records[number][:3], cluster)
        return cluster

    def _publish(self, cluster: Cluster, cause: int) -> None:
        """The paper's output_cluster; a class that loses too much is not published, and the record is dropped."""
        from fedanon.streams._buffer import widen

        parts = self._split(cluster) if len(self._people(cluster)) >= 2 * self._method.k else [cluster]
        for part in parts:
            loss = self._loss(part.low, part.high)
            if loss > self._method.max_loss * self.space.width + 1e-9:
                if cause in part.numbers:
                    self._note(cause, DROPPED, cause)
                continue
            self._losses = [*self._losses, loss][-self._method.mu :]
            widen(self.space, part.low, part.high)
            self._new[self._made] = part.low, part.high
            if loss < self._tau:
                self._boxes = [*self._boxes, (self._made, loss, part.low, part.high)][-self._method.boxes :]
            for number in list(part.numbers):
                self._note(number, self._made, cause)
            self._made += 1

    def _split(self, cluster: Cluster) -> list[Cluster]:
        """The paper's split: k people each, nearest to one drawn at random; the rest to the nearest part."""
        people = self._people(cluster)
        parts: list[Cluster] = []
        while len(people) >= self._method.k:
            names = list(people)
            seed = self._records[people[names[int(self._rng.integers(len(names)))]]][0]
            points = np.array([self._records[people[name]][0] for name in names])
            away = np.array([self._loss(np.minimum(seed, p), np.maximum(seed, p)) for p in points])
            chosen = np.argsort(away, kind="stable")[: self._method.k]
            numbers = [people.pop(names[int(i)]) for i in chosen]
            parts.append(Cluster(points[chosen].min(axis=0), points[chosen].max(axis=0), numbers))
        placed = {number for part in parts for number in part.numbers}
        for number in [n for n in cluster.numbers if n not in placed]:
            point = self._records[number][0]
            part = parts[int(np.argmin(self._growths(parts, point, point)[0]))]
            part.low, part.high = np.minimum(part.low, point), np.maximum(part.high, point)
            part.numbers.append(number)
        return parts

    def _note(self, number: int, name: int, cause: int) -> None:
        """Publish or drop a record, and take it out of its cluster."""
        self._notes.append((number, name, cause))
        cluster = self._records.pop(number)[3]
        cluster.numbers.remove(number)
        if not cluster.numbers:
            self._clusters = [c for c in self._clusters if c is not cluster]

    # ---- state ------------------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """All that decides what is published next; see :class:`RecordEngine`."""
        return {
            "records": [[n, p.tolist(), who, moment] for n, (p, who, moment, _) in self._records.items()],
            "clusters": [[c.low.tolist(), c.high.tolist(), c.numbers] for c in self._clusters],
            "boxes": [[name, loss, low.tolist(), high.tolist()] for name, loss, low, high in self._boxes],
            "losses": self._losses,
            "counts": [self._taken, self._made],
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; see :class:`RecordEngine`."""
        self._clusters = [Cluster(np.array(low), np.array(high), list(held)) for low, high, held in state["clusters"]]
        of = {number: cluster for cluster in self._clusters for number in cluster.numbers}
        self._records = {n: (np.array(point), who, moment, of[n]) for n, point, who, moment in state["records"]}
        self._boxes = [(name, loss, np.array(low), np.array(high)) for name, loss, low, high in state["boxes"]]
        self._losses, (self._taken, self._made) = list(state["losses"]), state["counts"]
        self._rng.bit_generator.state = state["rng"]
