"""Post-randomisation of one categorical column: every record's category is drawn anew from the row of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fedanon.anonymizers.perturbative.transitions import draw
from fedanon.data.cells import Cells, Nodes
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import MISSING, FloatArray, IntArray
from fedanon.errors import ConfigError

Rng = np.random.Generator


class Transition(NamedTuple):
    """Probabilities between nodes of a taxonomy: row i is where ``nodes[i]`` may go."""

    nodes: IntArray
    matrix: FloatArray


#: from the nodes that occur, and their shares, to the transition
MakeTransition = Callable[[IntArray, FloatArray], Transition]


def post_randomize(cells: Cells, strata: Groups, make: MakeTransition, rng: Rng) -> Nodes:
    """The column drawn anew, stratum by stratum; missing values and suppressed cells stay what they are."""
    assert isinstance(cells, Nodes)
    nodes = cells.nodes.copy()
    fixed = (nodes == cells.hierarchy.root) | (nodes == cells.hierarchy.codes.get(MISSING, -1))
    for stratum in range(strata.count):
        rows = np.flatnonzero((strata.labels == stratum) & ~fixed)
        if rows.size:
            nodes[rows] = _drawn(nodes[rows], make, rng)
    return Nodes(nodes, cells.hierarchy)


def _drawn(nodes: IntArray, make: MakeTransition, rng: Rng) -> IntArray:
    present, counts = np.unique(nodes, return_counts=True)
    transition = make(present, counts / len(nodes))
    state = {node: i for i, node in enumerate(transition.nodes.tolist())}
    absent = sum(node not in state for node in present.tolist())
    if absent:
        raise ConfigError(f"The transition matrix lacks {absent} categories that the column has.")
    states = np.array([state[node] for node in nodes.tolist()], dtype=np.int32)
    return transition.nodes[draw(states, transition.matrix, rng)]
