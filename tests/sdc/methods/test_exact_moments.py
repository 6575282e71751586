"""ROMM, IPSO and EGADP keep means and covariances to 1e-10 of the columns' size; GADP in expectation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.sdc.methods.linear_models import egadp, gadp, ipso, romm
from tests.sdc.methods.drawn import Matrix, correlated, correlated_table, original, published, table_of

EXACT = 1e-10


def covariance_error(x: Matrix, y: Matrix, s: Matrix) -> float:
    """Largest error of cov(Y) and cov(Y, S), in units of the columns' standard deviations."""
    scale = np.column_stack([x, s]).std(axis=0, ddof=1)
    scale[scale == 0] = 1
    before, after = (np.cov(np.column_stack([m, s]) - [*x.mean(axis=0), *s.mean(axis=0)], rowvar=False) for m in (x, y))
    return float(np.abs((after - before) / np.outer(scale, scale)).max())


def mean_error(x: Matrix, y: Matrix) -> float:
    """Largest error of a mean, in units of the larger of mean and standard deviation."""
    size = np.maximum(np.abs(x.mean(axis=0)), x.std(axis=0)) + 1e-300
    return float((np.abs(y.mean(axis=0) - x.mean(axis=0)) / size).max())


def explained(x: Matrix, by: Matrix) -> Matrix:
    """R2 of a regression with a constant, from numpy's least squares."""
    scores = (by - by.mean(axis=0)) / by.std(axis=0)
    centered = (x - x.mean(axis=0)) / x.std(axis=0)
    residuals = centered - scores @ np.linalg.lstsq(scores, centered, rcond=None)[0]
    return np.asarray(1 - np.square(residuals).mean(axis=0))


@pytest.mark.parametrize("method", [ipso, egadp])
@pytest.mark.parametrize("n", [12, 200, 20_000])
def test_moments_with_given_columns_are_exact(method, n: int) -> None:  # type: ignore[no-untyped-def]
    data = correlated(n)
    x, s = data[:, :2], data[:, 2:]
    y = method(x, s, np.random.default_rng(1))
    assert mean_error(x, y) < EXACT
    assert covariance_error(x, y, s) < EXACT
    assert np.abs(y - x).min() > 0


