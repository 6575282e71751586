"""The same table with other keys, without incomplete rows, or with some rows."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.data.key_choice import complete_rows, numeric_quasi_identifiers, sample_of, with_quasi_identifiers
from fedanon.datasets import load
from fedanon.errors import ConfigError, SchemaError


def test_exactly_the_named_columns_are_keys_and_the_rest_stays() -> None:
    table = load("nhanes")
    chosen = with_quasi_identifiers(table, ["gender", "bmi"])
    assert [column.name for column in chosen.columns] == ["gender", "bmi"]
    assert numeric_quasi_identifiers(chosen) == ["bmi"]
    assert chosen.frame.equals(table.frame)
    assert chosen.persons is table.persons
    assert chosen.schema.person_id == "person"


def test_identifying_and_unknown_columns_are_refused() -> None:
    with pytest.raises(ConfigError, match="Identifying columns are dropped, so they cannot be keys: person"):
        with_quasi_identifiers(load("nhanes"), ["person"])
    with pytest.raises(SchemaError, match="no column 'height'"):
        with_quasi_identifiers(load("nhanes"), ["height"])


def test_complete_rows_lack_no_number() -> None:
    table = with_quasi_identifiers(load("nhanes"), ["bmi", "waist_cm"])
    complete = complete_rows(table)
    assert len(complete) == int(table.frame[["bmi", "waist_cm"]].notna().all(axis=1).sum()) < len(table)
    assert complete_rows(complete) is complete


def test_a_sample_is_always_the_same_and_in_order() -> None:
    table = load("randhie")
    first, second = sample_of(table, 100), sample_of(table, 100)
    assert first.frame.equals(second.frame)
    assert len(first) == 100
    assert (np.diff(first.frame.index) > 0).all()
    assert sample_of(table, len(table)) is table
