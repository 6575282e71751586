"""GFKMC: publishing rules, profiles and edge cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers.gfkmc.method import Gfkmc, Wkmca
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.metrics.information_loss import ncp, ncp_published, truthfulness

QUASI = Role.QUASI_IDENTIFYING
RULES = ["lca", "centroid", "most_common_record", "most_common_value"]


@pytest.fixture(scope="module")
def adult() -> Table:
    return load("adult").select_rows(np.arange(0, 30_000, 10))


@pytest.mark.parametrize("rule", RULES)
def test_only_lca_is_true_of_every_record(adult: Table, rule: str) -> None:
    release = Gfkmc(k=5, publish=rule).anonymize(adult, rng=0)  # type: ignore[arg-type]
    share = truthfulness(adult, release)
    assert share == 1.0 if rule == "lca" else 0.6 < share < 0.95
    assert Gfkmc(k=5, publish=rule).truthful == (rule == "lca")  # type: ignore[arg-type]


def test_published_and_original_loss_tell_different_stories(adult: Table) -> None:
    low, high = (Gfkmc(k=k, profile="paper").anonymize(adult, rng=0) for k in (3, 20))
    growth = ncp(adult, high) / ncp(adult, low)
    published_growth = ncp_published(adult, high) / ncp_published(adult, low)
    assert growth > 1.5 * published_growth


def table(ages: list[int], wards: list[str]) -> Table:
    tree = Hierarchy.from_nested({"A": ["a1", "a2"], "B": ["b1", "b2"]})
    schema = Schema((Numeric("age", QUASI, 0, 100), Categorical("ward", QUASI, tree)))
    return Table.from_frame(pd.DataFrame({"age": ages, "ward": wards}), schema)


@pytest.mark.parametrize("profile", ["default", "paper", "thesis"])
def test_groups_of_k_equal_rows_are_final(profile: str) -> None:
    rows = table([30] * 5 + [70] * 5, ["a1"] * 5 + ["b1"] * 5)
    release = Gfkmc(k=5, profile=profile).anonymize(rows, rng=0)  # type: ignore[arg-type]
    assert sorted(release.classes.sizes) == [5, 5]


@pytest.mark.parametrize("profile", ["default", "paper", "thesis"])
@pytest.mark.parametrize("n", [5, 6, 9])
def test_fewer_inliers_than_k(profile: str, n: int) -> None:
    rows = table(list(range(0, 10 * n, 10)), (["a1", "a2", "b1", "b2"] * 3)[:n])
    release = Gfkmc(k=5, profile=profile, outlier_share=1.0).anonymize(rows, rng=0)  # type: ignore[arg-type]
    assert release.classes.sizes.min() >= 5


def test_left_over_rows_join_a_final_class() -> None:
    rows = table([30] * 6 + [90], ["a1"] * 6 + ["b2"])
    release = Gfkmc(k=5).anonymize(rows, rng=0)
    assert release.classes.sizes.tolist() == [7]


def test_wkmca_loses_less_than_gfkmc_on_the_originals(adult: Table) -> None:
    assert ncp(adult, Wkmca(k=5).anonymize(adult, rng=0)) < ncp(adult, Gfkmc(k=5).anonymize(adult, rng=0))


# ---- The paper profile: algorithms 4.2 to 4.6, as a plain program ---------------------------------


def printed_algorithm(k: int, beta: int, ages: list[int], seed_order: list[int], tail: list[int]) -> list[set[int]]:
    """Algorithms 4.3 to 4.6 for records with one number each, all different, in the orders that chance gave.

    W is the rank by distance from the mean (no categories: every C_score is 0, and all share its average rank).
    """
    m, mean = len(ages), np.mean(ages)
    away = [abs(age - mean) for age in ages]
    rank = [sum(other < a for other in away) + (away.count(a) + 1) / 2 for a in away]
    weight = [m - ((m + 1 - r) + (m + 1) / 2) / 2 for r in rank]
    limit = sorted(weight, reverse=True)[beta - 1]
    inliers = [i for i in seed_order if weight[i] < limit]

    def wil(cluster: list[int]) -> float:
        span = (max(ages[i] for i in cluster) - min(ages[i] for i in cluster)) / 100
        return float(np.sqrt(sum(weight[i] ** 2 for i in cluster)) * len(cluster) * span)

    clusters: list[list[int]] = []
    while len(inliers) >= k:
        far = [
            min((np.hypot(weight[i], weight[c[0]]) * abs(ages[i] - ages[c[0]]) for c in clusters), default=0)
            for i in inliers
        ]
        seed = inliers.pop(int(np.argmax(far)) if clusters else 0)
        ordered = sorted(inliers, key=lambda i: wil([seed, i]))  # once, against the seed alone
        clusters.append([seed, *ordered[: k - 1]])
        inliers = [i for i in inliers if i not in clusters[-1]]
    for i in [*inliers, *tail]:
        grown = [wil([*cluster, i]) - wil(cluster) for cluster in clusters]
        clusters[int(np.argmin(grown))].append(i)
    return [set(cluster) for cluster in clusters]


class Scripted:
    """Chance as a script: permutations as they are drawn, and the first seed in front."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.drawn: list[np.ndarray] = []

    def permutation(self, values: np.ndarray) -> np.ndarray:
        self.drawn.append(self.rng.permutation(values))
        return self.drawn[-1]

    def integers(self, _: int) -> int:
        return 0


@pytest.mark.parametrize("seed", range(8))
def test_the_paper_profile_is_the_printed_algorithm(seed: int) -> None:
    ages = np.random.default_rng(100 + seed).choice(100, 40, replace=False).tolist()
    schema = Schema((Numeric("age", QUASI, 0, 100),))
    rows = Table.from_frame(pd.DataFrame({"age": ages}), schema)
    chance = Scripted(seed)
    method = Gfkmc(k=4, profile="paper", das=False, outlier_share=0.15)
    plan = method.plan(rows, chance)  # type: ignore[arg-type]
    # the groups of equal rows are numbered by value
    sorted_ages = sorted(ages)
    order, tail = ([ages.index(sorted_ages[g]) for g in drawn] for drawn in chance.drawn)
    expected = printed_algorithm(4, 6, ages, order, tail)
    assert len(tail) >= 6
    found = [set(np.flatnonzero(plan.groups.labels == g).tolist()) for g in range(plan.groups.count)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def test_beta_of_the_paper_profile_is_a_share_of_the_whole_table() -> None:
    """1,508 of Adult's 30,162 records at every k."""
    weights, sizes = np.arange(4000.0), np.full(4000, 2)
    paper = Gfkmc(k=10, profile="paper")._outliers(weights, sizes, 30_162)
    assert sizes[paper].sum() == 1508
    assert sizes[Gfkmc(k=10)._outliers(weights, sizes, 30_162)].sum() == 400
