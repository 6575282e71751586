"""The second look finds what was planted, and quotes no value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.lint import lint_schema, suspects
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
    assert "The insensitive column 'serial no' looks like an identifier (HIPAA Safe Harbor: device" in found
    assert "insensitive column 'area' determines the quasi-identifier 'town' on 100% of the rows" in found
    assert "No column is sensitive" in found
    assert "'town' has 30 values in a flat taxonomy" in found
    assert "noise" not in found
    assert "CANARY" not in found
    assert len(warnings) == 4


def test_a_copy_of_education_is_found():
    schema = bundled_schema("adult")
    schema = schema.replacing(replace(schema["education-num"], role=Role.INSENSITIVE))
    warnings = lint_schema(Table.from_frame(complete_rows(), schema))
    assert any("'education-num' determines the quasi-identifier 'education' on 100%" in warning for warning in warnings)


def test_bundled_schemas_publish_no_identifier():
    """What others may know and the literature's choice of quasi-identifiers leaves out is said, and nothing else."""
    known = {
        "adult": ["relationship", "capital-gain", "capital-loss"],
        "nhanes": ["health_insurance"],
        "randhie": ["site"],
    }
    for name, columns in known.items():
        table = load(name)
        found = suspects(table)
        assert [suspect.column for suspect in found] == columns
        assert {suspect.judgment.role for suspect in found} == {Role.QUASI_IDENTIFYING}
        assert len(lint_schema(table)) == len(columns)


def test_suspects_are_the_published_columns_alone():
    frame = pd.DataFrame(
        {
            "patient": [f"CANARY-{i // 2}" for i in range(60)],
            "age": [str(20 + i % 30) for i in range(60)],
            "contact": [f"CANARY{i}@example.org" for i in range(60)],
            "seen": ["2020-01-31", "2020-02-29"] * 30,
            "city": ["x", "y", "z"] * 20,
            "glucose": ["1.5", "2.5"] * 30,
        }
    )
    roles = {"patient": "insensitive", "contact": "sensitive", "seen": "sensitive", "city": "sensitive"}
    attributes = [FreeText(name, Role(role)) for name, role in roles.items()]
    schema = Schema(
        (*attributes, Numeric("age", Role.QUASI_IDENTIFYING, 0, 110), Numeric("glucose", Role.SENSITIVE, 0, 9))
    )
    found = suspects(Table.from_frame(frame, schema))
    assert [(s.column, str(s.judgment.role), s.judgment.sign) for s in found] == [
        ("patient", "identifying", "name"),
        ("contact", "identifying", "shape"),
        ("seen", "quasi_identifying", "shape"),
    ]
    assert "CANARY" not in "".join(suspect.warning for suspect in found)
