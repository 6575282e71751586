"""Gradient-boosted trees (xgboost): every node adds trees to one global model, by bagging or in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedanon.errors import UpdateRejectedError
from fedanon.fields import parameter
from fedanon.models import MODELS
from fedanon.models.base import INSTANCES, LocalState, Model, Parameters, TrainingData, Update, promises_something
from fedanon.models.outcome import BINARY, Outcome, softmax
from fedanon.models.tree_validation import ReceivedTrees, TreeLimits, TreeModel, read_trees
from fedanon.models.trees import BASE_SCORE, OBJECTIVES, Tree, digest_of, write_trees
from fedanon.types import AnyArray, FeatureArray, FloatArray, Rng, TargetArray

if TYPE_CHECKING:
    from xgboost import Booster, DMatrix

#: of a global model: far more than any run of ours, little enough to hold in memory
MAX_GLOBAL_TREES = 100_000
MAX_GLOBAL_BYTES = 512 * 2**20
#: longest JSON of one node, with room to spare
NODE_BYTES = 512
#: the golden section: between two numbers with few digits it gives one with many
SECTION = (5**0.5 - 1) / 2


@MODELS.register("xgb")
@dataclass(frozen=True, kw_only=True)
class BoostedTrees(Model):
    """Federated gradient boosting; the parameters are one uint8 array, the JSON of an xgboost model.

    The server sends trees of the global model: all of them, or those since the node's last round. The node returns its
    new trees only. It keeps the margin of each of its rows between rounds, so a round costs only the new trees. With
    draws it keeps one margin per instance of the records.

    Bagging: all nodes of a round add trees to the same global model, each scaled by its share of the examples
    (:meth:`fedanon.models.tree_validation.TreeModel.append`), so ``eta`` is the step of a round whatever their number.
    Cyclic: one node per round. ``max_step`` bounds the leaves of honest trees, so larger ones can be rejected.

    Of K > 2 classes every tree is K trees, one per class (softmax); a number is predicted by squared error on its place
    in the declared range, from the middle of it.
    """

    name = "xgb"
    aggregation = "trees"
    outcomes = frozenset({"binary", "multiclass", "regression"})

    instances: Literal["leaves", "draws"] = parameter("draws", help=INSTANCES)
    eta: float = parameter(0.1, help="learning rate of a round", at_least=1e-4, at_most=1.0)
    max_depth: int = parameter(5, help="depth of a tree", at_least=1, at_most=12)
    n_trees: int = parameter(1, help="new trees per node and round", at_least=1, at_most=100)
    l2: float = parameter(1.0, help="penalty on squared leaf weights", at_least=0.0)
    min_child_weight: float = parameter(1.0, help="minimum sum of Hessians in a leaf", at_least=0.0)
    subsample: float = parameter(1.0, help="share of the rows that a tree sees", at_least=0.01, at_most=1.0)
    colsample: float = parameter(0.3, help="share of the features that a level sees", at_least=0.01, at_most=1.0)
    max_step: float = parameter(2.0, help="largest leaf weight before the learning rate", at_least=0.01)
    thresholds: Literal["between", "values"] = parameter(
        "between", help="splits at values of rows ('values'), or beside them where the rows are anonymized ('between')"
    )
    threads: int = parameter(1, help="threads of xgboost", at_least=1)

    def initial(self, width: int) -> Parameters:
        """No trees."""
        return [self._written([], width)]

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """Count the trees that are new, then grow ``n_trees`` more."""
        if "xgb" not in state.values:
            state.values["xgb"] = self._rows_of(data)
        rows: ScoredRows = state.values["xgb"]
        rows.add(self._received(parameters, rows))
        head = self._head(rows, data.target)
        instance = data.instance(round_number)
        matrix = rows.matrices[instance]
        width = rows.width
        grown = self._trees_of(self._grow(matrix, rng, state), width)
        if self._moves_thresholds(data):
            grown = [between_values(tree, matrix, rows.smallest[instance]) for tree in grown]
        return Update([self._written([*head, *grown], width)], len(data.target))

    def predict_proba(
        self, parameters: Parameters, features: FeatureArray, *, state: LocalState | None = None
    ) -> FloatArray:
        """The logistic function of the sum of all trees' weights, the softmax of those of every class, or the sum."""
        kept = LocalState() if state is None else state
        if "xgb" not in kept.values:
            kept.values["xgb"] = ScoredRows([features], self.threads, outcome=self.outcome)
        rows: ScoredRows = kept.values["xgb"]
        rows.add(self._received(parameters, rows))
        margin = rows.matrices[0].get_base_margin().astype(np.float64)
        if self.outcome.kind == "regression":
            return margin
        if self.outcome.kind == "multiclass":
            return softmax(margin.reshape(-1, self.outcome.classes))
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * margin)))

    def update_limits(self) -> TreeLimits:
        """What an update of a node with these settings can hold."""
        nodes = 2 ** (self.max_depth + 1) - 1
        n_trees = self.n_trees * self.outcome.n_scores
        return TreeLimits(
            max_trees=n_trees,
            max_nodes=nodes,
            max_depth=self.max_depth,
            max_bytes=n_trees * (nodes * NODE_BYTES) + 4096,
            max_weight=self.eta * self.max_step * 1.0001,
        )

    def model_limits(self) -> TreeLimits:
        """What a global model can hold."""
        update = self.update_limits()
        return TreeLimits(
            min_trees=0,
            max_trees=MAX_GLOBAL_TREES,
            max_nodes=update.max_nodes,
            max_depth=update.max_depth,
            max_bytes=MAX_GLOBAL_BYTES,
            max_weight=update.max_weight,
        )

    def merge_trees(self, model: TreeModel, updates: Sequence[Sequence[Tree]], weights: Sequence[float]) -> None:
        """Add a round's trees to the global model, each node's scaled by its share of the examples."""
        model.append(updates, weights)

    def change_step(
        self,
        trained: Parameters,
        received: Parameters,
        change: Callable[[AnyArray], AnyArray],
        state: LocalState,
    ) -> Parameters:
        """The same trees with other leaf weights."""
        width = state.values["xgb"].width
        trees = self._trees_of(trained[0].tobytes(), width)
        changed = []
        for tree in trees:
            value = tree.value.copy()
            value[tree.leaves] = change(tree.value[tree.leaves])
            changed.append(replace(tree, value=value))
        return [self._written(changed, width)]

    def _written(self, trees: Sequence[Tree], width: int) -> AnyArray:
        return np.frombuffer(write_trees(trees, n_features=width, outcome=self.outcome), dtype=np.uint8)

    def _trees_of(self, update: bytes, width: int) -> list[Tree]:
        return read_trees(update, n_features=width, limits=self.update_limits(), outcome=self.outcome).trees

    def _head(self, rows: ScoredRows, target: TargetArray) -> list[Tree]:
        """Trees that come before those a round grows: none."""
        return []

    def _rows_of(self, data: TrainingData) -> ScoredRows:
        instances = [data.features(i) for i in range(data.n_instances)]
        return ScoredRows(instances, self.threads, data.target, outcome=self.outcome)

    def _received(self, parameters: Parameters, rows: ScoredRows) -> ReceivedTrees:
        data = parameters[0].tobytes()
        return _read(data, rows.width, self.model_limits(), self.outcome)

    def _moves_thresholds(self, data: TrainingData) -> bool:
        # moving the thresholds of raw rows would only disguise what they still reveal
        return self.thresholds == "between" and promises_something(data)

    def _grow(self, matrix: DMatrix, rng: Rng, state: LocalState) -> bytes:
        """New trees as xgboost writes them, sizes of leaves among them: not to be sent."""
        booster = self._booster(matrix, seed=int(rng.integers(2**31)))
        for i in range(self.n_trees):
            booster.update(matrix, i)
        return bytes(booster.save_raw("json"))

    def _booster(self, matrix: DMatrix, seed: int) -> Booster:
        from xgboost import Booster

        settings = {
            "objective": OBJECTIVES[self.outcome.kind],
            **({"num_class": self.outcome.classes} if self.outcome.kind == "multiclass" else {}),
            "base_score": BASE_SCORE,
            "tree_method": "hist",
            "eta": self.eta,
            "max_depth": self.max_depth,
            "lambda": self.l2,
            "min_child_weight": self.min_child_weight,
            "subsample": self.subsample,
            "colsample_bylevel": self.colsample,
            "max_delta_step": self.max_step,
            "nthread": self.threads,
            "seed": seed,
            "verbosity": 0,
        }
        return Booster(settings, [matrix])


