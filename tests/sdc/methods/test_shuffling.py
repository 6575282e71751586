"""Shuffling: marginals exactly, and in large samples the rank correlations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from fedanon.errors import InfeasibleError
from fedanon.sdc.methods.shuffling import average_ranks, copula_model, normal_scores
from tests.sdc.methods.drawn import correlated_table, original, published, table_of

METHODS = ["data_shuffling", "regression_shuffling"]
TABLE = correlated_table(20_000)
X = original(TABLE)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("columns", ["", "a,c"])
def test_marginals_are_exact(method: str, columns: str) -> None:
    y = published(TABLE, method, columns=columns)
    np.testing.assert_array_equal(np.sort(y, axis=0), np.sort(X, axis=0))
    assert (y[:, 0] == X[:, 0]).mean() < 0.01
    if columns:
        np.testing.assert_array_equal(y[:, [1, 3]], X[:, [1, 3]])


def test_rank_correlations_are_kept() -> None:
    y = published(TABLE, "data_shuffling", columns="a,b")
    np.testing.assert_allclose(spearmanr(y).statistic, spearmanr(X).statistic, atol=0.05)


def test_regression_keeps_those_that_are_linear() -> None:
    """The third column is skewed, and a straight line through it misses: it is not given here."""
    y = published(TABLE, "regression_shuffling", columns="a,b", given="d")[:, [0, 1, 3]]
    np.testing.assert_allclose(spearmanr(y).statistic, spearmanr(X[:, [0, 1, 3]]).statistic, atol=0.05)


def test_the_copula_model_is_that_of_the_normal_scores() -> None:
    """Against scipy: Spearman's r, its sine, and the conditional normal of the scores."""
    x, s = X[:300, :2], X[:300, 2:]
    rho = 2 * np.sin(np.pi / 6 * spearmanr(np.column_stack([x, s])).statistic)
    slopes = np.linalg.solve(rho[2:, 2:], rho[2:, :2])
    scores = norm.ppf((average_ranks(s) - 0.5) / 300)
    mean, covariance = copula_model(x, s)
    np.testing.assert_allclose(mean, scores @ slopes, atol=1e-12)
    np.testing.assert_allclose(covariance, rho[:2, :2] - rho[:2, 2:] @ slopes, atol=1e-12)


def test_normal_scores_of_tied_ranks() -> None:
    ranks = average_ranks(np.array([[3.0], [1.0], [3.0], [7.0]]))
    np.testing.assert_array_equal(ranks[:, 0], [2.5, 1, 2.5, 4])
    np.testing.assert_allclose(normal_scores(ranks)[:, 0], norm.ppf([0.5, 0.125, 0.5, 0.875]), atol=1e-15)


def test_bad_requests() -> None:
    table = table_of({"a": np.arange(20) % 7, "b": np.ones(20), "c": np.arange(20)})
    with pytest.raises(InfeasibleError, match=r"'data_shuffling' takes no constant columns: b\."):
        published(table, "data_shuffling")
    with pytest.raises(InfeasibleError, match=r"'data_shuffling' takes no constant columns: b\."):
        published(table, "data_shuffling", columns="a")
    grows = table_of({"a": np.arange(20), "b": np.arange(20) ** 3})
    with pytest.raises(InfeasibleError, match="would publish a unchanged"):
        published(grows, "data_shuffling", columns="a")
