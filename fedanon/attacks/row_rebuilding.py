"""Rows rebuilt from the trees of one node, tree by tree (after TimberStrike, 2025).

A node's first tree says how many rows of each label every leaf holds. These become rows of which a set of possible
values per column is known. Every later tree is one more constraint: its leaves say what the gradients and Hessians of
the rows in them add up to. Rows are assigned to leaves accordingly, and what the leaf allows narrows what is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks.tree_sums import LeafSums, first_counts, thresholds_of
from fedanon.data.schema import Numeric
from fedanon.models.encoding import Encoding
from fedanon.models.trees import Tree
from fedanon.types import BoolArray, FeatureArray, FloatArray, IndexArray, Rng

#: how rows are assigned to leaves: the likeliest shares that keep all sums, or whole rows by an integer program
Solver = Literal["entropy", "milp"]
#: chance of an assignment that contradicts what is known of a row: sums are only nearly right
UNLIKELY = 1e-9
#: how far a sum may be off for every row that could be in the leaf, since gradients are estimated
ROW_ERROR = 0.02
#: longest search for one tree by the integer program
MILP_SECONDS = 20.0
NEWTON_STEPS = 30
#: how much the attacker's like rows count beside what columns alone say, where a row may be in a next tree
OWN = 0.9
#: logarithm of how much likelier an own row gets with every leaf it shares with a rebuilt one
SHARPNESS = 1.5
#: so unlikely that rows of the other label are never taken
OTHER_LABEL = -1e6


@dataclass(frozen=True, eq=False)
class PossibleAtoms:
    """For every row or leaf, which atoms of each column are possible.

    The atoms of a categorical column are its categories, those of a numeric one the pieces between thresholds. One
    matrix of booleans per column.
    """

    masks: tuple[BoolArray, ...]

    def of(self, rows: IndexArray) -> PossibleAtoms:
        """The boxes of some rows, in this order."""
        return PossibleAtoms(tuple(mask[rows] for mask in self.masks))

    def meet(self, other: PossibleAtoms) -> PossibleAtoms:
        """What both allow; a column they contradict each other in keeps what was known before."""
        met = [(mine, mine & yours) for mine, yours in zip(self.masks, other.masks, strict=True)]
        return PossibleAtoms(tuple(np.where(both.any(axis=1, keepdims=True), both, mine) for mine, both in met))


class Atoms:
    """The columns in atoms, and how common each atom is among the rows the attacker knows.

    Parameters
    ----------
    encoding : how columns become features.
    trees : all trees the attacker has of the node, whose thresholds end the atoms.
    known : features of the attacker's own rows.
    labels : of the same rows.
    """

    def __init__(self, encoding: Encoding, trees: Sequence[Tree], known: FeatureArray, labels: IndexArray) -> None:
        from fedanon.attacks.gradient_inversion import places_of

        self.known, self.labels = known, labels
        self.places = places_of(encoding)
        self.numeric = [isinstance(attribute, Numeric) for attribute in encoding.attributes]
        self.width = encoding.width
        self.edges = [
            thresholds_of(trees, place.start) if is_number else np.empty(0)
            for place, is_number in zip(self.places, self.numeric, strict=True)
        ]
        atoms = [self.atoms_of(known, column) for column in range(len(self.places))]
        self.sizes = [
            len(edges) + 1 if is_number else place.stop - place.start
            for place, is_number, edges in zip(self.places, self.numeric, self.edges, strict=True)
        ]
        self.weights = [
            np.stack([_shares(found[labels == label], self._prior(column)) for label in (0, 1)])
            for column, found in enumerate(atoms)
        ]
        self._known = [
            [np.sort(known[labels == label, place.start].astype(np.float64)) for label in (0, 1)] if is_number else []
            for place, is_number in zip(self.places, self.numeric, strict=True)
        ]

    def atoms_of(self, rows: FeatureArray, column: int) -> IndexArray:
        """The atom of a column that each row is in."""
        place = self.places[column]
        if self.numeric[column]:
            return np.searchsorted(self.edges[column], rows[:, place.start].astype(np.float64), side="right")
        return np.asarray(rows[:, place].argmax(axis=1))

    def _prior(self, column: int) -> FloatArray:
        """What is thought of an atom before any row is seen: its length, or one category as good as another."""
        if not self.numeric[column]:
            return np.full(self.sizes[column], 1 / self.sizes[column])
        ends = np.clip(np.concatenate([[0.0], self.edges[column], [1.0]]), 0.0, 1.0)
        return np.asarray(np.maximum(np.diff(ends), 1e-6))

    def everything(self, n_rows: int) -> PossibleAtoms:
        """Rows of which nothing is known."""
        return PossibleAtoms(tuple(np.ones((n_rows, size), dtype=bool) for size in self.sizes))

    def leaves(self, tree: Tree) -> PossibleAtoms:
        """What the path to every leaf of a tree allows."""
        low, high = np.full((len(tree), self.width), -np.inf), np.full((len(tree), self.width), np.inf)
        for node in np.flatnonzero(~tree.leaves):
            feature, threshold = tree.feature[node], tree.value[node]
            for child in (tree.left[node], tree.right[node]):
                low[child], high[child] = low[node], high[node]
            high[tree.left[node], feature] = min(threshold, high[node, feature])
            low[tree.right[node], feature] = max(threshold, low[node, feature])
        low, high = low[tree.leaves], high[tree.leaves]
        return PossibleAtoms(tuple(self._allowed(low, high, column) for column in range(len(self.places))))

    def _allowed(self, low: FloatArray, high: FloatArray, column: int) -> BoolArray:
        place, edges = self.places[column], self.edges[column]
        if self.numeric[column]:
            atom = np.arange(self.sizes[column])
            first = np.searchsorted(edges, low[:, place.start], side="right")
            last = np.searchsorted(edges, high[:, place.start], side="left")
            return np.asarray((atom >= first[:, None]) & (atom <= last[:, None]))
        has, lacks = low[:, place] > 0, np.isfinite(high[:, place])
        allowed = np.where(has.any(axis=1, keepdims=True), has, ~lacks)
        return np.where(allowed.any(axis=1, keepdims=True), allowed, True)

    def chances(self, rows: PossibleAtoms, labels: IndexArray, leaves: PossibleAtoms) -> FloatArray:
        """Chance that a row is in each leaf for what is known of it, columns taken as independent; rows x leaves."""
        found = np.ones((len(labels), len(leaves.masks[0])))
        for mine, allowed, weights in zip(rows.masks, leaves.masks, self.weights, strict=True):
            if allowed.all():
                continue
            mass = mine * weights[labels]
            found *= (mass @ allowed.T) / mass.sum(axis=1, keepdims=True)
        return found

    def possible(self, rows: PossibleAtoms, leaves: PossibleAtoms) -> BoolArray:
        """Which rows can be in which leaves."""
        found = np.ones((len(rows.masks[0]), len(leaves.masks[0])), dtype=bool)
        for mine, allowed in zip(rows.masks, leaves.masks, strict=True):
            if not allowed.all():
                found &= (mine.astype(np.float32) @ allowed.T.astype(np.float32)) > 0
        return found

    def draw(self, rows: PossibleAtoms, labels: IndexArray, rng: Rng) -> FeatureArray:
        """A row inside each box, columns drawn one by one, from the attacker's own values where they reach into it."""
        features = np.zeros((len(labels), self.width), dtype=np.float32)
        for column, (mask, place) in enumerate(zip(rows.masks, self.places, strict=True)):
            atom = _drawn(mask * self.weights[column][labels], rng)
            if self.numeric[column]:
                features[:, place.start] = self._number(column, atom, labels, rng.random(len(labels)))
            else:
                features[np.arange(len(labels)), place.start + atom] = 1.0
        return features

    def _number(self, column: int, atom: IndexArray, labels: IndexArray, quantile: FloatArray) -> FloatArray:
        """A number in an atom: one of the attacker's own there, else by its length."""
        ends = np.clip(np.concatenate([[0.0], self.edges[column], [1.0]]), 0.0, 1.0)
        low, high = ends[atom], ends[atom + 1]
        number = low + quantile * (high - low)
        for label, known in enumerate(self._known[column]):
            first, last = np.searchsorted(known, low), np.searchsorted(known, high)
            place = first + np.floor(quantile * (last - first)).astype(np.int64)
            at_hand = (labels == label) & (last > first)
            number[at_hand] = known[place[at_hand]]
        # float32 must not move it across the threshold above
        below = np.nextafter(high.astype(np.float32), np.float32(-1))
        return np.asarray(np.where(number >= high, below, number))


