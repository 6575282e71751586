"""What is too small after the final count: merged where counts are exact, merged or suppressed where they are noisy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedanon.errors import InfeasibleError
from fedanon.joint.axes import Axis
from fedanon.joint.bounds import FinalNoise, confirmed_pairs, make_lower_bound
from fedanon.joint.disclosure import Threshold
from fedanon.joint.merging import N_MATCHINGS, MergedClasses, Merging, RegionNeighbors
from fedanon.joint.noise import upper_quantile
from fedanon.joint.regions import GrowingRegions
from fedanon.types import CountArray

#: one column of a hundred bins, none of them for missing values
AXES = [Axis(100, 1, -1)]


def four_regions() -> GrowingRegions:
    """0..19 (region 3), 20..49 (4), 50..79 (5), 80..99 (6)."""
    regions = GrowingRegions([100])
    regions.cut(0, 0, 0, 49)
    regions.cut(1, 0, 0, 19)
    regions.cut(2, 0, 50, 79)
    return regions


def exact(totals: list[int], *, additive: bool = True) -> MergedClasses:
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


def noisy(totals: list[int]) -> MergedClasses:
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
    """Sums of any two may be off by 20, but these two were tested as a pair; of two pairs with one region one holds."""
    sure = np.array([[0, 1], [1, 2]])
    merging = Merging(four_regions(), AXES, np.array([14, 14, 14, 40]), lambda n, m: n - 5 * m**2, confirmed=sure)
    assert merging.run(10).of_region[[3, 4, 5, 6]].tolist() == [0, 0, 1, 1]


NOISE = FinalNoise(scale=1.25, draws=1.5, failure_probability=1e-2, slack=0)


def test_regions_are_sure_together_where_none_is_alone() -> None:
    pairs = [np.array([[0, 1], [2, 3]]), np.array([[1, 2]])]
    needed = 10 + upper_quantile(1.25, 3.0, math.log(0.45 / 2 * 1e-2 * 0.85))
    for left, right, found in [(9, needed - 9, [[0, 1], [2, 3], [1, 2]]), (9, needed - 10, [[2, 3], [1, 2]])]:
        totals = np.array([left, right, 40, 40])
        assert confirmed_pairs(pairs, totals, 10, **NOISE).tolist() == found
    assert not confirmed_pairs(pairs, totals, 10, scale=0.0, draws=0.0, failure_probability=1e-2, slack=0).size, (
        "exact counts need none"
    )


def test_matchings_are_of_neighbors_and_share_no_pair() -> None:
    low = np.arange(0, 100, 2, dtype=np.int32)[:, None]
    matchings = RegionNeighbors.from_boxes(AXES, low, low + 1).matchings()
    assert len(matchings) == N_MATCHINGS
    assert [len(np.unique(pairs)) for pairs in matchings] == [2 * len(pairs) for pairs in matchings]
    every = np.concatenate(matchings).tolist()
    assert len({tuple(pair) for pair in every}) == len(every)
    assert np.abs(np.diff(matchings[0], axis=1)).max() == 1
    assert RegionNeighbors.from_boxes(AXES, low[:1], low[:1]).matchings() == []


def test_what_a_class_does_not_need_moves_to_where_less_is_lost() -> None:
    """The two in the middle join each other, which costs least at first, and then the last; apart less is lost."""
    regions = GrowingRegions([100])
    for region, place in [(0, 39), (2, 44), (4, 54)]:
        regions.cut(region, 0, int(regions.low[region][0]), place)
    leaves = regions.router.leaves
    low, high = regions.boxes(leaves)
    assert low[:, 0].tolist() == [0, 40, 45, 55]
    totals = np.array([30, 3, 12, 20])

    def of_leaf(neighbors: RegionNeighbors | None) -> tuple[list[int], list[int], float]:
        merging = Merging(regions, AXES, totals, lambda n, m: n - 5 * m, suppress=True, neighbors=neighbors)
        found = merging.run(10)
        labels = found.of_region[leaves]
        loss = AXES[0].loss(found.low[:, 0], found.high[:, 0])
        lost = np.where(labels < 0, 1.0, loss[np.maximum(labels, 0)]) * totals
        return labels.tolist(), found.least.tolist(), float(lost.sum())

    before, after = of_leaf(None), of_leaf(RegionNeighbors.from_boxes(AXES, low, high))
    assert (before[0], after[0]) == ([0, 1, 1, 1], [0, 0, 1, 1])
    assert after[2] < before[2]
    assert (before[1], after[1]) == ([25, 20], [25, 15]), "what was moved about is not counted"


def test_few_rows_are_suppressed_where_merging_would_cost_more() -> None:
    classes = noisy([1, 400, 40, 40])
    assert classes.of_region[3] == -2 - classes.of_region[4], "new rows take the class that grows least"
    assert classes.least.tolist() == [395, 35, 35]


def test_nothing_sure_is_no_release() -> None:
    with pytest.raises(InfeasibleError, match="nothing can be released"):
        noisy([3, 3, 3, 3])


def test_lower_bounds_of_merged_regions_hold_for_every_set_at_once() -> None:
    """Of 50 regions there are 1225 sets of two, which share half of a twentieth of what is allowed."""
    least = make_lower_bound(np.full(50, 40), 10, scale=1.25, draws=2.5, failure_probability=1e-2, slack=3)
    assert least(100, 2) == 97 - upper_quantile(1.25, 5.0, math.log((1 - 0.5 - 0.45) * 1e-2 / 2 / 1225))


def test_the_doubt_about_single_regions_is_divided_among_those_that_may_be_short() -> None:
    small = 13 + upper_quantile(1.25, 2.5, math.log(0.15)) - 1
    totals = np.array([12, small, small + 1] + [40] * 47)
    least = make_lower_bound(totals, 10, scale=1.25, draws=2.5, failure_probability=1e-2, slack=3)
    far = upper_quantile(1.25, 2.5, math.log(0.5 * 1e-2 * 0.85 / 3))
    assert [least(13 + far + more, 1) for more in (-1, 0, 50)] == [9, 10, 10], "k is shown, not how many beyond"


def noise_of(rng: np.random.Generator, count: int) -> CountArray:
    p = math.exp(-1 / 1.25)
    return np.asarray(rng.negative_binomial(1.5, 1 - p, count) - rng.negative_binomial(1.5, 1 - p, count))


def test_short_regions_pass_as_rarely_as_stated() -> None:
    """Of 200 regions 60 are one short of k: the worst there is. Most of what is allowed is used, not more."""
    rng, allowed, n_runs, failed = np.random.default_rng(0), 0.2, 4000, 0
    true = np.repeat([9, 40], [60, 140])
    for _ in range(n_runs):
        totals = true + noise_of(rng, 200)
        least = make_lower_bound(totals, 10, scale=1.25, draws=1.5, failure_probability=allowed, slack=0)
        failed += any(least(int(total), 1) >= 10 for total in totals[:60])
    assert 0.25 * allowed < failed / n_runs < 0.5 * allowed + 3 * math.sqrt(0.5 * allowed / n_runs)


def test_short_pairs_pass_as_rarely_as_stated() -> None:
    """64 regions in two matchings, both with 16 pairs of nine people: one short."""
    true = np.tile([4, 5, 30, 30], 16)
    fours, fives = np.arange(0, 64, 4), np.arange(1, 64, 4)
    matchings = [np.arange(64).reshape(-1, 2), np.column_stack([np.roll(fours, 1), fives])]
    rng, allowed, n_runs, failed = np.random.default_rng(0), 0.4, 1500, 0
    for _ in range(n_runs):
        pairs = confirmed_pairs(
            matchings,
            true + noise_of(rng, 64),
            10,
            scale=1.25,
            draws=1.5,
            failure_probability=allowed,
            slack=0,
        )
        failed += bool((true[pairs].sum(axis=1) < 10).any())
    assert 0.2 * 0.45 * allowed < failed / n_runs < 0.45 * allowed + 3 * math.sqrt(0.45 * allowed / n_runs)


def test_exact_counts_are_their_own_bounds() -> None:
    assert make_lower_bound(np.full(50, 9), 10, scale=0.0, draws=0.0, failure_probability=1e-2, slack=0)(17, 3) == 17


def test_small_counts_are_not_told() -> None:
    assert Threshold(3).disclose(np.array([0, 1, 2, 3, 4]), 0.0, 2, None).tolist() == [0, 0, 0, 3, 4]