@settings(max_examples=60, derandomize=True)
@given(
    n=st.integers(12, 60),
    p=st.integers(1, 3),
    q=st.integers(0, 3),
    size=st.sampled_from([1e-6, 1.0, 1e8]),
    collinear=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_moments_are_exact_on_any_columns(n: int, p: int, q: int, size: float, collinear: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 30, (n, p)).astype(float) * [size, 1.0, 1.0][:p]
    s = np.column_stack([rng.integers(0, 30, (n, q)), *([np.ones(n)] if collinear else [])])
    if collinear and q:
        s = np.column_stack([s, 3 * s[:, 0] - 2])
    for method in (ipso, egadp):
        y = method(x, s, rng)
        assert mean_error(x, y) < EXACT
        assert covariance_error(x, y, s) < EXACT
    turned = romm(x, 2.0, rng)
    assert mean_error(x, turned) < EXACT
    assert covariance_error(x, turned, s[:, :0]) < EXACT


def test_egadp_tells_nothing_beyond_the_given_columns_but_ipso_does() -> None:
    """The R2 of the published seed: R2(X | S, Y) = R2(X | S) for EGADP; larger for IPSO in small tables."""
    data = correlated(30)
    x, s = data[:, :2], data[:, 2:]
    alone = explained(x, s)
    by_egadp = explained(x, np.column_stack([s, egadp(x, s, np.random.default_rng(0))]))
    by_ipso = explained(x, np.column_stack([s, ipso(x, s, np.random.default_rng(0))]))
    np.testing.assert_allclose(by_egadp, alone, atol=EXACT)
    assert (by_ipso > alone + 1e-3).all()


def test_without_given_columns_egadp_is_uncorrelated_with_the_original() -> None:
    x = correlated(500)
    y = egadp(x, x[:, :0], np.random.default_rng(0))
    cross = np.corrcoef(np.column_stack([x, y]), rowvar=False)[:4, 4:]
    assert np.abs(cross).max() < EXACT


def test_gadp_keeps_moments_in_expectation() -> None:
    data = correlated(40_000)
    x, s = data[:, :2], data[:, 2:]
    y = gadp(x, s, np.random.default_rng(0))
    assert 1e-6 < covariance_error(x, y, s) < 0.03
    assert (np.abs(y.mean(axis=0) - x.mean(axis=0)) / x.std(axis=0)).max() < 5 / np.sqrt(40_000)
    # the noise has nothing to do with X: what is left of the correlation is what S explains
    both = np.array([np.corrcoef(x[:, i], y[:, i])[0, 1] for i in range(2)])
    np.testing.assert_allclose(both, explained(x, s), atol=0.02)


def test_gadp_regresses_as_numpy_does() -> None:
    """The fit is b0 + B S with numpy's coefficients: the mean of many draws comes near it."""
    data = correlated(50)
    x, s = data[:, :1], data[:, 1:]
    rng = np.random.default_rng(0)
    mean = np.mean([gadp(x, s, rng) for _ in range(2_000)], axis=0)
    design = np.column_stack([np.ones(50), (s - s.mean(axis=0)) / s.std(axis=0)])
    fit = design @ np.linalg.lstsq(design, x, rcond=None)[0]
    np.testing.assert_allclose(mean, fit, atol=5 * (x - fit).std() / np.sqrt(2_000))


def test_romm_is_an_orthogonal_matrix_that_keeps_the_ones() -> None:
    """Distances between columns and to the ones are those of T X; T itself is recovered on a full basis."""
    n = 12
    x = np.random.default_rng(0).standard_normal((n, n - 1))
    y = romm(x, 1.0, np.random.default_rng(1))
    ones = np.ones((n, 1))
    t = np.column_stack([y, ones]) @ np.linalg.inv(np.column_stack([x, ones]))
    np.testing.assert_allclose(t @ t.T, np.eye(n), atol=1e-10)
    np.testing.assert_allclose(t @ ones, ones, atol=1e-10)


def test_the_magnitude_of_romm_goes_from_nothing_to_chance() -> None:
    x = correlated(4_000)
    near = [
        np.mean([np.corrcoef(x[:, i], romm(x, m, np.random.default_rng(0))[:, i])[0, 1] for i in range(4)])
        for m in (0.0, 0.3, 1.0, 3.0, 1e6)
    ]
    np.testing.assert_allclose(near, [1 / np.sqrt(1 + m**2) for m in (0.0, 0.3, 1.0, 3.0, 1e6)], atol=0.05)


@pytest.mark.parametrize("method", ["romm", "ipso", "egadp"])
def test_the_release_itself_is_exact(method: str) -> None:
    table = correlated_table(300)
    x = original(table)
    chosen = {} if method == "romm" else {"columns": "a,c"}
    y = published(table, method, **chosen)
    stays = [] if method == "romm" else [1, 3]
    np.testing.assert_array_equal(y[:, stays], x[:, stays])
    assert covariance_error(x, y, x[:, :0]) < EXACT
    assert mean_error(x, y) < EXACT


def test_collinear_given_columns_are_as_good_as_independent_ones() -> None:
    data = correlated(100)
    x, s = data[:, :2], data[:, 2:]
    twice = np.column_stack([s, s[:, 0] - 5 * s[:, 1], np.full(100, 7.0)])
    for method in (gadp, ipso, egadp):
        np.testing.assert_allclose(
            method(x, twice, np.random.default_rng(0)), method(x, s, np.random.default_rng(0)), rtol=1e-8
        )


def test_bad_requests() -> None:
    small = correlated_table(8)
    with pytest.raises(InfeasibleError, match=r"'egadp' needs at least 9 rows to change 4 columns, given 0.*has 8\."):
        published(small, "egadp")
    with pytest.raises(InfeasibleError, match=r"'ipso' needs at least 5 rows to change 1 columns, given 3.*has 4\."):
        published(correlated_table(4), "ipso", columns="a")
    with pytest.raises(InfeasibleError, match=r"'romm' needs at least 5 rows"):
        published(correlated_table(4), "romm")
    copies = table_of({"a": np.arange(20.0), "b": 3 * np.arange(20.0) - 1, "c": np.arange(20.0) ** 2})
    for method in ("gadp", "ipso", "egadp", "regression_shuffling", "imputation"):
        with pytest.raises(InfeasibleError, match=r"would publish a unchanged: it follows from the given columns b, c"):
            published(copies, method, columns="a")
    with pytest.raises(
        ConfigError, match=r"given columns of 'gadp' must be numeric .* that stay unchanged\. These are not: a"
    ):
        published(small, "gadp", columns="a", given="a")
    with pytest.raises(ConfigError, match=r"These are not: nowhere"):
        published(small, "gadp", columns="a", given="nowhere")
    with pytest.raises(ConfigError, match=r"changes numeric quasi-identifiers only\. It cannot change: nowhere"):
        published(small, "gadp", columns="nowhere")
