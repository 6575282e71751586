r"""Suspicion: which nodes send updates unlike the others', round after round. It names them; it does not judge.

Only what the server has is used: the updates of a round as vectors (:meth:`Aggregator.directions`), the rows each node
declared, and whose updates it had to refuse. A node may differ because it is malicious, because it is broken, or
because its patients differ.

**The rule.** In a round with at least :data:`MIN_UPDATES` updates each has a distance to the middle of all. The closest
seven of ten, as many as the strategy ``robust`` takes for honest, show how much honest nodes differ: by the factor
between the nearest and the farthest of them. An update is unlike the others if it lies beyond the farthest of them by
more than that factor to the power of :data:`UNLIKE`: the ratio of a gap to a range of Dixon (1950), of logarithms and
for several outliers (:func:`unlikeness` measures distances in more than one way; all have to agree). An update that no
honest training yields is refused, and counts as one that is unlike the others. A node is a suspect if this is so in at
least half of its rounds, three or more.

**The bound on false names.** If at most a share p of rounds have an honest node that is unlike the others, at most 2p
of the runs whose nodes answer every round name an honest one at their end: half of a run's rounds would have to be such
rounds (Markov's inequality). Rounds need not be independent, and are not: a hospital has the same patients in all of
them, so that more rounds are no more evidence. p follows from no theory, since honest nodes may differ in any way; it
was measured, and with it the rate of false names (``experiments/benchmarks/suspicion.py``,
docs/explanation/malicious_nodes.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fedanon.types import BoolArray, FloatArray

#: fewer updates do not show how much honest ones differ
MIN_UPDATES = 9
#: share of the updates that may be false, as in the strategy ``robust``
MALICIOUS_SHARE = 0.3
#: an update whose score is larger is unlike the others
UNLIKE = 1.2
#: a node with so many rows may go farther by the root of two
FEW_ROWS = 100
#: share of a node's rounds in which its updates must be unlike the others', or refused
MIN_SHARE = 0.5
#: rounds of a node before it can be named
MIN_ROUNDS = 3
#: a larger score says no more
MAX_SCORE = 99.0
#: least and most the distances of the closest differ, as logarithms: nodes that are nearly equal are not told apart,
#: and one in the very middle, at a distance of zero, does not make the range infinite
MIN_RANGE, MAX_RANGE = 0.35, float(np.log(100.0))
#: makes the median of absolute deviations the standard deviation of a normal distribution
NORMAL = 1.4826
#: least spread of a coordinate, times the median of all; and most a coordinate says, in spreads
MIN_COORDINATE, MAX_COORDINATE = 0.3, 10.0


def unlikeness(vectors: FloatArray, rows: FloatArray, too_long: BoolArray | None = None) -> FloatArray:
    r"""How far each vector lies beyond the closest seven of ten, in times the range of these: the least of four scores.

    Distances to the coordinate-wise median c are measured as a whole and in most coordinates,

    .. math:: |v_i - c| \quad\text{and}\quad \tfrac{1}{p} \sum_j \min(|v_{ij} - c_j| / s_j, 10)

    where :math:`s_j` is the spread of a coordinate by its median absolute deviation: the length alone is ruled by the
    few coordinates in which honest nodes differ most, the coordinates alone say little of how much it matters. Both are
    taken as they are and times the root of a node's rows n: distances shrink with that root where nodes differ by
    chance, and do not where their patients do.

    Of a step too long for the server to take both are measured times :math:`\sqrt{n / (n + 100)}`, since few rows are
    an excuse for a long step and many are not, and half the score in coordinates is enough.

    Parameters
    ----------
    vectors : one per node.
    rows : what each node was trained on.
    too_long : the steps that are too long.
    """
    away = np.abs(vectors - np.median(vectors, axis=0))
    spread = NORMAL * np.median(away, axis=0)
    spread = np.maximum(spread, MIN_COORDINATE * np.median(spread))
    at_most = np.where(away > 0.0, MAX_COORDINATE, 0.0)  # where all others are equal
    coordinates = np.minimum(np.divide(away, spread, out=at_most, where=spread > 0.0), MAX_COORDINATE).mean(axis=1)
    lengths = np.linalg.norm(away, axis=1)
    scores = [_beyond(distances * weights) for distances in (lengths, coordinates) for weights in (1.0, np.sqrt(rows))]
    least: FloatArray = np.min(scores, axis=0)
    if too_long is None:
        return least
    excuse = np.sqrt(rows / (rows + FEW_ROWS))
    excused = np.minimum(_beyond(lengths * excuse), 2 * _beyond(coordinates * excuse))
    return np.asarray(np.where(too_long, excused, least))


def _beyond(distances: FloatArray) -> FloatArray:
    """Logarithms of distances over the farthest of the closest, in times the range of these."""
    closest = np.sort(distances)[: len(distances) - int(MALICIOUS_SHARE * len(distances))]
    if closest[-1] == 0.0:
        return np.where(distances > 0.0, MAX_SCORE, 0.0)
    logarithms = np.log(np.maximum(distances / closest[-1], np.exp(-MAX_RANGE)))
    return np.asarray(np.minimum(logarithms / max(-float(logarithms.min()), MIN_RANGE), MAX_SCORE))


@dataclass
class NodeEvidence:
    """What was seen of one node: its rounds, the scores of its updates, and how many were refused."""

    rounds: int = 0
    scores: list[float] = field(default_factory=list)
    refused: int = 0

    @classmethod
    def restored(cls, kept: Mapping[str, Any]) -> NodeEvidence:
        """From what a checkpoint kept; older versions kept no rounds, and scores of another rule."""
        return cls(**kept) if "rounds" in kept else cls()

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
        suspicion._evidence = {int(node): NodeEvidence.restored(evidence) for node, evidence in kept.items()}
        return suspicion

    def to_keep(self) -> dict[str, dict[str, Any]]:
        """For a checkpoint."""
        return {str(node): asdict(evidence) for node, evidence in self._evidence.items()}

    def look(
        self,
        updates: Mapping[int, FloatArray],
        rows: Mapping[int, int],
        *,
        too_long: Collection[int] = (),
        refused: Collection[int] = (),
    ) -> list[int]:
        """Take in a round and return those who are new suspects.

        Parameters
        ----------
        updates : the sound ones as vectors by node; none where they may not be compared.
        rows : what each node whose update is sound declared.
        too_long : those whose steps are sound, and too long for the server to take.
        refused : those whose updates no honest training yields.
        """
        before = set(self.nodes)
        for node in (*rows, *refused):
            self._evidence.setdefault(node, NodeEvidence()).rounds += 1
        for node in refused:
            self._evidence[node].refused += 1
        if len(updates) >= MIN_UPDATES:
            declared, long = np.array([rows[node] for node in updates]), np.isin(list(updates), list(too_long))
            scores = unlikeness(np.array(list(updates.values())), declared, long)
            for node, score in zip(updates, scores.tolist(), strict=True):
                self._evidence[node].scores.append(score)
        return [node for node in self.nodes if node not in before]

    @property
    def nodes(self) -> list[int]:
        """The suspects, in order."""
        return sorted(node for node, evidence in self._evidence.items() if evidence.is_suspect)

    def suspects(self) -> list[dict[str, Any]]:
        """The suspects with the evidence, for people and programs."""
        return [{"node": node, **self._evidence[node].report()} for node in self.nodes]
