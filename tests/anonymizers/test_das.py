"""DAS against the thesis: its worked tables, its numbers of groups, its loss; and fixed intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers.baselines import FixedInterval
from fedanon.anonymizers.gfkmc._kernel import distortions
from fedanon.anonymizers.gfkmc.das import Das, elbow, separatrices
from fedanon.data.infer import numeric_schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.metrics.information_loss import ncp

# tables 4.1 and 4.2 of the thesis
AGE = [21, 24, 25, 30, 34, 33, 38, 41, 39]
HEIGHT = [160, 154, 158, 170, 169, 176, 183, 190, 180]
WEIGHT = [50.55, 60.60, 48.80, 76.80, 54.70, 67.90, 79.00, 80.60, 83.10]


def golden() -> Table:
    frame = pd.DataFrame({"age": AGE, "height": HEIGHT, "weight": WEIGHT})
    return Table.from_frame(frame, numeric_schema(frame.astype(str), "all"))


def test_golden_tables() -> None:
    published = Das(n_bins=3, truncate=True).anonymize(golden(), rng=0).to_frame().astype(float)
    assert published["age"].tolist() == [23] * 3 + [32] * 3 + [39] * 3
    assert published["height"].tolist() == [157] * 3 + [171] * 3 + [184] * 3
    means = {0: 51.35, 2: 51.35, 4: 51.35, 1: 68.43, 3: 68.43, 5: 68.43, 6: 80.90, 7: 80.90, 8: 80.90}
    assert published["weight"].round(2).to_dict() == means


def test_means_are_kept_whole_outside_the_thesis_profile() -> None:
    published = Das(n_bins=3).anonymize(golden(), rng=0).to_frame().astype(float)
    assert published["height"][3] == pytest.approx(171 + 2 / 3)


def test_number_of_groups_and_loss_on_adult() -> None:
    table = load("adult_numeric")
    assert [elbow(c.values) for c in table.columns] == [8, 5, 9]  # type: ignore[arg-type]
    assert ncp(table, Das().anonymize(table, rng=0)) == pytest.approx(0.16569, abs=5e-6)


@pytest.mark.needs_data
def test_number_of_groups_and_loss_on_wef() -> None:
    table = load("wef")
    assert [elbow(c.values) for c in table.columns] == [4, 6, 6]  # type: ignore[arg-type]
    assert ncp(table, Das().anonymize(table, rng=0)) == pytest.approx(0.1691, abs=5e-5)


def test_das_claims_nothing_and_says_so() -> None:
    release = Das().anonymize(golden(), rng=0)
    assert release.claim is None
    assert "not k-anonymous" in release.provenance.notes[0]


def test_new_values_take_the_mean_of_their_group() -> None:
    release = Das(n_bins=3).anonymize(golden(), rng=0)
    other = pd.DataFrame({"age": [22, 40], "height": [154, 190], "weight": [48.80, 83.10]})
    recoded = release.recode(Table.from_frame(other, golden().schema)).to_frame().astype(float)
    assert recoded["age"].tolist() == pytest.approx([70 / 3, 118 / 3])


@given(st.lists(st.integers(0, 40), min_size=1, max_size=40), st.integers(1, 8))
def test_separatrices_cover_every_value_once(values: list[int], n_bins: int) -> None:
    column = np.array(values, dtype=float)
    groups = separatrices(column, n_bins)
    which = groups.group_of(column)
    for group, mean in enumerate(groups.means):
        assert column[which == group].mean() == pytest.approx(mean)


def brute_distortion(values: np.ndarray, groups: int) -> float:
    """Least sum of squares over all ways to cut the sorted values."""
    if groups == 1:
        return float(((values - values.mean()) ** 2).sum())
    first = range(1, len(values) - groups + 2)
    return min(brute_distortion(values[:i], 1) + brute_distortion(values[i:], groups - 1) for i in first)


@given(st.lists(st.integers(0, 100), min_size=2, max_size=8, unique=True))
def test_k_means_is_exact(values: list[int]) -> None:
    column = np.sort(np.array(values, dtype=float))
    found = distortions(column, -1.0)
    assert found == pytest.approx([brute_distortion(column, k + 1) for k in range(len(column))], abs=1e-6)


@given(st.lists(st.integers(0, 500), min_size=5, max_size=30, unique=True))
def test_the_early_stop_does_not_change_the_knee(values: list[int]) -> None:
    column = np.sort(np.array(values, dtype=float))
    curve = distortions(column, -1.0)[1:-1]  # K = 2 .. m - 1
    x = np.linspace(0, 1, len(curve))
    y = (curve - curve[-1]) / ((curve[0] - curve[-1]) or 1.0)
    difference = (1 - y) - x
    assert difference[elbow(column) - 2] == pytest.approx(difference.max(), abs=1e-9)


def test_fixed_intervals_have_equal_width() -> None:
    table = load("adult_numeric")
    release = FixedInterval(n_bins=5).anonymize(table, rng=0)
    cells = release.cells["age"]
    assert set(np.round(cells.high - cells.low, 9)) == {14.6}  # type: ignore[union-attr]
