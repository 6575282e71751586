"""Tree leakage: what the trees of a node reveal of its records: thresholds, leaf sizes, labels.

Knows: the trees that the nodes of a federation send. Does: reads the split thresholds of numeric columns as values of
records. Judged by: the share of distinct thresholds that equal some record's raw value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.attacks.gradient_inversion import places_of
from fedanon.attacks.learning import Learner, labels_of, model_named
from fedanon.data import partition
from fedanon.data.schema import Numeric
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.encoding import Encoding
from fedanon.models.tree_validation import read_trees
from fedanon.models.trees import Tree
from fedanon.types import FeatureArray, IndexArray, TargetArray

#: feature and value
Threshold = tuple[int, float]

#: leaves with fewer people are small
FEW = 5


@ATTACKS.register("tree_leakage")
@dataclass(frozen=True, kw_only=True)
class TreeLeakage(Attack):
    """Share of the distinct split thresholds of numeric columns that equal some record's value, as float32.

    The trees are those that the nodes send, each trained on its own release. Baseline: the share of thresholds that
    would coincide if they were drawn from all values the schema declares for the column, none where these are not whole
    numbers. Details: the same share over all features, where 'has this category' is a split of one-hot values; the
    share of thresholds whose next whole number is some record's value, for a threshold between two whole numbers hides
    neither from someone who knows that there is nothing between; the share of leaves that one to four of the node's
    people reach; the share of leaves reached by one label only.
    """

    title = "Tree leakage"
    meaning = "Someone who reads the trees reads values of single records off their split thresholds."
    target = "model"

    rounds: int = parameter(20, help="rounds of training", at_least=1)
    nodes: int = parameter(10, help="nodes of the federation", at_least=1, aliases=("clients",))
    thresholds: Literal["between", "values"] = parameter(
        "between", help="as the federation's nodes send them, or where xgboost put them ('values')"
    )

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Train a federation on releases and read its trees."""
        if context.anonymizer is None:
            raise NotApplicableError("It needs the method, to make the releases of the nodes.")
        labels, encoding = labels_of(context.table), Encoding.from_schema(context.table.schema)
        numeric = _numeric_features(encoding)
        model = model_named("xgb", thresholds=self.thresholds)
        assert isinstance(model, BoostedTrees)
        learner = Learner(model=model, rounds=self.rounds, nodes=self.nodes)
        [sent] = learner.fit(learner.releases(context, context.table, "trees"), encoding, rng)
        trees = read_trees(sent.tobytes(), n_features=encoding.width, limits=model.model_limits()).trees
        raw = encoding.encode_table(context.table)
        details = _leaf_details(trees, raw, labels, partition.iid(context.table, self.nodes, context.rng("trees")))
        return judge_thresholds(trees, raw, numeric, details)


def _numeric_features(encoding: Encoding) -> dict[int, Numeric]:
    """Find the numeric columns among the features."""
    columns = zip(encoding.attributes, places_of(encoding), strict=True)
    found = {place.start: attribute for attribute, place in columns if isinstance(attribute, Numeric)}
    if not found:
        raise NotApplicableError("It needs a numeric quasi-identifier, whose values thresholds could repeat.")
    return found


def judge_thresholds(
    trees: list[Tree], raw: FeatureArray, numeric: Mapping[int, Numeric], details: dict[str, float]
) -> Finding:
    """Compare all distinct thresholds with the values of the same feature."""
    thresholds = distinct_thresholds(trees)
    same = np.array([value in raw[:, feature] for feature, value in thresholds], dtype=np.float64)
    chosen = np.array([feature in numeric for feature, _ in thresholds], dtype=bool)
    if not chosen.any():
        raise NotApplicableError("No tree splits a numeric column.")
    by_chance = {place: _chance(raw[:, place], attribute) for place, attribute in numeric.items()}
    asked = [threshold for threshold in thresholds if threshold[0] in numeric]
    details |= {
        "of_all_features": float(same.mean()),
        "thresholds_of_all_features": float(len(thresholds)),
        "rounded_up": _rounded_up(asked, raw, numeric),
    }
    return Finding.from_tries(same[chosen], float(np.mean([by_chance[place] for place, _ in asked])), details=details)


def distinct_thresholds(trees: list[Tree]) -> list[Threshold]:
    """List the pairs of feature and threshold, each once."""
    inner = [(tree, ~tree.leaves) for tree in trees]
    return sorted({pair for t, at in inner for pair in zip(t.feature[at].tolist(), t.value[at].tolist(), strict=True)})


def _chance(raw: FeatureArray, attribute: Numeric) -> float:
    """Compute the share of the declared values that some record has."""
    return len(np.unique(raw)) / (attribute.width + 1) if attribute.integer else 0.0


def _rounded_up(thresholds: list[Threshold], raw: FeatureArray, numeric: Mapping[int, Numeric]) -> float:
    """Compute the share of thresholds that, rounded up to a whole number where declared, are some record's value."""
    found = [
        _next_value(value, numeric[feature]) in _values(raw[:, feature], numeric[feature])
        for feature, value in thresholds
    ]
    return float(np.mean(found))


def _values(raw: FeatureArray, attribute: Numeric) -> NDArray[np.floating]:
    return np.rint(raw * attribute.width) if attribute.integer else raw


def _next_value(threshold: float, attribute: Numeric) -> float:
    # a whole number that float32 moved up a little is that number, not the next
    return float(np.ceil(threshold * attribute.width - 1e-3)) if attribute.integer else threshold


def _leaf_details(
    trees: list[Tree], raw: FeatureArray, labels: TargetArray, parts: list[IndexArray]
) -> dict[str, float]:
    """Summarize sizes and labels of the leaves, each node's trees applied to its own people."""
    leaves = [leaf_counts(tree, raw[rows], labels[rows]) for tree, rows in _owned(trees, parts)]
    counts = np.concatenate(leaves)
    sizes = counts.sum(axis=1)
    reached = sizes > 0
    return {
        "leaves_of_few": float(np.mean(sizes[reached] < FEW)),
        "leaves_of_one_label": float(np.mean((counts[reached] == 0).any(axis=1))),
        "median_leaf": float(np.median(sizes[reached])),
    }


def _owned(trees: list[Tree], parts: list[IndexArray]) -> list[tuple[Tree, IndexArray]]:
    """Pair every tree with the rows of its node: a round adds one tree per node, in order."""
    return [(tree, parts[i % len(parts)]) for i, tree in enumerate(trees)]


def leaf_counts(tree: Tree, features: FeatureArray, labels: TargetArray) -> IndexArray:
    """Count for every leaf of a tree how many rows of label 0 and of label 1 reach it."""
    at = np.zeros(len(features), dtype=np.int64)
    rows = np.arange(len(features))
    while len(rows):
        rows = rows[~tree.leaves[at[rows]]]
        node = at[rows]
        left = features[rows, tree.feature[node]] < tree.value[node]
        at[rows] = np.where(left, tree.left[node], tree.right[node])
    counts = np.zeros((len(tree), 2), dtype=np.int64)
    np.add.at(counts, (at, labels.astype(np.int64)), 1)
    return counts[tree.leaves]
