"""A proposed schema errs on the side of caution, and fits the data it was made from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.infer import PROPOSAL, infer_schema, numeric_schema
from fedanon.data.lint import IDENTIFYING, QUASI_IDENTIFYING, suggests
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table
from fedanon.datasets.adult import complete_rows
from fedanon.errors import ConfigError, DataError, SchemaError

N = 120


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    days = pd.date_range("1950-01-01", periods=N, freq="101D").strftime("%Y-%m-%d")
    return pd.DataFrame(
        {
            "patient_id": [f"{i // 2:04d}" for i in range(N)],
            "PatientName": [f"n{i % 7}" for i in range(N)],
            "age": rng.integers(20, 80, N).astype(str),
            "Sex": np.where(np.arange(N) % 2, "M", "F"),
            "zip": [f"{10000 + i * 37}" for i in range(N)],
            "birth_date": days,
            "key": [f"k{i}" for i in range(N)],
            "encounter": [str(5000 + i) for i in range(N)],
            "code": [f"0{i % 9}" for i in range(N)],
            "bmi": [f"{20 + i % 11}.5" for i in range(N)],
            "smoker": ["yes", "?", "no"] * (N // 3),
            "remark": [f"text {i % 80}" for i in range(N)],
            "diagnosis": ["a", "b"] * (N // 2),
            "nothing": [None] * N,
        }
    )


def test_roles_and_types(frame):
    schema = infer_schema(frame, name="ward")
    roles = {a.name: a.role for a in schema.attributes}
    assert schema.identifying == ["patient_id", "PatientName", "key", "encounter"]
    assert [a.name for a in schema.quasi_identifiers] == ["age", "Sex", "zip", "birth_date"]
    assert schema.sensitive == ["diagnosis"]
    assert roles["bmi"] is Role.INSENSITIVE
    assert schema["bmi"] == Numeric("bmi", Role.INSENSITIVE, 20.5, 30.5, False)
    assert isinstance(schema["code"], Categorical)
    assert isinstance(schema["remark"], FreeText)
    assert isinstance(schema["nothing"], FreeText)
    assert schema.missing_values == ("?",)
    assert schema.person_id == "patient_id"
    assert schema["zip"].hierarchy.height.max() > 1
    assert schema["birth_date"].hierarchy.height.max() == 5


def test_the_proposal_fits_the_data_and_reads_back(frame, tmp_path):
    schema = infer_schema(frame, name="ward")
    path = tmp_path / "ward.toml"
    path.write_text(schema_toml(schema, comment=PROPOSAL))
    assert path.read_text().startswith("# A proposal")
    table = Table.from_frame(frame, Schema.read(path))
    assert table.n_units == N // 2


def test_adult_is_proposed_sensibly():
    frame = complete_rows()
    schema = infer_schema(frame, name="adult")
    assert {"age", "sex", "race", "education", "native-country"} <= {a.name for a in schema.quasi_identifiers}
    assert len(Table.from_frame(frame, schema)) == 30162


def test_typed_frames_and_stars():
    schema = infer_schema(pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": ["*", "x", "y"]}), name="t")
    assert schema["a"] == Numeric("a", Role.INSENSITIVE, 1, 2, True)
    assert "*" in schema["b"].hierarchy.codes


def test_empty_frames():
    with pytest.raises(DataError, match="no rows"):
        infer_schema(pd.DataFrame({"a": []}), name="t")
    with pytest.raises(DataError, match="no rows"):
        numeric_schema(pd.DataFrame(), "all")


def test_numeric_schema():
    frame = pd.DataFrame({"a": ["1", "3"], "b": ["0.5", "-2"], "c": ["x", "CANARY-93417"]})
    schema = numeric_schema(frame, ["a"])
    assert [a.name for a in schema.quasi_identifiers] == ["a"]
    assert schema["b"] == Numeric("b", Role.UNDECIDED, -2, 0.5, False)
    assert schema["c"] == FreeText("c", Role.UNDECIDED)
    assert len(numeric_schema(frame[["a", "b"]], "all").quasi_identifiers) == 2
    with pytest.raises(ConfigError, match="no column named: z"):
        numeric_schema(frame, ["z"])
    with pytest.raises(SchemaError, match="'c' is not numeric") as caught:
        numeric_schema(frame, "all")
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize("name", ["ID", "patientId", "e-mail", "Phone number", "CPF", "mrn", "lastname", "IPAddress"])
def test_names_of_identifiers(name):
    assert suggests(name, IDENTIFYING)


@pytest.mark.parametrize("name", ["idp", "paid", "width", "filename2x", "middle"])
def test_names_of_no_identifiers(name):
    assert not suggests(name, IDENTIFYING)


def test_names_of_quasi_identifiers():
    assert suggests("ZIP_code", QUASI_IDENTIFYING)
    assert suggests("birthDate", QUASI_IDENTIFYING)
    assert not suggests("dosage", QUASI_IDENTIFYING)