def _shares(found: IndexArray, prior: FloatArray) -> FloatArray:
    counts = np.bincount(found, minlength=len(prior)) + prior / prior.sum()
    return np.asarray(counts / counts.sum())


def _drawn(mass: NDArray[np.floating], rng: Rng) -> IndexArray:
    total = np.cumsum(mass, axis=1)
    at = rng.random(len(mass)) * total[:, -1]
    return np.asarray(np.minimum((total <= at[:, None]).sum(axis=1), mass.shape[1] - 1))


# ---- Tree by tree --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """The rows as the attacker thinks they are."""

    features: FeatureArray
    labels: IndexArray


def rebuild_rows(
    sums: Sequence[LeafSums],
    atoms: Atoms,
    n_rows: int,
    margins: Callable[[FeatureArray, int], FloatArray],
    *,
    solver: Solver,
    rng: Rng,
) -> Rebuilt:
    """Rows that agree with all trees of a node.

    Parameters
    ----------
    sums : of every tree of the node, in order.
    atoms : of the columns.
    n_rows : of the node.
    margins : what the global model gave rows before the tree of this number.
    solver : how rows are assigned to leaves.
    rng : of all draws.
    """
    solve = assign_by_entropy if solver == "entropy" else assign_by_integers
    boxes, labels, leaf = _first_rows(sums[0], atoms, n_rows)
    likeness = Likeness(atoms, labels)
    likeness.count(sums[0].tree, leaf)
    points = likeness.complete(boxes, rng)
    for number, tree_sums in enumerate(sums[1:], 1):
        probability = 1 / (1 + np.exp(-margins(points, number)))
        leaves = atoms.leaves(tree_sums.tree)
        prior = OWN * likeness.chances(tree_sums.tree) + (1 - OWN) * atoms.chances(boxes, labels, leaves) + UNLIKELY
        prior *= np.where(atoms.possible(boxes, leaves), 1.0, UNLIKELY)
        constraints = _constraints(tree_sums, probability - labels, probability * (1 - probability))
        shares = solve(prior / prior.sum(axis=1, keepdims=True), constraints)
        leaf = _whole_rows(shares, tree_sums.tree, labels, probability, rng)
        boxes = boxes.meet(leaves.of(leaf))
        likeness.count(tree_sums.tree, leaf)
        points = likeness.complete(boxes, rng)
    return Rebuilt(points, labels)


