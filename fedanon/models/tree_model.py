"""TreeModel: the global model of boosted trees, which grows by every client's new trees in every round."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import ConfigError
from fedanon.models.tree_validation import TreeLimits, read_trees
from fedanon.models.trees import Tree, digest_of, write_trees


@dataclass
class TreeModel:
    """All trees in the order in which they were added.

    A client that keeps its margins needs the trees it has not seen only, so a round's message need not grow with the
    round number: ``to_bytes(first_tree=n)`` leaves out the first n. ``to_bytes()`` serves any client, also one that
    missed rounds or kept margins of a run that was resumed from an older checkpoint: it starts afresh.
    """

    n_features: int
    trees: list[Tree] = field(default_factory=list, repr=False)
    _digests: list[str] = field(default_factory=lambda: [""], repr=False)

    def __post_init__(self) -> None:
        given, self.trees = self.trees, []
        self.extend(given)

    def __len__(self) -> int:
        return len(self.trees)

    def append(self, updates: Sequence[Sequence[Tree]], weights: Sequence[float]) -> None:
        """Add the new trees of a round's clients.

        Each client's leaf weights are multiplied by its share of ``weights`` (its number of examples), so that a round
        moves the model by the mean of the clients' steps. Without that, as in Flower's bagging, ten clients with the
        learning rate .1 take one step of rate 1.0. A single client (cyclic training) has the share 1.
        """
        shares = np.asarray(weights, dtype=np.float64)
        if len(shares) != len(updates) or not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
            raise ConfigError("The weights must be finite, not negative and not all zero, one an update.")
        for trees, share in zip(updates, shares / shares.sum(), strict=True):
            self.extend(tree.scaled(share) for tree in trees)

    def extend(self, trees: Iterable[Tree]) -> None:
        """Add trees as they are."""
        for tree in trees:
            self.trees.append(tree)
            self._digests.append(digest_of([tree], self._digests[-1]))

    def to_bytes(self, first_tree: int = 0) -> bytes:
        """The trees from ``first_tree`` on, as JSON that says where they begin."""
        rest, before = self.trees[first_tree:], self._digests[first_tree]
        return write_trees(rest, n_features=self.n_features, first_tree=first_tree, before=before)

    def to_array(self, first_tree: int = 0) -> NDArray[np.uint8]:
        """The bytes as an array: the only parameter of the model on the wire."""
        return np.frombuffer(self.to_bytes(first_tree), dtype=np.uint8)

    @classmethod
    def from_bytes(cls, data: bytes, *, n_features: int, limits: TreeLimits) -> TreeModel:
        """Read a whole model, such as a checkpoint."""
        return cls(n_features, read_trees(data, n_features=n_features, limits=limits).trees)


def combine(
    model: bytes, updates: Sequence[bytes], weights: Sequence[float], *, n_features: int, limits: TreeLimits
) -> bytes:
    """The model with the trees of the updates added: what :class:`TreeModel` does, for a caller that keeps bytes."""
    grown = TreeModel.from_bytes(model, n_features=n_features, limits=limits)
    grown.append([read_trees(u, n_features=n_features, limits=limits).trees for u in updates], weights)
    return grown.to_bytes()
