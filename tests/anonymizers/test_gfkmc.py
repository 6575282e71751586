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