def _first_rows(sums: LeafSums, atoms: Atoms, n_rows: int) -> tuple[PossibleAtoms, IndexArray, IndexArray]:
    leaves = atoms.leaves(sums.tree)
    nobody = atoms.everything(2)
    expected = atoms.chances(nobody, np.array([0, 1]), leaves).mean(axis=0)
    counts = first_counts(sums, n_rows, expected)
    leaf = np.repeat(np.repeat(np.arange(len(counts)), 2), counts.ravel())
    labels = np.repeat(np.tile([0, 1], len(counts)), counts.ravel())
    return leaves.of(leaf), labels, leaf


class Likeness:
    """In how many trees each rebuilt row shares the leaf with each row of the attacker's own: whom it may resemble.

    Parameters
    ----------
    atoms : of the columns, with the attacker's rows.
    labels : of the rebuilt rows, which resemble own rows of the same label only.
    """

    def __init__(self, atoms: Atoms, labels: IndexArray) -> None:
        self.atoms, self.labels = atoms, labels
        self._shared = np.where(labels[:, None] == atoms.labels, 0.0, OTHER_LABEL).astype(np.float32)
        self._weights = self._shared

    def count(self, tree: Tree, leaf: IndexArray) -> None:
        """Count one more tree, of which the leaf of every rebuilt row is thought to be known."""
        self._shared += leaf[:, None] == leaves_of(tree, self.atoms.known)
        weights = np.exp(SHARPNESS * (self._shared - self._shared.max(axis=1, keepdims=True)))
        self._weights = weights / weights.sum(axis=1, keepdims=True)

    def chances(self, tree: Tree) -> FloatArray:
        """Chance that a row is in each leaf of a next tree, by where the rows are that it resembles."""
        own = np.zeros((len(self.atoms.known), int(tree.leaves.sum())), dtype=np.float32)
        own[np.arange(len(own)), leaves_of(tree, self.atoms.known)] = 1.0
        return (self._weights @ own).astype(np.float64)

    def complete(self, boxes: PossibleAtoms, rng: Rng) -> FeatureArray:
        """A row inside each box: the values of an own row that it resembles, where the box allows them."""
        points = self.atoms.known[_drawn(self._weights, rng)]
        drawn, everyone = self.atoms.draw(boxes, self.labels, rng), np.arange(len(self.labels))
        for column, (mask, place) in enumerate(zip(boxes.masks, self.atoms.places, strict=True)):
            outside = ~mask[everyone, self.atoms.atoms_of(points, column)]
            points[outside, place] = drawn[outside, place]
        return points


