"""What the robust rule and the suspicion rest on: Krum against Flower's, trees as vectors, scores of unlikeness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.partition import dirichlet
from fedanon.datasets import load
from fedanon.federated.simulation import simulate, simulate_nodes
from fedanon.joint.node import make_node
from fedanon.learning.aggregators import margins, probe_rows
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies.means import RobustMean, closest_together, krum_scores
from fedanon.learning.suspicion import MAX_SCORE, MIN_ROUNDS, MIN_UPDATES, UNLIKE, Suspicion, unlikeness
from fedanon.models.trees import Tree, write_trees
from tests.learning.test_strategies import by_flower, updates


def test_krum_is_flowers_where_all_weights_are_equal() -> None:
    arrays, _ = updates(3, np.float64, 7)
    ours = RobustMean().combine(arrays, [100] * 7)
    theirs = by_flower("multikrum", arrays, [100] * 7, num_malicious_nodes=2, num_nodes_to_select=4)
    for mine, other in zip(ours, theirs, strict=True):
        assert np.allclose(mine, other, rtol=1e-12)


def test_krum_scores_by_hand() -> None:
    # four points on a line; f = 1 leaves the one nearest neighbor
    assert krum_scores(np.array([[0.0], [1.0], [3.0], [10.0]]), 1).tolist() == [1, 1, 4, 49]
    assert krum_scores(np.array([[0.0], [1.0]]), 0).tolist() == [0, 0]


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_some_are_kept_and_the_far_ones_are_not(count: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 5))
    far = count * 3 // 10
    vectors[:far] += 1e3
    kept = closest_together(vectors, malicious_share=0.3, kept_share=0.5)
    assert len(kept) == max(1, -(-count // 2))
    assert all(place >= far for place in kept)


def grown(rng: np.random.Generator, depth: int, width: int) -> Tree:
    """A whole tree of random splits."""
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    place = np.arange(nodes)
    left = np.where(place < inner, 2 * place + 1, -1).astype(np.int32)
    value = np.where(place < inner, rng.uniform(0.01, 0.99, nodes), rng.normal(size=nodes)).astype(np.float32)
    feature = rng.integers(0, width, nodes).astype(np.int32)
    right = np.where(place < inner, 2 * place + 2, -1).astype(np.int32)
    return Tree(left=left, right=right, feature=feature, value=value, default_left=np.zeros(nodes, dtype=np.int32))


def test_margins_are_xgboosts() -> None:
    from xgboost import Booster, DMatrix

    rng = np.random.default_rng(0)
    trees, rows = [grown(rng, 4, 6) for _ in range(3)], rng.random((200, 6)).astype(np.float32)
    booster = Booster({"nthread": 1})
    booster.load_model(bytearray(write_trees(trees, n_features=6)))
    expected = booster.predict(DMatrix(rows, nthread=1), output_margin=True)
    assert np.allclose(margins(trees, rows), expected, atol=1e-5)


def test_every_leaf_that_can_be_reached_has_a_probe_that_falls_into_it() -> None:
    tree = grown(np.random.default_rng(1), 3, 50)  # so many features that no path asks for one twice
    found = margins([tree], probe_rows([tree], 50))
    assert found.tolist() == tree.value[tree.leaves].tolist()


@pytest.mark.parametrize("depth", [0, 5])
def test_probes_lie_inside_the_features(depth: int) -> None:
    rows = probe_rows([grown(np.random.default_rng(seed), depth, 3) for seed in range(4)], 3)
    assert rows.shape == (4 * 2**depth, 3)
    assert ((rows >= 0) & (rows <= 1)).all()


# ---- suspicion ----------------------------------------------------------------------------------


def around(rng: np.random.Generator, count: int, far: int, by: float) -> np.ndarray:
    vectors = rng.normal(size=(count, 40))
    vectors[:far] += by
    return vectors


def alike(vectors: np.ndarray) -> np.ndarray:
    """Scores of vectors of nodes that have as many rows each."""
    return unlikeness(vectors, np.full(len(vectors), 100))


def look(suspicion: Suspicion, vectors: np.ndarray, **more: Any) -> list[int]:
    return suspicion.look(dict(enumerate(vectors)), dict.fromkeys(range(len(vectors)), 100), **more)


@given(st.integers(0, 2**32 - 1))
def test_far_vectors_are_unlike_and_the_others_are_not(seed: int) -> None:
    scores = alike(around(np.random.default_rng(seed), 10, 3, 20.0))
    assert (scores[:3] > UNLIKE).all()
    assert (scores[3:] < UNLIKE).all()


@given(st.integers(0, 2**32 - 1))
def test_honest_nodes_of_unlike_sizes_are_alike(seed: int) -> None:
    rng, rows = np.random.default_rng(seed), np.geomspace(10, 10_000, 10)
    assert (unlikeness(rng.normal(size=(10, 40)) / np.sqrt(rows)[:, None], rows) < UNLIKE).all()


@pytest.mark.parametrize("too_long", [None, np.arange(10) == 0])
def test_one_odd_coordinate_is_no_reason(too_long: np.ndarray | None) -> None:
    vectors = around(np.random.default_rng(0), 10, 0, 0.0)
    vectors[0, 0] += 1e6
    assert (unlikeness(vectors, np.full(10, 100), too_long) < UNLIKE).all()


def test_equal_vectors_are_alike_and_another_among_them_is_not() -> None:
    vectors = np.ones((10, 3))
    assert alike(vectors).tolist() == [0.0] * 10
    vectors[2] = 2
    assert alike(vectors).tolist() == [0, 0, MAX_SCORE] + [0] * 7


def test_a_vector_in_the_very_middle_has_a_score_too() -> None:
    vectors = around(np.random.default_rng(0), 11, 1, 1e4)
    vectors[1] = np.median(np.delete(vectors, 1, axis=0), axis=0)
    scores = unlikeness(vectors, np.full(11, 100))
    assert np.isfinite(scores).all()
    assert scores.argmax() == 0


def test_few_rows_excuse_a_long_step() -> None:
    vectors, long = around(np.random.default_rng(0), 10, 1, 2.0), np.arange(10) == 0
    scores = [unlikeness(vectors, np.where(long, rows, 1_000), long)[0] for rows in (1_000, 10)]
    assert scores[0] > UNLIKE > scores[1]


def test_a_node_is_named_once_there_is_enough_evidence() -> None:
    suspicion, rng = Suspicion(), np.random.default_rng(0)
    new = [look(suspicion, around(rng, 10, 1, 20.0)) for _ in range(MIN_ROUNDS + 2)]
    assert new == [[]] * (MIN_ROUNDS - 1) + [[0], [], []]
    (told,) = suspicion.suspects()
    assert (told["node"], told["rounds"], told["rounds_flagged"], told["refused"]) == (0, 5, 5, 0)
    assert told["score"] > UNLIKE
    assert Suspicion.restored(suspicion.to_keep()).suspects() == suspicion.suspects()


def test_few_updates_are_not_compared_and_their_rounds_count() -> None:
    suspicion, rng = Suspicion(), np.random.default_rng(0)
    for number in range(9):
        vectors = around(rng, MIN_UPDATES - 1, 1, 1e6)
        look(suspicion, vectors, refused=[20, 30][: 1 + (number < MIN_ROUNDS)])
        if number >= MIN_ROUNDS:
            suspicion.look({30: vectors[1]}, {30: 100})
    assert suspicion.nodes == [20]  # 30 was refused in three of nine rounds


def test_evidence_by_an_older_rule_does_not_count() -> None:
    kept = {"3": {"scores": [9.0, 9.0, 9.0], "refused": 7}}
    assert Suspicion.restored(kept).nodes == []


# ---- honest federations -------------------------------------------------------------------------


@pytest.mark.needs_data
@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_no_hospital_of_four_is_named(model: str) -> None:
    for seed in range(3):
        chosen = RunSettings(dataset="heart", partition="by:site", model=model, rounds=6, evaluate_every=6, seed=seed)
        assert simulate(chosen).outcome.suspects == []


@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_nobody_is_named_where_labels_are_dealt_out_unevenly(model: str) -> None:
    table = load("adult").select_rows(np.arange(4_000))
    for seed in range(3):
        chosen = RunSettings(model=model, rounds=4, evaluate_every=4, seed=seed)
        parts = dirichlet(table, 10, None, 0.3, np.random.default_rng(seed), at_least=10)
        nodes = [make_node(table.select_rows(rows), chosen, number) for number, rows in enumerate(parts)]
        assert simulate_nodes(nodes, chosen).outcome.suspects == []
