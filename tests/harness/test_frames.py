"""Summaries, intervals, differences and comparisons, on numbers that can be worked out by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from fedanon.errors import ConfigError
from fedanon.harness.comparison import Published, Tolerance, between, with_published
from fedanon.harness.frames import against_baseline, summary, wide


@pytest.fixture
def results() -> pd.DataFrame:
    rows = [
        {
            "grid": "g",
            "label": label,
            "k": k,
            "seed": seed,
            "cell": f"{label}{k}{seed}",
            "measure": "auc",
            "value": value,
        }
        for label, k, values in (
            ("original", None, (0.9, 0.8, 0.7)),
            ("M", 5, (0.8, 0.7, 0.6)),
            ("M", 10, (0.5, 0.5, 0.5)),
        )
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows).astype({"k": "Int64"})


def test_summary(results: pd.DataFrame) -> None:
    table = summary(results)
    assert table["mean"].tolist() == pytest.approx([0.8, 0.7, 0.5])
    # t(0.975, 2) = 4.3027; half = t * 0.1 / sqrt(3)
    assert table["high"].tolist() == pytest.approx([0.8 + 0.248414, 0.7 + 0.248414, 0.5], abs=1e-6)
    assert table["n"].tolist() == [3, 3, 3]


def test_one_seed_has_no_interval(results: pd.DataFrame) -> None:
    assert summary(results[results["seed"] == 0])["low"].isna().all()


def test_differences_are_taken_seed_by_seed(results: pd.DataFrame) -> None:
    table = summary(against_baseline(results, "original"))
    assert table["mean"].tolist() == pytest.approx([-0.1, -0.3])
    assert table["sd"].tolist() == pytest.approx([0.0, 0.1])


def test_wide(results: pd.DataFrame) -> None:
    assert wide(summary(results))["auc"].tolist() == ["0.8 ± 0.25", "0.7 ± 0.25", "0.5"]


def published(**columns: list[object]) -> Published:
    return Published("g", "a paper", pd.DataFrame(columns), {"auc": Tolerance(0.02, relative=True)})


def test_published_beside_ours(results: pd.DataFrame) -> None:
    table = with_published(results, [published(label=["original", "M", "M"], k=[None, 5, 7], auc=[0.8, 0.75, 0.5])])
    assert table["within"].tolist() == [True, False, False]
    assert table["ours"].tolist()[:2] == pytest.approx([0.8, 0.7])
    assert table["ours"].isna().tolist() == [False, False, True]
    assert table["relative"][1] == pytest.approx(-0.05 / 0.75)


def test_an_ambiguous_published_number_is_refused(results: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="stands for 2 of ours"):
        with_published(results, [published(label=["M"], auc=[0.8])])


def test_between_two_result_sets(results: pd.DataFrame) -> None:
    assert between(results, results).empty
    other = results.assign(value=results["value"] * 1.01)
    assert len(between(results, other)) == 3
    assert between(results, other, tolerance=0.02).empty
    assert between(results, results[~results["k"].eq(5).fillna(False)])["in"].tolist() == ["ours only"]
