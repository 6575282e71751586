"""Rows rebuilt from trees: what documents reveal, how rows are assigned, and how rebuilt rows are judged."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fedanon.anonymizers import Identity, Mondrian
from fedanon.attacks.context import AttackContext
from fedanon.attacks.gradient_inversion import Batch, Decoder
from fedanon.attacks.row_rebuilding import assign_by_entropy, assign_by_integers, leaves_of
from fedanon.attacks.tree_reconstruction import Judge, TreeReconstruction, flower_model, overhear
from fedanon.attacks.tree_sums import first_counts, read_sums
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.learning.rounds import train_in_process
from fedanon.learning.strategies import STRATEGIES
from fedanon.models.base import LocalState
from fedanon.models.encoding import Encoding
from fedanon.models.target import binary_target
from fedanon.types import FeatureArray, TargetArray

pytest.importorskip("xgboost")
WIRES = ("document", "no_sum_hessian", "leaf_weights")
MODEL = flower_model(4)


@pytest.fixture(scope="module")
def people() -> Table:
    return load("adult").select_rows(np.arange(600))


@pytest.fixture(scope="module")
def trained(people: Table) -> tuple[FeatureArray, TargetArray, list[LocalState]]:
    """Features, labels, and what two nodes sent in three rounds of Flower's bagging on raw rows."""
    encoding = Encoding.from_schema(people.schema)
    rows, labels = encoding.encode_table(people), binary_target(people, people.schema)
    data, states = [Batch(rows[:300], labels[:300]), Batch(rows[300:], labels[300:])], [LocalState(), LocalState()]
    rng = np.random.default_rng(0)
    train_in_process(MODEL, data, rows.shape[1], STRATEGIES["fedavg"](), rounds=3, rng=rng, states=states)
    return rows, labels, states


def sums_of(state: LocalState, width: int, wire: str, number: int = 0):  # type: ignore[no-untyped-def]
    tree = MODEL._trees_of(state.values["sent"][number], width)[0]
    return read_sums(state.values["documents"][number], tree, wire, eta=MODEL.eta, l2=MODEL.l2)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", range(3))
def test_sum_hessian_follows_from_what_is_left(trained, number) -> None:  # type: ignore[no-untyped-def]
    """A document without sum_hessian gives it away all the same."""
    rows, _, states = trained
    full, without = (sums_of(states[0], rows.shape[1], wire, number) for wire in WIRES[:2])
    np.testing.assert_allclose(without.hessians, full.hessians, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("wire", WIRES[:2])
def test_the_first_tree_gives_exact_counts(trained, wire) -> None:  # type: ignore[no-untyped-def]
    from fedanon.attacks.tree_leakage import leaf_counts

    rows, labels, states = trained
    sums = sums_of(states[0], rows.shape[1], wire)
    true = leaf_counts(sums.tree, rows[:300], labels[:300])
    share = np.full(len(true), 1 / len(true))
    np.testing.assert_array_equal(first_counts(sums, 300, share), true)


def test_leaf_weights_alone_give_counts_if_sizes_are_about_known(trained) -> None:  # type: ignore[no-untyped-def]
    from fedanon.attacks.tree_leakage import leaf_counts

    rows, labels, states = trained
    sums = sums_of(states[0], rows.shape[1], "leaf_weights")
    true = leaf_counts(sums.tree, rows[:300], labels[:300])
    found = first_counts(sums, 300, true.sum(axis=1) / 300)
    np.testing.assert_array_equal(found, true)
    assert found.sum() == 300


def test_bagging_is_flowers(trained) -> None:  # type: ignore[no-untyped-def]
    """The global model holds the trees of all nodes as they are, as Flower's aggregation of the same documents does."""
    flower = pytest.importorskip("flwr.server.strategy.fedxgb_bagging")
    rows, _, states = trained
    first, second = (state.values["documents"][0] for state in states)
    theirs = json.loads(flower.aggregate(first, second))["learner"]["gradient_booster"]["model"]["trees"]
    ours = [MODEL._trees_of(state.values["sent"][0], rows.shape[1])[0] for state in states]
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.value, np.array(other["split_conditions"]), rtol=1e-6)