class ScoredRows:
    """Rows with the margin that the trees counted so far give them; each instance of the rows is one matrix.

    The margins live in the matrices as xgboost's base margin, to which training and prediction add.
    """

    def __init__(
        self,
        instances: list[FeatureArray],
        threads: int,
        target: TargetArray | None = None,
        *,
        outcome: Outcome = BINARY,
    ) -> None:
        from xgboost import DMatrix

        self.width = instances[0].shape[1]
        self.outcome = outcome
        self.threads = threads
        self.matrices = [DMatrix(x, label=target, nthread=threads) for x in instances]
        self.smallest = [x.min(axis=0, initial=np.inf) for x in instances]
        self._forget()

    def _forget(self) -> None:
        self.n_trees, self.digest = 0, ""
        # classes begin alike, a number in the middle of its range
        start = BASE_SCORE if self.outcome.kind == "regression" else 0.0
        for matrix in self.matrices:
            self._set_margin(matrix, np.full(matrix.num_row() * self.outcome.n_scores, start, dtype=np.float32))

    def _set_margin(self, matrix: DMatrix, margin: AnyArray) -> None:
        shape = (-1, self.outcome.n_scores) if self.outcome.n_scores > 1 else (-1,)
        matrix.set_base_margin(margin.reshape(shape))

    def add(self, received: ReceivedTrees) -> None:
        """Count trees that follow those counted before; a model from its first tree on is counted from scratch."""
        if received.first_tree == 0:
            self._forget()
        elif (received.first_tree, received.before) != (self.n_trees, self.digest):
            raise UpdateRejectedError(
                f"The trees begin at {received.first_tree} of the global model and do not follow the {self.n_trees} "
                "known here: the whole model is needed."
            )
        if not received.trees:
            return
        booster = _loaded(received, self.width, self.threads, self.outcome)
        for matrix in self.matrices:
            self._set_margin(matrix, booster.predict(matrix, output_margin=True))
        self.n_trees += len(received.trees)
        self.digest = digest_of(received.trees, self.digest)


