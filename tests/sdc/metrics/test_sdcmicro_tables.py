"""Values of R's sdcMicro on generated tables: missing keys and numbers, ties, weights below 1, one to seven keys.

The numbers in sdcmicro_5_8_1.json were computed by sdcMicro 5.8.1 (R 4.2.2, robustbase 0.95) from the tables that
:func:`make_table` makes; docs/reference/sdc_metrics.md says by which calls. Of a number per record, the sum and the
sum weighted with the place of the record are kept.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from fedanon.data.cells import Numbers
from fedanon.data.groups import Groups
from fedanon.data.infer import numeric_schema
from fedanon.data.table import Table
from fedanon.metrics import evaluate
from fedanon.sdc.methods.suppression import wildcard_suppressions
from fedanon.sdc.metrics.diversity import diversity
from fedanon.sdc.metrics.individual_risk import MAD_FACTOR, above_main_part
from fedanon.sdc.metrics.log_linear import unique_risks
from fedanon.sdc.metrics.numeric_risk import records_in_interval
from fedanon.sdc.metrics.sdcmicro_risk import key_risk, sdcmicro_household_risk
from fedanon.sdc.metrics.suda import minimal_sample_uniques
from tests.metrics.metric_cases import released

EXPECTED = json.loads(Path(__file__).with_name("sdcmicro_5_8_1.json").read_text())


class Made(NamedTuple):
    """Codes of the keys (-1 missing), weights, households, a sensitive column (NaN missing), numbers before, after."""

    keys: np.ndarray
    weights: np.ndarray
    households: np.ndarray
    sensitive: np.ndarray
    original: np.ndarray
    masked: np.ndarray


def make_table(seed: int) -> Made:
    """Make a table by numpy's frozen generator: the same rows in every version."""
    draw = np.random.RandomState(seed)
    n, width = int(draw.choice([40, 97, 210, 500, 1200, 2500])), int(draw.randint(1, 8))
    keys = np.column_stack([_key(draw, n) for _ in range(width)])
    kind = draw.randint(3)
    weights = (
        np.round(1 + draw.gamma(1.5, 8, n), 3),
        draw.choice([1.0, 2.5, 7.0, 40.0], n),
        np.round(0.5 + draw.rand(n) * 3, 4),
    )[kind]
    households = np.sort(draw.randint(0, max(2, n // 3), n))
    sensitive = draw.randint(0, 6, n).astype(float)
    if draw.rand() < 0.5:
        sensitive[draw.rand(n) < 0.08] = np.nan
    draw.exponential(3, n)  # a second sensitive column, of which no number is kept
    codes = np.column_stack([pd.factorize(column, sort=True)[0] for column in keys.T]).astype(np.int32)
    return Made(codes, weights, households, sensitive, *_numbers(draw, n))


def _key(draw: np.random.RandomState, n: int) -> np.ndarray:
    levels = int(draw.choice([1, 2, 3, 5, 8, 14]))
    values = draw.choice(levels, n, p=draw.dirichlet(np.full(levels, 0.6))).astype(float)
    if draw.rand() < 0.4:
        chances = draw.rand(n)
        values[chances < draw.choice([0.01, 0.1, 0.3])] = np.nan
    return values


def _numbers(draw: np.random.RandomState, n: int) -> tuple[np.ndarray, np.ndarray]:
    width = int(draw.randint(2, 6))
    mixed = draw.normal(size=(width, width))
    original = draw.normal(size=(n, width)) @ mixed + draw.normal(0, 20, width)
    if draw.rand() < 0.5:
        original = np.round(original)
    if draw.rand() < 0.4:
        original[:, 0] = np.where(draw.rand(n) < 0.4, 0, original[:, 0])
    noise = draw.normal(size=(n, width)) * original.std(axis=0)
    masked = original + noise * draw.choice([0.02, 0.1, 0.5])
    same = draw.rand(n) < 0.2
    masked[same] = original[same]
    if draw.rand() < 0.5:
        gaps = draw.rand(n, width) < 0.06
        original[gaps] = masked[gaps] = np.nan
    return original, masked


@pytest.fixture(scope="module", params=sorted(EXPECTED))
def case(request: pytest.FixtureRequest) -> tuple[Made, dict[str, Any]]:
    return make_table(int(request.param)), EXPECTED[request.param]


def assert_same(values: np.ndarray, expected: list[float]) -> None:
    """Compare the sum and the sum weighted with the place."""
    found = [values.sum(), (values * np.arange(1, len(values) + 1)).sum()]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-6)


def test_risk_of_keys(case: tuple[Made, dict[str, Any]]) -> None:
    """freqCalc, indivRisk and measure_risk; a missing key agrees with anything."""
    made, expected = case
    found = key_risk(made.keys, made.weights)
    assert_same(found.counts.sample, expected["sample_counts"])
    assert_same(found.counts.population, expected["population_counts"])
    assert_same(found.risk, expected["risk"])
    assert_same(key_risk(made.keys, None).risk, expected["risk_without_weights"])
    assert int(above_main_part(found.risk, MAD_FACTOR).sum()) == expected["above_main_part"]
    households = sdcmicro_household_risk(found.risk, made.households)
    assert households.sum() == pytest.approx(expected["household_expected"], rel=1e-7)


def test_special_uniques(case: tuple[Made, dict[str, Any]]) -> None:
    """suda2 with both kinds of scores."""
    made, expected = case
    uniques = minimal_sample_uniques(made.keys)
    assert_same(uniques.scores(), expected["suda"])
    assert_same(uniques.dis_scores(), expected["dis_suda"])
    assert_same(uniques.scores("ihsn"), expected["suda_ihsn"])
    assert_same(uniques.dis_scores("ihsn"), expected["dis_suda_ihsn"])
    np.testing.assert_allclose(100 * uniques.contributions(), expected["contributions"], atol=1e-6)


def test_diversity(case: tuple[Made, dict[str, Any]]) -> None:
    """ldiversity: who lacks a key is a class alone, and every missing sensitive value one of its own."""
    made, expected = case
    classes = _alone(Groups.equal_rows(made.keys).labels, (made.keys < 0).any(axis=1))
    codes = pd.factorize(made.sensitive, sort=True)[0]
    found = diversity(classes, _alone(codes, codes < 0))
    for kind, values in found._asdict().items():
        assert_same(values, expected[kind])


def _alone(codes: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    found = codes.astype(np.int64)
    found[chosen] = found.max() + 1 + np.arange(chosen.sum())
    return found


def test_numbers(case: tuple[Made, dict[str, Any]]) -> None:
    """dRisk, dUtility and IL_correl."""
    made, expected = case
    intervals = [records_in_interval(made.original, made.masked, alpha).mean() for alpha in (0.01, 0.05, 0.1)]
    np.testing.assert_allclose(intervals, expected["intervals"], atol=1e-9)
    frame = pd.DataFrame(made.original, columns=[f"x{j}" for j in range(made.original.shape[1])])
    table = Table.from_frame(frame, numeric_schema(frame, "all"), missing="category")
    cells = {name: Numbers(column) for name, column in zip(frame, made.masked.T, strict=True)}
    names = ["il1_sdcmicro", "il1s_sdcmicro", "eigenvalues_correlation", "il_correlation_sdcmicro"]
    for name, value in evaluate(table, released(table, list(range(len(frame))), cells), names).items():
        assert value == pytest.approx(expected[name], rel=1e-7), name


@pytest.mark.parametrize("seed", [seed for seed, expected in EXPECTED.items() if expected["log_linear"]])
def test_log_linear_risk(seed: str) -> None:
    """modRisk, method 'default' with main effects, of the records that have all keys.

    sdcMicro fails where a key has one value, and needs a cell for every combination: three tables have no number.
    """
    made = make_table(int(seed))
    np.testing.assert_allclose(unique_risks(made.keys, made.weights), EXPECTED[seed]["log_linear"], rtol=1e-6)


def test_no_more_suppressed_cells(case: tuple[Made, dict[str, Any]]) -> None:
    """LocalSuppression by freqCalc's count for k = 2 to 10; the fewest values come first, as there by default."""
    made, expected = case
    order = np.argsort([len(np.unique(column)) for column in made.keys.T], kind="stable")
    codes = np.ascontiguousarray(made.keys[:, order])
    for k, most in zip(range(2, 11), expected["suppressed"], strict=True):
        suppressed = wildcard_suppressions(codes, k)
        assert key_risk(np.where(suppressed, -1, codes).astype(np.int32), None).counts.sample.min() >= k
        assert int((suppressed & (codes >= 0)).sum()) <= most
