"""What is too small after the final count: merged where counts are exact, folded or suppressed where they are noisy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedanon.errors import InfeasibleError
from fedanon.federated.together.axes import Axis
from fedanon.federated.together.disclosure import Noisy, Threshold
from fedanon.federated.together.folding import Folding
from fedanon.federated.together.merging import Classes, merge_short
from fedanon.federated.together.noise import reach
from fedanon.federated.together.regions import GrowingRegions

#: one column of a hundred bins, none of them for missing values
AXES = [Axis(100, 1, -1)]


def four_regions() -> GrowingRegions:
    """0..19 (region 3), 20..49 (4), 50..79 (5), 80..99 (6)."""
    regions = GrowingRegions([100])
    regions.cut(0, 0, 0, 49)
    regions.cut(1, 0, 0, 19)
    regions.cut(2, 0, 50, 79)
    return regions


def exactly(totals: np.ndarray, members: np.ndarray) -> np.ndarray:
    return totals


def test_a_short_class_joins_the_one_that_loses_least() -> None:
    classes = Classes.of_leaves(four_regions(), np.array([9, 40, 40, 40]))
    merged, least = merge_short(classes, AXES, 10, exactly, additive=True)
    assert merged.of_region[[3, 4, 5, 6]].tolist() == [0, 0, 1, 2]
    assert (merged.low[0, 0], merged.high[0, 0]) == (0, 49)
    assert least.tolist() == [49, 40, 40]


def test_people_with_several_rows_are_not_added_up() -> None:
    classes = Classes.of_leaves(four_regions(), np.array([6, 6, 6, 6]))
    assert merge_short(classes, AXES, 10, exactly, additive=True)[1].tolist() == [12, 12]
    with pytest.raises(InfeasibleError, match="sure to have only 6 people, fewer than k=10"):
        merge_short(classes, AXES, 10, exactly, additive=False)


def fold(totals: list[int], off: int) -> tuple[Classes, list[int]]:
    """Every summed region may be ``off`` by noise."""
    folding = Folding(four_regions(), AXES, 10, lambda total, members: total - off * members)
    classes, least = folding.run(dict(zip((3, 4, 5, 6), totals, strict=True)))
    return classes, least.tolist()


def test_noisy_counts_that_are_sure_stay() -> None:
    classes, least = fold([15, 15, 15, 15], 5)
    assert len(classes) == 4
    assert least == [10, 10, 10, 10]


def test_noisy_counts_that_are_not_sure_are_folded_into_the_region_above() -> None:
    classes, least = fold([14, 30, 40, 40], 5)
    assert classes.of_region[[3, 4, 5, 6]].tolist() == [0, 0, 1, 2]
    assert least == [34, 35, 35]


def test_few_rows_are_suppressed_where_folding_would_cost_more() -> None:
    classes, least = fold([1, 400, 40, 40], 5)
    assert classes.of_region[3] == -2 - classes.of_region[4]
    assert least == [395, 35, 35]


def test_nothing_sure_is_no_release() -> None:
    with pytest.raises(InfeasibleError, match="nothing can be released"):
        fold([3, 3, 3, 3], 5)


def test_lower_bounds_take_off_what_noise_can_add() -> None:
    draws, log_doubt = np.array([10, 20]), math.log(1e-6)
    bounds = Noisy(1.0).lower_bound(np.array([100, 100]), draws, 1.25, log_doubt)
    assert bounds.tolist() == [100 - reach(1.25, 10, log_doubt), 100 - reach(1.25, 20, log_doubt)]
    assert bounds[1] < bounds[0] < 100


def test_small_counts_are_not_told() -> None:
    assert Threshold(3).disclose(np.array([0, 1, 2, 3, 4]), 0.0).tolist() == [0, 0, 0, 3, 4]