@pytest.mark.parametrize("assign", [assign_by_entropy, assign_by_integers])
def test_assignments_keep_the_sums(assign) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    summand, leaf = rng.normal(size=40), rng.integers(3, size=40)
    wanted = np.bincount(leaf, weights=summand, minlength=3)
    counted = np.bincount(leaf, minlength=3).astype(float)
    wide = np.broadcast_to(summand[:, None], (40, 3))
    prior = np.full((40, 3), 1 / 3)
    shares = assign(prior, [(wide, wanted), (np.ones((40, 3)), counted)])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose((shares * wide).sum(axis=0), wanted, atol=0.1)
    np.testing.assert_allclose(shares.sum(axis=0), counted, atol=0.1)


def test_judge_matches_in_any_order_and_counts_missing_rows(people: Table) -> None:
    encoding = Encoding.from_schema(people.schema)
    rows = encoding.encode_table(people)
    judge = Judge(Decoder(encoding, rows), rows[:50])
    assert judge.right(rows[:50][::-1]).all()
    assert judge.right(rows[:25]).all(axis=1).sum() >= 25
    assert judge.right(rows[:25]).any(axis=1).sum() == 25


def test_the_attack_reports_what_guessing_and_the_release_give(people: Table) -> None:
    attack = TreeReconstruction(nodes=3, rounds=5, depth=3)
    found = {}
    for anonymizer in (Identity(), Mondrian(k=10)):
        context = AttackContext(people, anonymizer.anonymize(people, rng=0), anonymizer)
        found[anonymizer.name] = attack.run(context, np.random.default_rng(0))
    raw, anonymized = found["identity"], found["mondrian"]
    assert raw.details["rate_of_release"] == 1.0
    assert anonymized.rate < anonymized.details["rate_of_release"] < 1.0
    for finding in found.values():
        assert finding.interval[0] <= finding.rate <= finding.interval[1]
        assert finding.baseline == max(finding.details["rate_of_marginals"], finding.details["rate_of_own_rows"])


def test_the_same_seed_gives_the_same_rows(people: Table) -> None:
    releases = [Identity().anonymize(people.select_rows(np.arange(i, 600, 3)), rng=0) for i in range(3)]
    encoding = Encoding.from_schema(people.schema)
    raw, labels = encoding.encode_table(people), binary_target(people, people.schema)
    rebuilt = []
    for _ in range(2):
        rng = np.random.default_rng(3)
        overheard = overhear(MODEL, releases, encoding, "document", 4, rng)
        rebuilt.append(overheard.rebuild(encoding, raw[2::3], labels[2::3], "entropy", rng))
    np.testing.assert_array_equal(rebuilt[0].features, rebuilt[1].features)
    assert len(rebuilt[0].labels) == 200
    assert rebuilt[0].labels.sum() == labels[0::3].sum()


def test_private_trees_keep_their_budget_and_hide_the_rows(people: Table) -> None:
    """The noise is that of all trees together; exact counts of the first tree are gone."""
    from fedanon.attacks.private_trees import DELTA, SENSITIVITY, PrivateTrees
    from fedanon.privacy.accounting.accountant import gaussian_epsilon

    model = PrivateTrees(epsilon=1.0, rounds=4, max_depth=2)
    assert gaussian_epsilon(np.sqrt(4) * SENSITIVITY / model.deviation, DELTA) == pytest.approx(1.0, rel=1e-3)
    encoding = Encoding.from_schema(people.schema)
    releases = [Identity().anonymize(people.select_rows(np.arange(i, 600, 2)), rng=0) for i in (0, 1)]
    overheard = overhear(model, releases, encoding, "document", 4, np.random.default_rng(0))
    assert len(overheard.sums) == 4
    raw, labels = encoding.encode_table(people), binary_target(people, people.schema)
    rebuilt = overheard.rebuild(encoding, raw[1::2], labels[1::2], "entropy", np.random.default_rng(0))
    assert abs(len(rebuilt.features) - 300) <= 4, "as many rows as the node has, but for rounding"
    counts = first_counts(overheard.sums[0], 300, np.full(4, 0.25)).sum(axis=1)
    true = np.bincount(leaves_of(overheard.sums[0].tree, raw[::2]), minlength=4)
    assert not np.array_equal(counts, true)
