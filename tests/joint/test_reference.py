"""The reference population has the pairs of columns that were counted, and boxes take the rows that fit them best."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.errors import ConfigError, UpdateRejectedError
from fedanon.joint.axes import box_losses, make_axes
from fedanon.joint.methods.reference import FederatedReference, PopulationQueries, make_reference_table
from fedanon.joint.population import TreePopulation, best_tree, mutual_information
from fedanon.joint.queries import PairQuery, Query
from fedanon.joint.regions import NearestBoxes, read_router
from fedanon.types import CountArray

QUASI = Role.QUASI_IDENTIFYING
TREE = Hierarchy.from_nested({"A": ["a1", "a2", "a3"], "B": ["b1", "b2"]})
AXES = make_axes(
    Schema(
        (
            Numeric("age", QUASI, 0.0, 19.0, integer=True),
            Categorical("ward", QUASI, TREE),
            Numeric("wage", QUASI, 0.0, 9.0, integer=True),
        )
    )
)


def rows_of(n: int, seed: int = 0) -> np.ndarray:
    """Age decides the ward, nearly; wage goes with the ward."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 20, n)
    ward = np.where(rng.random(n) < 0.9, age // 4, rng.integers(0, 5, n))
    wage = np.clip(2 * ward + rng.integers(-1, 2, n), 0, 9)
    return np.column_stack([age, ward, wage]).astype(np.int32)


def learned(bins: np.ndarray, **more: bool) -> tuple[TreePopulation, int]:
    def ask(query: Query) -> tuple[CountArray, CountArray]:
        counts = query.layout(AXES).count(bins, None)[None]
        return counts, counts

    learning = PopulationQueries(AXES, ask, **({"noisy": False, "exact": True} | more))
    return learning.run(), learning.n_rows


def test_pairs_are_counted_like_a_cross_table() -> None:
    bins = rows_of(500)
    query = PairQuery(np.array([[0, 1], [1, 2]], dtype=np.int32), 128)
    layout = query.layout(AXES)
    tables = layout.tables(layout.count(bins, None))
    expected = np.zeros((21, 5), dtype=int)
    np.add.at(expected, (bins[:, 0], bins[:, 1]), 1)
    np.testing.assert_array_equal(tables[0, 1], expected)
    assert query.n_counted == 2
    assert layout.consistent(layout.count(bins, None))
    spoilt = layout.count(bins, None)
    spoilt[0] += 1
    assert not layout.consistent(spoilt)


@pytest.mark.parametrize("pairs", [[[0, 0]], [[1, 0]], [[0, 3]], [[0, 1], [0, 1]], [[-1, 1]]])
def test_a_question_for_no_pairs_is_refused(pairs: list[list[int]]) -> None:
    with pytest.raises(UpdateRejectedError):
        PairQuery.from_arrays([np.array(pairs, dtype=np.int32), np.array([8], dtype=np.int32)], AXES)


def test_mutual_information_of_known_tables() -> None:
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 5.0])) == pytest.approx(0.0, abs=1e-12)
    assert mutual_information(np.eye(4)) == pytest.approx(np.log(4))


def test_the_tree_follows_the_strongest_pairs() -> None:
    population, _ = learned(rows_of(4000))
    assert [tuple(sorted(edge)) for edge in best_tree(population.tables, 3)] == [(0, 1), (1, 2)]


def moved(ours: np.ndarray, theirs: np.ndarray, a: int, b: int) -> float:
    """Share of the rows that would have to change for two columns to have the same pairs."""
    one, other = (np.histogram2d(x[:, a], x[:, b], bins=[range(22), range(12)])[0] for x in (ours, theirs))
    return float(np.abs(one - other).sum() / 2 / len(ours))


def test_the_population_has_the_pairs_that_were_counted() -> None:
    bins = rows_of(4000)
    population, n_rows = learned(bins)
    drawn = population.draw(n_rows, np.random.default_rng(1))
    assert drawn.shape == bins.shape
    assert max(moved(bins, drawn, a, b) for a, b in combinations(range(3), 2)) < 0.06
    alone = np.column_stack([np.random.default_rng(a).permutation(bins[:, a]) for a in range(3)])
    assert min(moved(bins, alone, a, b) for a, b in combinations(range(3), 2)) > 0.5, "columns alone would not do"


def test_on_a_budget_only_the_pairs_of_the_tree_are_counted_well() -> None:
    bins = rows_of(4000)
    population, n_rows = learned(bins, noisy=True, exact=False)
    assert len(population.tables) == 2, "two pairs join three columns"
    assert (1, 2) in population.tables
    assert moved(bins, population.draw(n_rows, np.random.default_rng(1)), 1, 2) < 0.06


def test_a_row_takes_the_smallest_box_that_holds_it_or_the_one_that_grows_least() -> None:
    low = np.array([[0, 0, 0], [0, 0, 0], [10, 3, 6]], dtype=np.int32)
    high = np.array([[19, 4, 9], [4, 2, 4], [14, 4, 9]], dtype=np.int32)
    boxes = NearestBoxes(low, high, AXES)
    rows = np.array([[2, 1, 1], [12, 3, 7], [9, 0, 5]], dtype=np.int32)
    assert boxes.route(rows).tolist() == [1, 2, 0]
    outside = NearestBoxes(low[1:], high[1:], AXES)
    grown = box_losses(AXES, np.minimum(low, rows[2]), np.maximum(high, rows[2])) - box_losses(AXES, low, high)
    assert outside.route(rows[2:]).tolist() == [int(np.argmin(grown[1:].sum(axis=1)))]
    there = read_router(boxes.to_array(), AXES)
    assert there.route(rows).tolist() == [1, 2, 0]


def test_boxes_that_are_none_are_refused() -> None:
    bad = np.array([[[0, 0, 0]], [[99, 0, 0]]], dtype=np.int32)
    with pytest.raises(UpdateRejectedError, match="not boxes"):
        read_router(bad, AXES)


def test_an_anonymizer_sees_numbers_and_numbered_nodes() -> None:
    table = make_reference_table(AXES, rows_of(50))
    assert table.codes.shape == (50, 3)
    assert (table.codes[:, 1] == rows_of(50)[:, 1]).all()
    seen, low, high = table.columns[1].hierarchy, np.array([0, 0, 0, 3]), np.array([0, 2, 3, 4])
    np.testing.assert_allclose(seen.leaf_loss[seen.common_ancestor(low, high)], AXES[1].loss(low, high))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"reference": "identity"}, "does not promise k-anonymity"),
        ({"reference": "nothing"}, "Unknown anonymizer"),
        ({"reference_settings": "5"}, "not a JSON object"),
        ({"reference_settings": '{"speed": 3}'}, "has no parameter speed"),
    ],
)
def test_a_reference_that_cannot_be_is_told_at_once(chosen: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FederatedReference(k=5, **chosen)
