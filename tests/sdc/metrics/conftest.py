"""The tables of which sdcMicro's numbers are known, and their releases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedanon.anonymizers.baselines import Identity
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets.adult import complete_rows
from fedanon.datasets.files import bundled_schema
from fedanon.release.release import Release

KEYS = ("sex", "race", "marital-status", "education", "workclass")
Case = tuple[Table, Release]


def _adult_schema() -> Schema:
    """Five keys, occupation sensitive."""
    schema = bundled_schema("adult").with_quasi_identifiers(KEYS)
    occupation = replace(schema["occupation"], role=Role.SENSITIVE)
    income = replace(schema["income"], role=Role.INSENSITIVE)
    return schema.replacing(occupation, income)


@pytest.fixture(scope="session")
def adult() -> Case:
    """Adult as it is, every record standing for one person."""
    table = Table.from_frame(complete_rows(), _adult_schema())
    return table, Identity().anonymize(table, rng=0)


@pytest.fixture(scope="session")
def adult_sample() -> Case:
    """Adult as a sample with the weights fnlwgt / 1000."""
    frame = complete_rows()
    frame["fnlwgt"] = frame["fnlwgt"].astype(float) / 1000
    schema = _adult_schema().replacing(Numeric("fnlwgt", Role.IDENTIFYING, 10, 1500))
    table = Table.from_frame(frame, replace(schema, weight="fnlwgt"))
    return table, Identity().anonymize(table, rng=0)
