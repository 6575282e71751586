"""Tree reconstruction: the rows of a node, rebuilt from the trees it sends (TimberStrike, PoPETs 2025).

Knows: all trees of a federation, which node sent which, how many rows it has, and the raw rows of one other node.
Does: rebuilds as many rows as the victim has, tree by tree (:mod:`fedanon.attacks.row_rebuilding`). Judged by: the
share of the victim's raw cells that are right once rebuilt and true rows are matched as well as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, RecordChances
from fedanon.attacks.context import AttackContext
from fedanon.attacks.gradient_inversion import Decoder
from fedanon.attacks.learning import labels_of, model_named
from fedanon.attacks.row_rebuilding import Atoms, Rebuilt, Solver, rebuild_rows
from fedanon.attacks.tree_sums import LeafSums, Wire, read_sums
from fedanon.data import partition
from fedanon.data.schema import Numeric
from fedanon.data.spans import cell_bounds
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.learning.rounds import train_in_process
from fedanon.learning.strategies import STRATEGIES
from fedanon.models.base import LocalState, Parameters, TrainingData, Update
from fedanon.models.boosted_trees import BoostedTrees
from fedanon.models.encoding import Encoding
from fedanon.models.tree_validation import TreeModel
from fedanon.models.trees import Tree
from fedanon.release.release import Release
from fedanon.types import BoolArray, FeatureArray, FloatArray, Rng, TargetArray

#: the node whose rows are rebuilt, and the one whose rows the attacker has
VICTIM, COMPROMISED = 0, 2
#: a number is right within this many standard deviations of its column, as in the paper
CLOSE = 0.319
#: leaf weights are not clipped in Flower's bagging
NO_CLIP = 1e3


@ATTACKS.register("tree_reconstruction")
@dataclass(frozen=True, kw_only=True)
class TreeReconstruction(Attack):
    """Share of a node's raw cells that are right in rows rebuilt from its trees, after the best matching of rows.

    Trees are trained on the nodes' releases as in Flower's bagging. A category is right if equal, a number within .319
    standard deviations. Rows that nobody rebuilt match well, too, if there are many of them; so the baseline is the
    larger of two shares, both matched in the same way: of rows drawn from the marginals of the table, and of the
    attacker's own raw rows. Details: both, the same share of the rows the node's release shows, and the share of true
    rows that are right in every cell.
    """

    title = "Tree reconstruction"
    meaning = "Someone who collects the trees of a node rebuilds the rows behind them."
    target = "model"

    wire: Wire = parameter(
        "document",
        help="what is sent: xgboost's whole document as in Flower's bagging, the same without sum_hessian, or "
        "leaf_weights alone, as fedanon does",
    )
    solver: Solver = parameter(
        "entropy", help="rows go to leaves by the likeliest shares (fast), or by an integer program (milp)"
    )
    nodes: int = parameter(5, help="nodes of the federation", at_least=2, aliases=("clients",))
    rounds: int = parameter(50, help="rounds of training", at_least=2)
    depth: int = parameter(6, help="depth of a tree", at_least=1, at_most=10)
    people: int = parameter(5000, help="at most this many rows of the table take part", at_least=20)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Train on the nodes' releases, rebuild the rows of the first node, and match them."""
        if context.anonymizer is None:
            raise NotApplicableError("It needs the method, to make the releases of the nodes.")
        chosen = np.sort(context.rng("people").permutation(len(context.table))[: self.people])
        table = context.table.select_rows(chosen)
        labels, encoding = labels_of(table), Encoding.from_schema(table.schema)
        raw = encoding.encode_table(table)
        parts = partition.iid(table, self.nodes, context.rng("trees"))
        releases = [
            context.make_release(table.select_rows(rows), f"reconstruction, node {i}") for i, rows in enumerate(parts)
        ]
        overheard = overhear(flower_model(self.depth), releases, encoding, self.wire, self.rounds, rng)
        own = parts[min(COMPROMISED, self.nodes - 1)]
        rebuilt = overheard.rebuild(encoding, raw[own], labels[own], self.solver, rng)
        judge = Judge(Decoder(encoding, raw), raw[parts[VICTIM]])
        right, guessed, details = judge_all(judge, rebuilt, raw[own], releases[VICTIM], rng)
        # whose rows are rebuilt best is told by rebuilding them once more
        again = judge.right(overheard.rebuild(encoding, raw[own], labels[own], self.solver, rng).features)
        ranks, chances, guesses = (cells.mean(axis=1) for cells in (again, right, guessed))
        records = RecordChances(chosen[parts[VICTIM]], ranks, chances, guesses, np.arange(len(right)))
        clusters = np.repeat(np.arange(len(right)), right.shape[1])
        return Finding.from_tries(
            right.ravel().astype(float), float(guessed.mean()), clusters=clusters, details=details, records=records
        )