def leaves_of(tree: Tree, rows: FeatureArray) -> IndexArray:
    """The number of the leaf each row is in."""
    at = np.zeros(len(rows), dtype=np.int64)
    number = np.cumsum(tree.leaves) - 1
    moving = np.arange(len(rows))
    while len(moving := moving[~tree.leaves[at[moving]]]):
        node = at[moving]
        left = rows[moving, tree.feature[node]] < tree.value[node]
        at[moving] = np.where(left, tree.left[node], tree.right[node])
    return number[at]


#: what the rows of a leaf add up to: the summand of every row in every leaf, and the sum of every leaf
Constraint = tuple[FloatArray, FloatArray]


def _constraints(sums: LeafSums, gradients: FloatArray, hessians: FloatArray) -> list[Constraint]:
    """Sums of gradients and of Hessians; where the latter are not known, of both in the relation of the leaf weight."""
    n_leaves = len(sums.steps)
    if sums.hessians is None or not np.isfinite(sums.hessians).all():
        return [(gradients[:, None] + sums.steps * hessians[:, None], -sums.l2 * sums.steps)]
    shape = (len(gradients), n_leaves)
    return [
        (np.broadcast_to(gradients[:, None], shape), sums.gradients),
        (np.broadcast_to(hessians[:, None], shape), sums.hessians),
    ]


def assign_by_entropy(prior: FloatArray, constraints: Sequence[Constraint]) -> FloatArray:
    r"""Shares of rows in leaves that are nearest to the prior among those that keep the sums.

    :math:`P_{il} \propto q_{il} \exp(\sum_c a_{cl} f_{cil})`; the multipliers minimize a convex function by Newton's
    method, with a penalty that lets a sum be off by about ``ROW_ERROR`` per row.
    """
    n_leaves = prior.shape[1]
    parts = np.stack([summand for summand, _ in constraints])
    wanted = np.concatenate([total for _, total in constraints])
    log_prior = np.log(prior)
    penalty = ROW_ERROR**2 * np.tile(prior.sum(axis=0) + 1, len(constraints))

    def shares_and_loss(multipliers: FloatArray) -> tuple[FloatArray, float]:
        scores = log_prior + np.einsum("cil,cl->il", parts, multipliers.reshape(-1, n_leaves))
        top = scores.max(axis=1, keepdims=True)
        shares = np.exp(scores - top)
        total = shares.sum(axis=1, keepdims=True)
        loss = float((np.log(total) + top).sum() - wanted @ multipliers + 0.5 * penalty @ multipliers**2)
        return shares / total, loss

    multipliers = np.zeros(len(wanted))
    shares, loss = shares_and_loss(multipliers)
    for _ in range(NEWTON_STEPS):
        weighted = (shares * parts).transpose(1, 0, 2).reshape(len(prior), -1)
        slope = weighted.sum(axis=0) - wanted + penalty * multipliers
        if np.abs(slope).max() < 1e-4:
            break
        curve = np.diag(penalty + 1e-9) - weighted.T @ weighted
        for i, first in enumerate(parts):
            for j, second in enumerate(parts):
                own = np.arange(n_leaves)
                curve[i * n_leaves + own, j * n_leaves + own] += (shares * first * second).sum(axis=0)
        step = np.linalg.solve(curve, slope)
        size = 1.0
        while size > 1e-3:
            tried, tried_loss = shares_and_loss(multipliers - size * step)
            if tried_loss <= loss - 1e-4 * size * float(slope @ step):
                break
            size /= 2
        else:
            break
        multipliers, shares, loss = multipliers - size * step, tried, tried_loss
    return shares


