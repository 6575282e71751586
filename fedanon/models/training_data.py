"""Training data: the published rows of a node as features, constant or drawn anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells, Intervals, Numbers
from fedanon.data.hierarchy import MISSING
from fedanon.data.release import Release
from fedanon.models.columns import Features
from fedanon.models.encoding import Encoding
from fedanon.models.target import Labels, target


def all_exact(release: Release) -> bool:
    """Whether every published cell is one value, so that drawing from it changes nothing."""
    return all(_exact(cells) for cells in release.cells.values())


def _exact(cells: Cells) -> bool:
    if isinstance(cells, Intervals):
        return bool((cells.low == cells.high).all())
    if isinstance(cells, Numbers):
        return bool(np.isfinite(cells.values).all())
    # the leaf that means missing is no value
    missing = cells.hierarchy.codes.get(MISSING, -1)
    return bool(((cells.nodes < cells.hierarchy.n_leaves) & (cells.nodes != missing)).all())


@dataclass(frozen=True, eq=False)
class LeafWeights:
    """Every round the same features: middles of intervals, nodes spread over their leaves."""

    release: Release
    encoding: Encoding
    n_instances: int = field(default=1, init=False)

    @cached_property
    def target(self) -> Labels:
        """0 or 1 for every published row."""
        return target(self.release, self.release.schema)

    def instance(self, round_number: int) -> int:
        """Always 0: there is one set of features."""
        return 0

    def features(self, round_number: int) -> Features:
        """The features, whatever the round."""
        return self._features

    @cached_property
    def _features(self) -> Features:
        return self.encoding.release(self.release)


@dataclass(frozen=True, eq=False)
class Draws:
    """Every record instantiated several times: a value inside each interval, a leaf below each node.

    The rounds take the instances in turn, so that a model may keep what it has worked out for each of them.

    Parameters
    ----------
    release : the published rows.
    encoding : how they become features.
    seed : of the draws; instance i depends on (seed, i) alone.
    n_instances : how many times the records are drawn.
    """

    release: Release
    encoding: Encoding
    seed: int
    n_instances: int = 10

    @cached_property
    def target(self) -> Labels:
        """0 or 1 for every published row."""
        return target(self.release, self.release.schema)

    def instance(self, round_number: int) -> int:
        """Which instance a round uses."""
        return round_number % self.n_instances

    def features(self, round_number: int) -> NDArray[np.float32]:
        """The features of the round's instance."""
        rng = np.random.default_rng((self.seed, self.instance(round_number)))
        return self.encoding.draw(self.release, rng)


def promises_something(data: object) -> bool:
    """Whether the rows are of a release that claims a privacy model."""
    return isinstance(data, LeafWeights | Draws) and data.release.claim is not None
