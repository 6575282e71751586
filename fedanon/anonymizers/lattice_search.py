"""The best node of a generalisation lattice: one level for every column, the least loss that a rule allows.

A node's loss without suppression is a sum of what its columns lose, known at once and never above its true loss. Nodes
are tried in the order of this bound until it reaches the best loss found, so that the answer is exact. Where the rule
is monotone, what is refused refuses all finer nodes: as in Flash (Kohlmayer, Prasser et al. 2012) the boundary is found
by bisection along chains, and whole parts of the lattice are never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray

Node = tuple[int, ...]
#: the loss of a node, or None if the rule refuses it
Judgement = Callable[[Node], float | None]
OPEN, ALLOWED, REFUSED = 0, 1, 2


@dataclass
class LatticeSearch:
    """A search over all combinations of levels.

    Parameters
    ----------
    bounds : for every column, what its levels lose at least; the parts of a node's bound add up.
    judge : the true loss of a node, not below its bound; None where it is not allowed.
    monotone : whether what refuses a node refuses every finer one.
    """

    bounds: Sequence[FloatArray]
    judge: Judgement
    monotone: bool
    judged: int = 0
    best: Node | None = None
    least: float = np.inf
    _state: NDArray[np.int8] = field(init=False)

    def __post_init__(self) -> None:
        self._state = np.full([len(bound) for bound in self.bounds], OPEN, dtype=np.int8)

    def run(self) -> Node | None:
        """The node that loses least; None if all are refused."""
        bound = np.sum(np.meshgrid(*self.bounds, indexing="ij"), axis=0)
        order = np.argsort(bound, axis=None, kind="stable")
        for position in order:
            node = tuple(int(level) for level in np.unravel_index(position, bound.shape))
            if bound[node] >= self.least:
                break
            if self._state[node] == OPEN:
                self._bisect(node)
        return self.best

    def _bisect(self, node: Node) -> None:
        """Judge ``node``, or nodes on a chain above it until one shows that it is refused."""
        chain = self._chain(node) if self.monotone else [node]
        last = len(chain) - 1
        while self._state[node] == OPEN:
            # a node that is allowed says nothing of finer ones: look lower, in the end at the node itself
            last //= 2
            self._judge(chain[last])

    def _chain(self, node: Node) -> list[Node]:
        """From a node to the coarsest, one level at a time, where the bound grows least first."""
        chain, levels = [node], list(node)
        while True:
            steps = [
                (bound[level + 1] - bound[level], column)
                for column, (bound, level) in enumerate(zip(self.bounds, levels, strict=True))
                if level + 1 < len(bound)
            ]
            if not steps:
                return chain
            levels[min(steps)[1]] += 1
            chain.append(tuple(levels))

    def _judge(self, node: Node) -> None:
        if self._state[node] != OPEN:
            return
        self.judged += 1
        loss = self.judge(node)
        if loss is None:
            finer = tuple(slice(0, level + 1) for level in node) if self.monotone else node
            self._state[finer] = REFUSED
            return
        self._state[node] = ALLOWED
        if loss < self.least:
            self.best, self.least = node, loss
