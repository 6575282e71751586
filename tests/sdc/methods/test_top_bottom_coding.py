"""Top and bottom coding by value and by share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.errors import ConfigError
from fedanon.sdc.methods.coding import TopBottomCoding
from tests.sdc.methods.keyed import key_table, published

VALUES = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 20])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 20]),  # at most 5 % of ten records is none
        ({"top_share": 0.2}, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]),
        ({"top": 7}, [1, 2, 3, 4, 5, 6, 7, 7, 7, 7]),
        ({"top": 7, "replace": "mean"}, [1, 2, 3, 4, 5, 6, 7, 37 / 3, 37 / 3, 37 / 3]),
        ({"bottom": 3, "replace": "mean"}, [1.5, 1.5, 3, 4, 5, 6, 7, 8, 9, 20]),
        ({"bottom": 2.5, "top": 8.5}, [2.5, 2.5, 3, 4, 5, 6, 7, 8, 8.5, 8.5]),
    ],
)
def test_by_hand(settings: dict[str, object], expected: list[float]) -> None:
    np.testing.assert_allclose(TopBottomCoding(**settings).code(VALUES), expected)  # type: ignore[arg-type]


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    share=st.floats(0, 1),
)
def test_never_more_than_the_share_is_coded(values: list[float], share: float) -> None:
    given_values = np.array(values)
    coded = TopBottomCoding(top_share=share).code(given_values)
    assert (coded != given_values).sum() <= share * len(values) + 1e-9
    kept = TopBottomCoding(top_share=share / 2, bottom_share=share / 2, replace="mean").code(given_values)
    assert kept.mean() == pytest.approx(given_values.mean(), abs=1e-6)


def test_missing_values_stay_and_other_columns_too() -> None:
    table = key_table("category", age=[10, 90, None], x=["a", "b", "c"])
    out = published(table, TopBottomCoding(top=50))
    assert out["age"].tolist() == ["10", "50", "(missing)"]
    assert out["x"].tolist() == ["a", "b", "c"]


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="a value or a share, not both"):
        TopBottomCoding(top=5, top_share=0.1)
    with pytest.raises(ConfigError, match="bottom threshold lies above"):
        TopBottomCoding(top=1, bottom=5).code(VALUES)
    with pytest.raises(ConfigError, match=r"numeric quasi-identifiers only\. It cannot change: x"):
        TopBottomCoding(columns="x").anonymize(key_table(age=[1], x=["a"]), rng=0)
