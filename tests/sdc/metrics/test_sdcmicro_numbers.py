"""Numbers that sdcMicro printed, on the public table of Morais 2022, section 6.3, and in its own test suite."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.data.cells import Numbers
from fedanon.data.infer import numeric_schema
from fedanon.data.table import Table
from fedanon.metrics import evaluate
from fedanon.sdc.metrics.diversity import diversity
from fedanon.sdc.metrics.individual_risk import Frequencies, benedetti_franconi_risk
from fedanon.sdc.metrics.sdcmicro_risk import key_risk, sdcmicro_household_risk, sdcmicro_risk
from fedanon.sdc.metrics.suda import dis_intervals, minimal_sample_uniques
from tests.metrics.metric_cases import released

FILE = Path(os.environ.get("FEDANON_DATA", "")) / "eusilc" / "eusilcS.csv"
needs_eusilc = pytest.mark.skipif(not FILE.exists(), reason="needs the folder named by FEDANON_DATA")
NUMBERS = ["netIncome", "py130n", "py100n", "py090n"]
#: the keys whose numbers the text prints; it names db040 in place of pl030
KEYS = ["pl030", "pb220a", "hsize", "age"]


@pytest.fixture(scope="module")
def eusilc() -> pd.DataFrame:
    return pd.read_csv(FILE)


def codes_of(frame: pd.DataFrame, names: list[str]) -> np.ndarray:
    """Codes of the columns, -1 where missing."""
    return np.column_stack([pd.factorize(frame[name], sort=True)[0] for name in names]).astype(np.int32)


@needs_eusilc
def test_risk_of_the_original(eusilc: pd.DataFrame) -> None:
    """Code 26: createSdcObj, print, print(sdc, 'risk'), ldiversity."""
    keys = codes_of(eusilc, KEYS)
    found = key_risk(keys, eusilc["rb050"].to_numpy())
    assert [int((found.counts.sample < k).sum()) for k in (2, 3, 5)] == [939, 1605, 2531]
    assert found.risk.sum() == pytest.approx(544.28, abs=0.005)
    households = pd.factorize(eusilc["db030"])[0]
    assert sdcmicro_household_risk(found.risk, households).sum() == pytest.approx(1773.52, abs=0.005)
    labels = pd.factorize(pd.Series(map(tuple, keys)))[0]
    income = diversity(labels, pd.factorize(eusilc["netIncome"], use_na_sentinel=False)[0]).distinct
    # before 5.8.1, a record with a missing key was a class of its own
    lone = np.where((keys < 0).any(axis=1), labels.max() + 1 + np.arange(len(keys)), labels)
    sex = diversity(lone, pd.factorize(eusilc["rb090"])[0]).distinct
    assert np.quantile(income, [0, 0.25, 0.5, 0.75, 1]).tolist() == [1, 1, 7, 21, 70]
    assert income.mean() == pytest.approx(12.96, abs=0.005)
    assert sex.mean() == pytest.approx(1.59, abs=0.005)


@needs_eusilc
def test_special_uniques(eusilc: pd.DataFrame) -> None:
    """Code 29: suda2 with its table of intervals and the contributions of the keys."""
    uniques = minimal_sample_uniques(codes_of(eusilc, KEYS))
    assert dis_intervals(uniques.dis_scores()).tolist() == [10786, 939, 0, 0, 0, 0, 0, 0, 0]
    expected = [70.96774, 51.01868, 75.72156, 98.72666]
    np.testing.assert_allclose(100 * uniques.contributions(), expected, atol=5e-6)


def test_contributions_of_correlated_keys() -> None:
    """tests/testthat/test_suda2.R of sdcMicro 5.8.1: 50, 37.5 and 37.5 per cent."""
    keys = np.array([[2, 0, 0], [1, 3, 6], [1, 0, 0]], dtype=np.int32)
    np.testing.assert_allclose(minimal_sample_uniques(keys).contributions(), [0.5, 0.375, 0.375])


@needs_eusilc
def test_numbers_after_restricted_noise(eusilc: pd.DataFrame) -> None:
    """Code 28: addNoise(noise = 160, method = 'restr') draws nothing, so that its numbers can be met.

    It shrinks the columns and adds the four shifts of the means in turn down the rows, rather than one per column.
    2,203 records lack all four numbers.
    """
    x = eusilc[NUMBERS].to_numpy()
    n = len(x)
    shrink = np.sqrt((n - 1) / (n + 1.6 * n - 1))
    shifts = (1 - shrink) * np.nanmean(x, axis=0)
    y = shrink * x + np.resize(shifts, x.size).reshape(4, n).T
    table = Table.from_frame(eusilc[NUMBERS], numeric_schema(eusilc[NUMBERS], "all"), missing="category")
    cells = {name: Numbers(column) for name, column in zip(NUMBERS, y.T, strict=True)}
    found = evaluate(
        table,
        released(table, list(range(n)), cells),
        ["interval_risk_records", "il1_sdcmicro", "eigenvalues_correlation"],
    )
    assert found["interval_risk_records"] == pytest.approx(0.1879, abs=5e-5)
    assert found["il1_sdcmicro"] == pytest.approx(543549.10, abs=0.005)
    assert found["eigenvalues_correlation"] == pytest.approx(0.49170, abs=1e-4)


def test_risk_of_francdat() -> None:
    """The example of freqCalc and indivRisk in the manual (Franconi & Polettini 2004): f, F and risk of 8 records."""
    f = np.array([2, 2, 2, 1, 1, 1, 1, 2])
    weights = np.array([110, 84.5, 84.5, 17, 541, 8, 5, 110.0])
    counts = Frequencies(f, weights)
    np.testing.assert_allclose(sdcmicro_risk(counts), benedetti_franconi_risk(counts), rtol=1e-12)
    np.testing.assert_allclose(
        sdcmicro_risk(counts),
        [0.01714426, 0.02204233, 0.02204233, 0.17707583, 0.01165448, 0.29706308, 0.40235948, 0.01714426],
        atol=5e-9,
    )