def assign_by_integers(prior: FloatArray, constraints: Sequence[Constraint]) -> FloatArray:
    """Whole rows in leaves with the least total error of all sums, by HiGHS; nothing impossible is assigned.

    Where time ends without an answer, the shares by entropy are returned.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, hstack, vstack

    row, leaf = np.nonzero(prior > 10 * UNLIKELY)
    n_pairs, (n_rows, n_leaves) = len(row), prior.shape
    n_sums = n_leaves * len(constraints)
    once = coo_array((np.ones(n_pairs), (row, np.arange(n_pairs))), shape=(n_rows, n_pairs))
    sums = vstack(
        [
            coo_array((summand[row, leaf], (leaf, np.arange(n_pairs))), shape=(n_leaves, n_pairs))
            for summand, _ in constraints
        ]
    )
    errors = coo_array((np.ones(n_sums), (np.arange(n_sums), np.arange(n_sums))))
    none = coo_array((n_rows, 2 * n_sums))
    wanted = np.concatenate([total for _, total in constraints])
    # the prior decides among assignments that are equally good
    cost = np.concatenate([-1e-4 * np.log(prior[row, leaf]) / n_rows, np.ones(2 * n_sums)])
    solved = milp(
        cost,
        integrality=np.concatenate([np.ones(n_pairs), np.zeros(2 * n_sums)]),
        bounds=Bounds(0, np.concatenate([np.ones(n_pairs), np.full(2 * n_sums, np.inf)])),
        constraints=[
            LinearConstraint(hstack([once, none]).tocsr(), 1, 1),
            LinearConstraint(hstack([sums, errors, -errors]).tocsr(), wanted, wanted),
        ],
        options={"time_limit": MILP_SECONDS, "mip_rel_gap": 0.02},
    )
    if solved.x is None:
        return assign_by_entropy(prior, constraints)
    shares = np.zeros_like(prior)
    shares[row, leaf] = np.clip(solved.x[:n_pairs], 0, 1)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _whole_rows(shares: FloatArray, tree: Tree, labels: IndexArray, probability: FloatArray, rng: Rng) -> IndexArray:
    """The leaf of each row, so that every branch gets as many rows of like label and prediction as the shares say.

    From the root down rows are divided by systematic sampling: of n rows with shares p, the sum of p goes left.
    """
    number = np.full(len(tree), -1)
    number[tree.leaves] = np.arange(int(tree.leaves.sum()))
    below = np.zeros((len(tree), shares.shape[1]), dtype=bool)
    below[tree.leaves, number[tree.leaves]] = True
    inner = np.flatnonzero(~tree.leaves)
    for node in inner[::-1]:
        below[node] = below[tree.left[node]] | below[tree.right[node]]
    order = np.lexsort((rng.random(len(labels)), np.round(probability, 3), labels))
    at = np.zeros(len(labels), dtype=np.int64)
    for node in inner:
        rows = order[at[order] == node]
        left, right = (shares[rows][:, below[child[node]]].sum(axis=1) for child in (tree.left, tree.right))
        share = left / np.maximum(left + right, np.finfo(float).tiny)
        passed = np.concatenate([[0.0], np.cumsum(share)]) + rng.random()
        goes_left = np.diff(np.floor(passed)) > 0
        at[rows] = np.where(goes_left, tree.left[node], tree.right[node])
    return number[at]
