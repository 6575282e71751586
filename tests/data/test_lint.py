"""The second look finds what was planted, and quotes no value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.lint import lint_schema
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.datasets.adult import complete_rows
from fedanon.datasets.files import bundled_schema

N = 300


def test_planted_faults_are_found():
    rng = np.random.default_rng(0)
    town = rng.integers(0, 30, N)
    towns = [f"CANARY-{i}" for i in range(30)]
    frame = pd.DataFrame(
        {
            "town": [towns[i] for i in town],
            "area": [f"area{i}" for i in town],
            "serial no": [f"CANARY-{i}" for i in range(N)],
            "age": rng.integers(20, 80, N),
            "noise": rng.integers(0, 5, N),
        }
    )
    schema = Schema(
        (
            Categorical("town", Role.QUASI_IDENTIFYING, Hierarchy.flat(towns)),
            FreeText("area", Role.INSENSITIVE),
            FreeText("serial no", Role.INSENSITIVE),
            Numeric("age", Role.QUASI_IDENTIFYING, 0, 110, True),
            FreeText("noise", Role.INSENSITIVE),
        )
    )
    warnings = lint_schema(Table.from_frame(frame, schema))
    found = "\n".join(warnings)
    assert "'serial no' has 300 values on 300 rows" in found
    assert "'serial no' is insensitive, but its name is that of an identifier" in found
    assert "insensitive column 'area' determines the quasi-identifier 'town' on 100% of the rows" in found
    assert "No column is sensitive" in found
    assert "'town' has 30 values in a flat taxonomy" in found
    assert "noise" not in found
    assert "CANARY" not in found
    assert len(warnings) == 5


def test_a_copy_of_education_is_found():
    schema = bundled_schema("adult")
    schema = schema.replacing(replace(schema["education-num"], role=Role.INSENSITIVE))
    warnings = lint_schema(Table.from_frame(complete_rows(), schema))
    assert any("'education-num' determines the quasi-identifier 'education' on 100%" in warning for warning in warnings)


def test_bundled_schemas_are_clean():
    for name in ("adult", "nhanes", "randhie"):
        assert lint_schema(load(name)) == []
