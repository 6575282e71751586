"""Growth on few noisy counts: what is foretold of regions, and what is cut off for being rare."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.joint.axes import Axis, bin_rows, make_axes
from fedanon.joint.cuts import Cut, Histogram, best_trim
from fedanon.joint.methods.mondrian import FederatedMondrian
from fedanon.joint.node import Participant
from fedanon.joint.population import WeightedPopulation, draw_independent
from fedanon.joint.protocol import agree
from fedanon.joint.regions import GrowingRegions

QUASI = Role.QUASI_IDENTIFYING
FRUIT = Hierarchy.from_paths([["apple", "tree", "*"], ["pear", "tree", "*"], ["plum", "tree", "*"], ["leek", "*", "*"]])


def test_a_hole_that_reaches_an_end_shrinks_the_box() -> None:
    regions = GrowingRegions([10])
    _, rest = regions.cut(0, 0, 4, 5)
    assert (regions.low[rest][0], regions.high[rest][0]) == (0, 9)
    upper, lower = regions.cut(rest, 0, 6, 9)
    assert (regions.low[upper][0], regions.high[upper][0]) == (6, 9)
    assert (regions.low[lower][0], regions.high[lower][0]) == (0, 3)


def fruit(*counts: float) -> Histogram:
    axis = make_axes(Schema((Categorical("fruit", QUASI, FRUIT),)))[0]
    rows = np.array([counts], dtype=np.float64)
    return Histogram(axis, np.arange(4, dtype=np.int32), 3, rows, rows, exact=True)


def test_few_rows_are_parted_for_which_all_others_would_publish_more() -> None:
    """Leeks widen the cell of a hundred from tree to everything: a quarter of the axis, for each."""
    found = best_trim([fruit(50, 30, 20, 2)], unseen=0.0, most=10)
    assert found is not None
    assert (found.axis, found.low, found.high) == (0, 0, 2)
    assert found.score == pytest.approx(100 * (1 - FRUIT.leaf_loss[FRUIT.labels.index("tree")]) - 2 * 0.7)
    assert best_trim([fruit(50, 30, 20, 12)], unseen=0.0, most=10) is None, "too many for rare ones"
    assert best_trim([fruit(5, 3, 2, 2)], unseen=2.0, most=10) is None, "what is unseen may be more"
    number = Histogram(Axis(4, 0, -1), *[np.arange(4, dtype=np.int32), 3], *[np.array([[50, 9, 0, 1]])] * 2, exact=True)
    assert best_trim([number, None], unseen=0.0, most=10) is None, "numbers have no nodes"


def test_an_axis_of_holes_and_one_value_needs_no_trim() -> None:
    assert best_trim([fruit(0, 30, 0, 0)], unseen=0.0, most=10) is None
    assert best_trim([fruit(40, 0, 0, 1)], unseen=0.0, most=10) == Cut(0, 0, 0, pytest.approx(40 - 0.7))


def test_columns_are_drawn_by_their_margins() -> None:
    rows = draw_independent([np.array([1.0, 3.0]), np.array([0.0, 2.0, 2.0])], 400, np.random.default_rng(0))
    assert np.bincount(rows[:, 0]).tolist() == [100, 300]
    assert np.bincount(rows[:, 1]).tolist() == [0, 200, 200]


def test_what_some_regions_tell_of_a_pair_of_columns_holds_for_others() -> None:
    """Of three columns two go together; it was counted where the third is 0, and is foretold where it is 1."""
    rows = draw_independent([np.ones(2)] * 3, 8000, np.random.default_rng(0))
    population = WeightedPopulation(rows, 8000.0, deviation=20.0)
    regions = np.where(rows[:, 2] == 0, 2 * rows[:, 0] + rows[:, 1], 4)
    population.observe(regions, np.array([1800, 200, 200, 1800, 4000]), deviation=10.0)
    elsewhere = rows[:, 2] == 1
    cells = np.bincount(2 * rows[elsewhere, 0] + rows[elsewhere, 1], population.weights[elsewhere])
    assert population.weights.sum() == pytest.approx(8000)
    assert cells[[0, 3]].min() > 1150
    assert cells[[1, 2]].max() < 850


def test_counts_weigh_more_the_less_noise_they_have() -> None:
    rows = draw_independent([np.ones(2)], 1000, np.random.default_rng(0))
    found = []
    for deviation in (1.0, 250.0, 1e6):
        population = WeightedPopulation(rows, 1000.0, deviation=1.0)
        population.pull_towards(rows[:, 0].astype(np.int64), np.array([700, 300]), deviation)
        found.append(float(population.weights[rows[:, 0] == 0].sum()))
    assert found == pytest.approx([700, 600, 500], abs=1)


def test_missing_numbers_and_rare_words_do_not_widen_the_cells_of_all() -> None:
    """Epsilon is so large that there is hardly noise: regions are as small as they may, though of three queries."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 60, 3000).astype(float)
    age[:100] = np.nan
    word = rng.choice(["apple", "pear", "plum"], 3000)
    word[100:105] = "leek"
    schema = Schema((Numeric("age", QUASI, 17.0, 90.0, integer=True), Categorical("fruit", QUASI, FRUIT)))
    tables = [
        Table.from_frame(pd.DataFrame({"age": age[i::3], "fruit": word[i::3]}), schema, missing="category")
        for i in range(3)
    ]
    chosen = FederatedMondrian(k=5, counts="secure_dp", epsilon=200.0, randomness="seeded")
    plan = agree([Participant(table, chosen, n, 0) for n, table in enumerate(tables)]).plan
    bins = np.concatenate([bin_rows(table) for table in tables])
    classes = plan.classify(bins)
    axes = make_axes(schema)
    loss = np.column_stack([axes[a].loss(plan.low[:, a], plan.high[:, a]) for a in range(2)])
    common = (bins[:, 0] != axes[0].missing) & (bins[:, 1] != FRUIT.codes["leek"])
    assert np.bincount(classes[classes >= 0]).min() >= 5
    assert (classes[common] >= 0).mean() > 0.99
    assert loss[np.maximum(classes[common], 0)].mean() < 0.05


def test_a_fit_may_try_any_parameters_on_its_way() -> None:
    """Warnings are errors: a long step of the search once made an infinite square."""
    bins = np.random.default_rng(0).integers(0, 4, (200, 3)).astype(np.int32)
    population = WeightedPopulation(bins, 1000.0, 5.0)
    misfit, gradient = population._misfit(np.full_like(population._parameters, 500.0))
    assert np.isfinite(misfit)
    assert np.isfinite(gradient).all()
