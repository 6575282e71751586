"""Given columns of any kind: categories as indicators, a choice by analysis of variance, robust fits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.sdc.methods.conditional import significant_blocks
from fedanon.sdc.methods.pipeline import Pipeline
from fedanon.sdc.methods.projections import robust_regression
from fedanon.sdc.methods.step import Step

REGIONS = ["north", "south", "west"]
CONDITIONAL = ["data_shuffling", "egadp", "gadp", "imputation", "ipso", "regression_shuffling"]


@pytest.fixture(scope="module")
def survey() -> Table:
    """Income and tax that depend on the region and the hours; the shoe size explains nothing. None is a key."""
    rng = np.random.default_rng(3)
    n = 600
    region, hours, shoe = rng.integers(3, size=n), rng.normal(38, 6, n), rng.normal(42, 2, n)
    income = 1000 * region + 60 * hours + rng.normal(0, 300, n) + 5000
    frame = pd.DataFrame(
        {
            "region": np.array(REGIONS)[region],
            "hours": hours,
            "shoe": shoe,
            "income": income,
            "tax": 0.2 * income + rng.normal(0, 80, n),
        }
    )
    numbers = [Numeric(name, Role.INSENSITIVE, -1e6, 1e6) for name in ("hours", "shoe", "income", "tax")]
    region_column = Categorical("region", Role.QUASI_IDENTIFYING, Hierarchy.flat(REGIONS))
    return Table.from_frame(frame, Schema((region_column, *numbers)))


def masked(table: Table, method: str, **settings: str) -> pd.DataFrame:
    return Pipeline((Step(method, ("income", "tax"), settings),)).anonymize(table, rng=4).to_frame()


def region_means(frame: pd.DataFrame) -> np.ndarray:
    return frame.astype({"income": float}).groupby("region")["income"].mean().to_numpy()


@pytest.mark.parametrize("method", CONDITIONAL)
def test_categories_explain(survey: Table, method: str) -> None:
    """Given the region, its means survive; given nothing, all regions have the same (codes 40 to 43 of Morais 2022)."""
    out = masked(survey, method, given="region,hours")
    assert list(out["region"]) == list(survey.frame["region"]), "given columns stay"
    assert np.array_equal(out["hours"].astype(float), survey.frame["hours"])
    before = region_means(survey.frame)
    np.testing.assert_allclose(region_means(out), before, atol=0.12 * np.ptp(before))
    assert np.ptp(region_means(masked(survey, method, given="shoe"))) < 0.5 * np.ptp(before)


@pytest.mark.parametrize("method", ["egadp", "ipso"])
def test_means_within_categories_are_exact(survey: Table, method: str) -> None:
    out = masked(survey, method, given="region,hours")
    np.testing.assert_allclose(region_means(out), region_means(survey.frame), rtol=1e-9)


def test_only_columns_that_explain_are_chosen(survey: Table) -> None:
    rng = np.random.default_rng(0)
    noise, cause = rng.standard_normal((300, 2)), rng.standard_normal((300, 1))
    x = np.column_stack([cause[:, 0], -cause[:, 0]]) + rng.standard_normal((300, 2))
    assert significant_blocks(x, [noise, cause]) == [1]
    assert significant_blocks(x, [noise]) == []
    before = region_means(survey.frame)
    np.testing.assert_allclose(region_means(masked(survey, "egadp", given="anova")), before, rtol=1e-9)


def test_a_robust_fit_ignores_outliers(survey: Table) -> None:
    rng = np.random.default_rng(1)
    s = rng.standard_normal((400, 1))
    y = 2 * s + 0.1 * rng.standard_normal((400, 1))
    y[:60] = 50.0
    fitted = robust_regression(y, s).fitted
    np.testing.assert_allclose(fitted[60:], 2 * s[60:], atol=0.1)
    spoiled = survey.frame.assign(income=survey.frame["income"].where(np.arange(600) >= 30, 400_000.0))
    table = Table.from_frame(spoiled, survey.schema)
    plain, robust = (
        masked(table, "egadp", given="region,hours", robust=text)["income"].astype(float) for text in ("false", "true")
    )
    assert robust.std() < 0.1 * plain.std()
    assert robust.median() == pytest.approx(survey.frame["income"].median(), rel=0.05)


@pytest.mark.parametrize("correlation", ["spearman", "pearson", "mcd"])
def test_shuffling_by_any_correlation_keeps_values_and_association(survey: Table, correlation: str) -> None:
    out = masked(survey, "data_shuffling", given="hours", correlation=correlation)
    assert sorted(out["income"].astype(float)) == sorted(survey.frame["income"])
    pairs = np.corrcoef(out["income"].astype(float), out["tax"].astype(float))[0, 1]
    assert pairs == pytest.approx(np.corrcoef(survey.frame["income"], survey.frame["tax"])[0, 1], abs=0.05)


def test_what_explains_nothing_or_changes_is_refused(survey: Table) -> None:
    for given in ("tax", "nowhere"):
        with pytest.raises(ConfigError, match="must be numeric or categorical columns that stay unchanged"):
            masked(survey, "egadp", given=given)
