"""Suspicion: which nodes send updates unlike the others', round after round. It names them; it does not judge.

Only what the server has is used: the updates of a round as vectors (:meth:`Aggregator.directions`) and those it had to
refuse. A node may differ because it is malicious, because it is broken, or because its patients differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fedanon.types import FloatArray

#: fewer updates have no majority to be compared with
MIN_UPDATES = 4
#: an update whose score is larger is unlike the others
UNLIKE = 4.0
#: share of a node's rounds in which its updates must be unlike the others', or refused
MIN_SHARE = 0.5
#: rounds of a node before it can be named
MIN_ROUNDS = 3
#: a larger score says no more
MAX_SCORE = 99.0
#: makes the median of absolute deviations the standard deviation of a normal distribution
NORMAL = 1.4826
#: least spread of scores, times their median: nodes that are nearly equal are not told apart
MIN_SPREAD = 0.1
#: least spread of a coordinate, times the median of all; and most a coordinate says, in spreads
MIN_COORDINATE, MAX_COORDINATE = 0.3, 10.0


def unlikeness(vectors: FloatArray) -> FloatArray:
    r"""How far each vector lies from the middle of all, beside the others: as a whole, and in most coordinates.

    .. math:: \min\Big(z\big(|v_i - c|\big),\; z\big(\tfrac{1}{p} \sum_j \min(|v_{ij} - c_j| / s_j, 10)\big)\Big)

    c is the coordinate-wise median, :math:`s_j` the spread of a coordinate by its median absolute deviation, and z the
    robust z-score (Iglewicz and Hoaglin 1993). The length alone is ruled by the few coordinates in which honest nodes
    differ most; the coordinates alone say little of how much it matters.
    """
    away = np.abs(vectors - np.median(vectors, axis=0))
    spread = NORMAL * np.median(away, axis=0)
    spread = np.maximum(spread, MIN_COORDINATE * np.median(spread))
    at_most = np.where(away > 0.0, MAX_COORDINATE, 0.0)  # where all others are equal
    coordinates = np.minimum(np.divide(away, spread, out=at_most, where=spread > 0.0), MAX_COORDINATE)
    return np.minimum(_robust_z(np.linalg.norm(away, axis=1)), _robust_z(coordinates.mean(axis=1)))


def _robust_z(values: FloatArray) -> FloatArray:
    """Distances to the median in robust standard deviations, at most the largest score."""
    middle = float(np.median(values))
    spread = max(NORMAL * float(np.median(np.abs(values - middle))), MIN_SPREAD * middle)
    if spread == 0.0:  # at least half of the vectors are equal
        return np.where(values > 0.0, MAX_SCORE, 0.0)
    return np.minimum((values - middle) / spread, MAX_SCORE)


@dataclass
class NodeEvidence:
    """What was seen of one node: the scores of its updates, and how many were refused."""

    scores: list[float] = field(default_factory=list)
    refused: int = 0

    @property
    def rounds(self) -> int:
        """Rounds in which it sent something."""
        return len(self.scores) + self.refused

    @property
    def flagged(self) -> int:
        """Rounds in which its update was refused or unlike the others."""
        return self.refused + sum(score > UNLIKE for score in self.scores)

    @property
    def is_suspect(self) -> bool:
        """Whether there is enough of it."""
        return self.rounds >= MIN_ROUNDS and self.flagged >= MIN_SHARE * self.rounds

    def report(self) -> dict[str, Any]:
        """For people and programs; the score is the median over its rounds."""
        score = round(float(np.median(self.scores)), 2) if self.scores else None
        return {"rounds": self.rounds, "rounds_flagged": self.flagged, "refused": self.refused, "score": score}


class Suspicion:
    """Evidence on all nodes of a run."""

    def __init__(self) -> None:
        self._evidence: dict[int, NodeEvidence] = {}

    @classmethod
    def restored(cls, kept: Mapping[str, Mapping[str, Any]]) -> Suspicion:
        """From what a checkpoint kept."""
        suspicion = cls()
        suspicion._evidence = {int(node): NodeEvidence(**evidence) for node, evidence in kept.items()}
        return suspicion

    def to_keep(self) -> dict[str, dict[str, Any]]:
        """For a checkpoint."""
        return {str(node): asdict(evidence) for node, evidence in self._evidence.items()}

    def look(self, updates: Mapping[int, FloatArray], refused: Iterable[int] = ()) -> list[int]:
        """Take in a round: updates as vectors by node, and whose were refused; return those who are new suspects."""
        before = set(self.nodes)
        for node in refused:
            self._evidence.setdefault(node, NodeEvidence()).refused += 1
        if len(updates) >= MIN_UPDATES:
            for node, score in zip(updates, unlikeness(np.array(list(updates.values()))), strict=True):
                self._evidence.setdefault(node, NodeEvidence()).scores.append(float(score))
        return [node for node in self.nodes if node not in before]

    @property
    def nodes(self) -> list[int]:
        """The suspects, in order."""
        return sorted(node for node, evidence in self._evidence.items() if evidence.is_suspect)

    def suspects(self) -> list[dict[str, Any]]:
        """The suspects with the evidence, for people and programs."""
        return [{"node": node, **self._evidence[node].report()} for node in self.nodes]
