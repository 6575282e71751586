"""What is too small after the final count: merged where counts are exact, merged or suppressed where they are noisy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedanon.errors import InfeasibleError
from fedanon.federated.together.axes import Axis
from fedanon.federated.together.bounds import FinalNoise, lower_bound, sure_nodes
from fedanon.federated.together.disclosure import Threshold
from fedanon.federated.together.merging import Classes, Merging
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


def exact(totals: list[int], *, additive: bool = True) -> Classes:
    return Merging(four_regions(), AXES, np.array(totals), lambda total, _: total, additive=additive).run(10)


def test_a_short_class_joins_the_one_that_loses_least() -> None:
    merged = exact([9, 40, 40, 40])
    assert merged.of_region.tolist() == [-1, -1, -1, 0, 0, 1, 2]
    assert (merged.low[0, 0], merged.high[0, 0]) == (0, 49)
    assert merged.least.tolist() == [49, 40, 40]


def test_people_with_several_rows_are_not_added_up() -> None:
    assert exact([6, 6, 6, 6]).least.tolist() == [12, 12]
    with pytest.raises(InfeasibleError, match="sure to have only 6 people, fewer than k=10"):
        exact([6, 6, 6, 6], additive=False)


def noisy(totals: list[int]) -> Classes:
    """Every summed region may be off by 5."""
    return Merging(four_regions(), AXES, np.array(totals), lambda n, m: n - 5 * m, suppress=True).run(10)


def test_noisy_counts_that_are_sure_stay() -> None:
    assert noisy([15, 15, 15, 15]).least.tolist() == [10, 10, 10, 10]


def test_noisy_counts_that_are_not_sure_are_merged() -> None:
    classes = noisy([14, 14, 40, 40])
    assert classes.of_region[[3, 4, 5, 6]].tolist() == [0, 0, 1, 2]
    assert classes.least.tolist() == [18, 35, 35]


def test_joining_a_class_that_is_sure_costs_no_certainty() -> None:
    """The sum alone would show 9 of 19: but whoever is in the sure part is in the whole."""
    classes = Merging(four_regions(), AXES, np.array([4, 15, 40, 40]), lambda n, m: n - 5 * m).run(10)
    assert classes.of_region[[3, 4]].tolist() == [0, 0]
    assert classes.least.tolist() == [10, 35, 35]


def test_regions_that_are_sure_together_are_one_class() -> None:
    """Sums of two may be off by 20 where any two could be merged, but these two were parts of one region."""
    sure = [np.array([0, 1])]
    merging = Merging(four_regions(), AXES, np.array([14, 14, 40, 40]), lambda n, m: n - 5 * m**2, sure=sure)
    assert merging.run(10).of_region[[3, 4, 5, 6]].tolist() == [0, 0, 1, 2]


NOISE = FinalNoise(scale=1.25, draws=1.5, doubt=1e-2, slack=0)


def test_regions_are_sure_together_where_none_is_alone() -> None:
    single = 10 + reach(1.25, 1.5, math.log(0.95 * 1e-2 / 2 / (2 * (1 + 1))))
    pair = 10 + reach(1.25, 3.0, math.log(0.95 * 1e-2 / 6 / 2))
    router = four_regions().router
    for left, right, found in [(9, pair - 9, [[0, 1]]), (9, pair - 10, []), (9, single, [])]:
        totals = np.array([left, right, 40, 40])
        assert [leaves.tolist() for leaves in sure_nodes(router, totals, 10, **NOISE)] == found


def test_few_rows_are_suppressed_where_merging_would_cost_more() -> None:
    classes = noisy([1, 400, 40, 40])
    assert classes.of_region[3] == -2 - classes.of_region[4], "new rows take the class that grows least"
    assert classes.least.tolist() == [395, 35, 35]


def test_nothing_sure_is_no_release() -> None:
    with pytest.raises(InfeasibleError, match="nothing can be released"):
        noisy([3, 3, 3, 3])


def test_lower_bounds_of_merged_regions_hold_for_every_set_at_once() -> None:
    """Of 50 regions there are 1225 sets of two, which share half of a twentieth of the doubt."""
    least = lower_bound(np.full(50, 40), 10, scale=1.25, draws=2.5, doubt=1e-2, slack=3)
    assert least(100, 2) == 97 - reach(1.25, 5.0, math.log(0.05 * 1e-2 / 2 / 1225))


def test_the_doubt_about_single_regions_is_divided_among_those_that_may_be_short() -> None:
    totals = np.array([12, 12, 13] + [40] * 47)
    least = lower_bound(totals, 10, scale=1.25, draws=2.5, doubt=1e-2, slack=3)
    far = reach(1.25, 2.5, math.log(0.95 * 1e-2 / 2 / (2 * 3)))
    assert [least(13 + far + more, 1) for more in (-1, 0, 50)] == [9, 10, 10], "k is shown, not how many beyond"


def test_short_regions_pass_as_rarely_as_stated() -> None:
    """Of 200 regions 60 are one short of k: the worst there is. Most of the doubt about them is used, not more."""
    rng, doubt, n_runs = np.random.default_rng(0), 0.2, 4000
    true, p = np.repeat([9, 40], [60, 140]), math.exp(-1 / 1.25)
    failed = 0
    for _ in range(n_runs):
        totals = true + rng.negative_binomial(1.5, 1 - p, 200) - rng.negative_binomial(1.5, 1 - p, 200)
        least = lower_bound(totals, 10, scale=1.25, draws=1.5, doubt=doubt, slack=0)
        failed += any(least(int(total), 1) >= 10 for total in totals[:60])
    assert 0.2 * doubt < failed / n_runs < 0.475 * doubt + 3 * math.sqrt(0.475 * doubt / n_runs)


def test_short_nodes_pass_as_rarely_as_stated() -> None:
    """64 regions in a tree: 16 pairs of them have 9 people; no class with fewer than 10 may pass."""
    regions, waiting = GrowingRegions([64]), [(0, 0, 63)]
    for region, low, high in waiting:  # grows while it is read
        if high > low:
            left, right = regions.cut(region, 0, low, middle := (low + high) // 2)
            waiting += [(left, low, middle), (right, middle + 1, high)]
    router, doubt, n_runs, p = regions.router, 0.4, 1500, math.exp(-1 / 1.25)
    order = np.argsort(regions.boxes(router.leaves)[0][:, 0])
    true, rng, failed = np.zeros(64, dtype=np.int64), np.random.default_rng(0), 0
    true[order] = np.tile([4, 5, 30, 30], 16)
    for _ in range(n_runs):
        totals = true + rng.negative_binomial(1.5, 1 - p, 64) - rng.negative_binomial(1.5, 1 - p, 64)
        found = sure_nodes(router, totals, 10, scale=1.25, draws=1.5, doubt=doubt, slack=0)
        failed += any(true[leaves].sum() < 10 for leaves in found)
    assert 0 < failed / n_runs < 0.95 * doubt / 6 + 3 * math.sqrt(0.95 * doubt / 6 / n_runs)


def test_exact_counts_are_their_own_bounds() -> None:
    assert lower_bound(np.full(50, 9), 10, scale=0.0, draws=0.0, doubt=1e-2, slack=0)(17, 3) == 17


def test_small_counts_are_not_told() -> None:
    assert Threshold(3).disclose(np.array([0, 1, 2, 3, 4]), 0.0, 2, None).tolist() == [0, 0, 0, 3, 4]
