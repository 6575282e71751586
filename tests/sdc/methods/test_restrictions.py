"""Restrictions of numeric methods: zeros stay zero, nothing is negative, also together with reverse mapping."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.sdc.methods.numeric import NumericPerturbation
from tests.sdc.methods.drawn import Matrix, original, published, table_of

METHODS = [name for name, method in ANONYMIZERS.items() if issubclass(method, NumericPerturbation)]
#: columns with zeros fit no distribution; the nearest will do
SETTINGS = {"distortion": {"significance": 0.0}}


def amounts(lowest: float) -> Table:
    """A third zeros, in other rows of each column; the rest above ``lowest``."""
    rng = np.random.default_rng(0)
    columns = {}
    for name in "abc":
        values = lowest + rng.exponential(30, 150)
        values[rng.permutation(150)[:50]] = 0
        columns[name] = values
    return table_of(columns)


def restricted(table: Table, method: str, **options: bool) -> Matrix:
    return published(table, method, **SETTINGS.get(method, {}), **options)


@pytest.mark.parametrize("method", METHODS)
def test_zeros_stay_and_nothing_is_negative(method: str) -> None:
    table = amounts(lowest=1)
    y = restricted(table, method, keep_zeros=True, non_negative=True)
    assert np.all(y[original(table) == 0] == 0)
    assert y.min() == 0


@pytest.mark.parametrize("method", ["additive_noise", "correlated_noise", "kim_noise", "egadp", "data_shuffling"])
def test_without_the_restrictions_zeros_move_and_noise_goes_below_them(method: str) -> None:
    table = amounts(lowest=1)
    y = restricted(table, method)
    assert np.any(y[original(table) == 0] != 0)
    assert method == "data_shuffling" or y.min() < 0


@pytest.mark.parametrize(
    ("method", "lowest"),
    [(name, low) for name in METHODS for low in (1, -20) if (name, low) != ("log_multiplicative_noise", -20)],
)
def test_zeros_and_marginals_are_kept_together(method: str, lowest: float) -> None:
    """Reverse mapping leaves the zeros where they are, also where they are not the smallest values."""
    table = amounts(lowest)
    x, z = original(table), restricted(table, method, keep_zeros=True, reverse_map=True)
    np.testing.assert_array_equal(z == 0, x == 0)
    np.testing.assert_array_equal(np.sort(z, axis=0), np.sort(x, axis=0))


def test_negative_results_take_their_absolute_value() -> None:
    table = amounts(lowest=1)
    plain, bounded = (
        published(table, "additive_noise", c=1.0),
        published(table, "additive_noise", c=1.0, non_negative=True),
    )
    np.testing.assert_array_equal(bounded, np.abs(plain))


def test_what_cannot_be_both_is_refused() -> None:
    table = amounts(lowest=-20)
    with pytest.raises(ConfigError, match=r"column 'a' has \d+ negative values, which reverse_map would publish"):
        published(table, "additive_noise", non_negative=True, reverse_map=True)


@pytest.mark.parametrize("policy", ["category", "wildcard"])
def test_missing_values_elsewhere_do_no_harm(policy: str) -> None:
    frame = pd.DataFrame({"a": [1.0, None] * 10, "b": np.arange(20.0)})
    schema = Schema(tuple(Numeric(name, Role.QUASI_IDENTIFYING, 0, 30) for name in "ab"))
    table = Table.from_frame(frame, schema, missing=policy)  # type: ignore[arg-type]
    plain = ANONYMIZERS["identity"]().anonymize(table, rng=0).to_frame()
    noisy = ANONYMIZERS["additive_noise"](columns="b").anonymize(table, rng=0).to_frame()
    assert list(noisy["a"]) == list(plain["a"])
    assert not np.isclose(noisy["b"].astype(float), frame["b"]).any()
    there = table.select_rows(np.arange(0, 20, 2))
    assert len(restricted(there, "additive_noise", reverse_map=True)) == 10


@pytest.mark.parametrize("method", METHODS)
def test_one_row_is_refused(method: str) -> None:
    with pytest.raises(
        InfeasibleError, match=rf"'{method}' needs at least \d rows to change 1 columns.*The table has 1"
    ):
        restricted(table_of({"a": [3.0]}), method)