# in a simulation all nodes of a round receive the same bytes
@lru_cache(maxsize=2)
def _read(data: bytes, n_features: int, limits: TreeLimits, outcome: Outcome) -> ReceivedTrees:
    return read_trees(data, n_features=n_features, limits=limits, outcome=outcome)


@lru_cache(maxsize=2)
def _loaded(received: ReceivedTrees, n_features: int, threads: int, outcome: Outcome) -> Booster:
    from xgboost import Booster

    booster = Booster({"nthread": threads})
    booster.load_model(bytearray(write_trees(received.trees, n_features=n_features, outcome=outcome)))
    return booster


def between_values(tree: Tree, matrix: DMatrix, smallest: FeatureArray) -> Tree:
    r"""The tree with every threshold moved towards the next lower cut of xgboost's histogram.

    .. math:: t' = c + \frac{\sqrt 5 - 1}{2} (t - c)

    where :math:`c < t` are neighboring cuts. A feature with at most 256 values has them all as cuts, so no row changes
    sides; with more, a row between :math:`t'` and :math:`t` does.

    Parameters
    ----------
    tree : grown on the matrix.
    matrix : the rows; xgboost keeps its cuts there.
    smallest : smallest value of every feature, as xgboost puts its lowest cut far below.
    """
    ends, cuts = matrix.get_quantile_cut()
    inner = np.flatnonzero(~tree.leaves)
    value = tree.value.copy()
    for node, feature in zip(inner, tree.feature[inner], strict=True):
        own = cuts[ends[feature] : ends[feature + 1]]
        place = int(np.searchsorted(own, value[node]))
        value[node] = _between(max(float(own[place - 1]), float(smallest[feature])), float(value[node]))
    return replace(tree, value=value)


def _between(low: float, high: float) -> np.float32:
    # there is no float between two neighboring ones
    point = np.float32(low + SECTION * (high - low))
    return point if low < point <= high else np.float32(high)