# ---- Listening -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OverheardTrees(BoostedTrees):
    """Trees that are combined as Flower's bagging does, without scaling; all that xgboost wrote is kept."""

    forced: bool = parameter(False, help="thresholds between values also where rows are raw")

    def train(
        self, parameters: Parameters, data: TrainingData, *, round_number: int, rng: Rng, state: LocalState
    ) -> Update:
        """As a node trains; what it sends is kept."""
        update = super().train(parameters, data, round_number=round_number, rng=rng, state=state)
        state.values.setdefault("sent", []).append(update.parameters[0].tobytes())
        return update

    def merge_trees(self, model: TreeModel, updates: Sequence[Sequence[Tree]], weights: Sequence[float]) -> None:
        """Add the trees of all nodes as they are."""
        for trees in updates:
            model.extend(trees)

    def _moves_thresholds(self, data: TrainingData) -> bool:
        return self.forced or super()._moves_thresholds(data)

    def _grow(self, matrix, rng: Rng, state: LocalState) -> bytes:  # type: ignore[no-untyped-def]
        document = super()._grow(matrix, rng, state)
        state.values.setdefault("documents", []).append(document)
        return document


def flower_model(depth: int, *, eta: float = 0.3, forced: bool = False, draws: bool = True) -> OverheardTrees:
    """The settings of the paper: no clipping, all features, thresholds as they are unless ``forced``."""
    model_named("xgb")
    return OverheardTrees(
        eta=eta,
        max_depth=depth,
        colsample=1.0,
        max_step=NO_CLIP,
        forced=forced,
        instances="draws" if draws else "leaves",
    )


@dataclass(frozen=True, eq=False)
class Overheard:
    """All that an attacker has who sees the trees of every node.

    Parameters
    ----------
    parameters : the global model after the last round.
    sums : what the victim's tree of every round says.
    n_rows : of the victim, sent with every update.
    n_nodes : of the federation.
    """

    parameters: Parameters
    sums: list[LeafSums]
    n_rows: int
    n_nodes: int

    def rebuild(self, encoding: Encoding, own: FeatureArray, labels: TargetArray, solver: Solver, rng: Rng) -> Rebuilt:
        """Rebuild the rows of the victim with the help of rows of the attacker's own."""
        from xgboost import Booster, DMatrix

        booster = Booster({"nthread": 1})
        booster.load_model(bytearray(self.parameters[0].tobytes()))

        def margins(rows: FeatureArray, number: int) -> FloatArray:
            before = (0, number * self.n_nodes)
            return np.asarray(booster.predict(DMatrix(rows), output_margin=True, iteration_range=before), dtype=float)

        atoms = Atoms(encoding, [one.tree for one in self.sums], own, labels.astype(np.int64))
        return rebuild_rows(self.sums, atoms, self.n_rows, margins, solver=solver, rng=rng)


def overhear(
    model: OverheardTrees, releases: Sequence[Release], encoding: Encoding, wire: Wire, rounds: int, rng: Rng
) -> Overheard:
    """Train a federation on releases and listen to its first node."""
    data = [model.training_data(release, encoding, int(rng.integers(2**63))) for release in releases]
    states = [LocalState() for _ in data]
    strategy = STRATEGIES["fedavg"]()
    parameters = train_in_process(model, data, encoding.width, strategy, rounds=rounds, rng=rng, states=states)
    kept = states[VICTIM].values
    sums = kept.get("sums") or [
        read_sums(document, model._trees_of(sent, encoding.width)[0], wire, eta=model.eta, l2=model.l2)
        for document, sent in zip(kept["documents"], kept["sent"], strict=True)
    ]
    return Overheard(parameters, sums, len(data[VICTIM].target), len(data))


