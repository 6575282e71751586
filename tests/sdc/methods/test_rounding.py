"""Rounding: multiples of the base, and the two end sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.sdc.methods.coding import Rounding


def rounded(values: list[float], low: float, high: float, **settings: object) -> list[float]:
    frame = pd.DataFrame({"a": values})
    table = Table.from_frame(frame, Schema((Numeric("a", Role.QUASI_IDENTIFYING, low, high),)))
    return Rounding(**settings).anonymize(table, rng=0).to_frame()["a"].astype(float).tolist()  # type: ignore[arg-type]


def test_the_sets_of_the_seed() -> None:
    """p_i = 10 i up to 47, the largest value possible: [0, 15) -> 10, [15, 25) -> 20, ..., [35, 47] -> 40."""
    values = [0, 3, 9.9, 14.9, 15, 24.9, 25, 35, 44, 45, 46, 47]
    assert rounded(values, 0, 47, base=10.0) == [10, 10, 10, 10, 20, 20, 30, 40, 40, 40, 40, 40]


def test_the_lower_end_begins_at_zero_even_where_the_range_does_not() -> None:
    assert rounded([17, 18, 90], 17, 90, base=5.0) == [15, 20, 90]


def test_zeros_may_stay() -> None:
    assert rounded([0, 3, 12], 0, 47, base=10.0, keep_zeros=True) == [0, 10, 10]


def test_a_range_below_zero_has_its_own_first_point() -> None:
    assert rounded([-10, -9, -8, -7, -1, 0, 4], -10, 5, base=3.0) == [-9, -9, -9, -6, 0, 0, 3]


def test_small_bases_round_as_usual() -> None:
    values = np.random.default_rng(0).uniform(1, 9, 200)
    np.testing.assert_allclose(rounded(values.tolist(), 0, 10, base=0.5), np.floor(values / 0.5 + 0.5) * 0.5)


def test_bad_requests() -> None:
    with pytest.raises(ConfigError, match=r"column 'a' has no multiple of the base 50 in its range"):
        rounded([1, 2], 0, 47, base=50.0)
    with pytest.raises(ConfigError, match=r"The 'base' parameter of Rounding must be a float > 0\. Got 0 instead\."):
        Rounding(base=0.0)
