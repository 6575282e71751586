"""Sampling weights and households: columns that measures need and releases do not show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers.baselines import Identity
from fedanon.data.schema import FreeText, Numeric, Role, Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table
from fedanon.datasets.files import bundled_schema
from fedanon.errors import SchemaError
from fedanon.metrics import evaluate

SCHEMA = Schema(
    (
        Numeric("age", Role.QUASI_IDENTIFYING, 0.0, 99.0),
        Numeric("w", Role.IDENTIFYING, 0.0, 1000.0),
        FreeText("home", Role.IDENTIFYING),
    ),
    weight="w",
    household="home",
)
FRAME = pd.DataFrame({"age": [20, 30, 30, 40], "w": [2.0, 5, 5, 10], "home": ["b", "a", "b", "c"]})


def test_they_are_read_at_the_border_and_follow_the_rows() -> None:
    table = Table.from_frame(FRAME, SCHEMA)
    assert list(table.frame) == ["age"]
    assert table.weights is not None
    assert table.weights.tolist() == [2, 5, 5, 10]
    assert table.households is not None
    assert table.households.tolist() == [1, 0, 1, 2]
    few = table.select_rows([3, 0])
    assert few.weights is not None
    assert few.weights.tolist() == [10, 2]
    assert few.households is not None
    assert few.households.tolist() == [1, 0]
    assert table.with_taxonomies().weights is table.weights


def test_measures_use_them() -> None:
    table = Table.from_frame(FRAME, SCHEMA)
    found = evaluate(table, Identity().anonymize(table, rng=0), ["global_risk_naive", "violations_3_population"])
    assert found == {"global_risk_naive": pytest.approx((1 / 2 + 2 / 10 + 1 / 10) / 4), "violations_3_population": 1}
    plain = replace(table, weights=None)
    found = evaluate(plain, Identity().anonymize(plain, rng=0), ["household_risk"])
    # risks 1, 1/2, 1/2, 1; the first and the third live together
    assert found["household_risk"] == pytest.approx((1 + 0.5 + 1 + 1) / 4)


def test_a_schema_without_them_keeps_its_hash() -> None:
    adult = replace(bundled_schema("adult"), one_row_per_person=None)
    assert adult.sha256 == "f98c0bfe4b863c642abf1ba68fe7e12eecd985cf44a8e26be9c5355035227422"
    assert SCHEMA.sha256 != replace(SCHEMA, weight=None).sha256 != replace(SCHEMA, household=None).sha256


def test_the_data_hash_sees_them() -> None:
    table = Table.from_frame(FRAME, SCHEMA)
    heavier = Table.from_frame(FRAME.assign(w=[3.0, 5, 5, 10]), SCHEMA)
    assert table.sha256 != heavier.sha256


def test_they_are_written_to_toml(tmp_path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(schema_toml(SCHEMA))
    assert Schema.read(path) == SCHEMA


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"weight": "mass"}, "weight column 'mass' is not declared"),
        ({"household": "house"}, "household column 'house' is not declared"),
        ({"weight": "home"}, "weight column 'home' must be numeric"),
    ],
)
def test_schema_errors(change: dict[str, str], match: str) -> None:
    with pytest.raises(SchemaError, match=match):
        replace(SCHEMA, **change)


@pytest.mark.parametrize(
    ("column", "values", "match"),
    [
        ("w", [2.0, 0, 5, 5], "weight column 'w' has 1 values that are missing or not above 0"),
        ("w", [2.0, np.nan, np.nan, 5], "weight column 'w' has 2 values that are missing or not above 0"),
        ("w", [2.0, np.inf, 5, 5], "column 'w' has 1 values that are infinite"),
        ("w", ["2", "many", "5", "5"], "column 'w' has 1 values that are not numbers"),
        ("home", ["a", None, "b", "b"], "household column 'home' has 1 missing values"),
    ],
)
def test_data_errors(column: str, values: list[object], match: str) -> None:
    with pytest.raises(SchemaError, match=match):
        Table.from_frame(FRAME.assign(**{column: values}), SCHEMA)