# ---- Judging -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Judge:
    """Compares rows with the true ones of a node after an optimal (Hungarian) matching.

    Parameters
    ----------
    decoder : reads values off features.
    truth : features of the true rows.
    """

    decoder: Decoder
    truth: FeatureArray

    @cached_property
    def _values(self) -> FloatArray:
        return self.decoder.values(self.truth)

    @cached_property
    def _tolerance(self) -> FloatArray:
        numeric = np.zeros(self._values.shape[1], dtype=bool)
        numeric[[column for column, _ in self.decoder.numeric]] = True
        # equal numbers may differ in the last bits
        return np.where(numeric, CLOSE * self._values.std(axis=0), 0.0) + 1e-9

    def right(self, rows: FeatureArray) -> BoolArray:
        """Which cells of the true rows are right in the rows matched with them; a row without partner is wrong."""
        from scipy.optimize import linear_sum_assignment

        guesses = self.decoder.values(rows)
        equal = np.zeros((len(self._values), len(guesses)), dtype=np.int16)
        for mine, theirs, tolerance in zip(self._values.T, guesses.T, self._tolerance, strict=True):
            equal += np.abs(mine[:, None] - theirs[None, :]) <= tolerance
        true, found = linear_sum_assignment(equal, maximize=True)
        right = np.zeros(self._values.shape, dtype=bool)
        right[true] = np.abs(self._values[true] - guesses[found]) <= self._tolerance
        return right

    def marginals(self, rng: Rng) -> FeatureArray:
        """As many rows as there are true ones, every column drawn by itself from the whole table."""
        raw, rows = self.decoder.raw, np.empty_like(self.truth)
        for place in self.decoder.places:
            rows[:, place] = raw[rng.integers(len(raw), size=len(rows)), place]
        return rows


def judge_all(
    judge: Judge, rebuilt: Rebuilt, own: FeatureArray, release: Release, rng: Rng
) -> tuple[BoolArray, BoolArray, dict[str, float]]:
    """Judge the rebuilt rows, two ways to guess, and what the victim's release gives the same attacker.

    Returns which cells are right as rebuilt and by the better guess, and the rates of all.
    Of a release the best of three readings counts: the middle of every cell, a value drawn from it, or the values of
    the attacker's own rows that fit its cells.
    """
    right, n_rows = judge.right(rebuilt.features), len(judge.truth)
    repeated = own[rng.choice(len(own), n_rows, replace=len(own) < n_rows)]
    encoding = judge.decoder.encoding
    readings = encoding.encode_release(release), encoding.draw_release(release, rng)
    shown = [judge.right(rows) for rows in (*readings, fit_own_rows(judge.decoder, release, own, readings[1], rng))]
    rivals = {
        "marginals": judge.right(judge.marginals(rng)),
        "own_rows": judge.right(repeated),
        "release": max(shown, key=lambda cells: int(cells.sum())),
    }
    details = {f"rate_of_{name}": float(cells.mean()) for name, cells in rivals.items()}
    details |= {"whole_rows": float(right.all(axis=1).mean())}
    details |= {f"whole_rows_of_{name}": float(cells.all(axis=1).mean()) for name, cells in rivals.items()}
    guessed = max(rivals["marginals"], rivals["own_rows"], key=lambda cells: int(cells.sum()))
    return right, guessed, details


def fit_own_rows(decoder: Decoder, release: Release, own: FeatureArray, drawn: FeatureArray, rng: Rng) -> FeatureArray:
    """For every published row the own row that fits most of its cells; values that do not fit are those drawn."""
    places = decoder.places
    labels = release.groups.labels[~release.suppressed]
    weights = decoder.encoding.encode_release(release)
    fits = []
    for attribute, place in zip(decoder.encoding.attributes, places, strict=True):
        if not isinstance(attribute, Numeric):
            fits.append(weights[:, place] @ own[:, place].T > 0)
            continue
        low, high = (ends[labels] for ends in cell_bounds(release.cells[attribute.name], attribute))
        value = own[:, place.start] * attribute.width + attribute.low
        slack = 1e-5 * attribute.width  # of float32
        fits.append((value >= low[:, None] - slack) & (value <= high[:, None] + slack))
    common = np.sum(fits, axis=0) + rng.random((len(labels), len(own)))
    best, everyone = common.argmax(axis=1), np.arange(len(labels))
    rows: FeatureArray = own[best]
    for fit, place in zip(fits, places, strict=True):
        outside = ~fit[everyone, best]
        rows[outside, place] = drawn[outside, place]
    return rows
