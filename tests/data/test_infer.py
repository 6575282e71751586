"""A proposed schema errs on the side of caution, and fits the data it was made from."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedanon.data.infer import infer_columns, infer_schema, numeric_schema, proposed_toml
from fedanon.data.rules import DateRule
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema, type_name
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
    assert schema.identifying == ["patient_id", "PatientName", "key", "encounter", "remark"]
    assert [a.name for a in schema.quasi_identifiers] == ["age", "Sex", "zip", "birth_date"]
    assert schema.sensitive == ["bmi", "smoker", "diagnosis"]
    assert schema.undecided == ["code", "nothing"]
    assert Role.INSENSITIVE not in roles.values()
    assert schema["bmi"] == Numeric("bmi", Role.SENSITIVE, 20.5, 30.5, False)
    assert isinstance(schema["code"], Categorical)
    assert isinstance(schema["remark"], FreeText)
    assert isinstance(schema["nothing"], FreeText)
    assert schema.missing_values == ("?",)
    assert schema.person_id == "patient_id"
    assert schema["zip"].hierarchy.height.max() > 1
    assert schema["birth_date"].rule == DateRule(("%Y-%m-%d",))


def test_the_proposal_fits_the_data_and_reads_back(frame, tmp_path):
    path = tmp_path / "ward.toml"
    path.write_text(proposed_toml(frame, name="ward"))
    assert path.read_text().startswith("# A proposal")
    assert Schema.read(path) == infer_schema(frame, name="ward")
    table = Table.from_frame(frame, Schema.read(path))
    assert table.n_units == N // 2


def test_every_role_has_its_reason_above_it(frame):
    text = proposed_toml(frame, name="ward")
    for proposal in infer_columns(frame):
        assert proposal.reason
        assert f"# {proposal.role}: {proposal.reason}\n[attributes.{proposal.name}]" in text
    names = {f"{value}" for column in ("patient_id", "PatientName", "key", "remark") for value in frame[column]}
    assert not [name for name in names if f'"{name}"' in text or f" {name} " in text], "cells of identifiers"


def test_a_name_that_breaks_a_comment_reads_back():
    frame = pd.DataFrame({"patient\nid \x07": ["1", "2"], "sex": ["f", "m"]})
    schema = Schema.from_dict(tomllib.loads(proposed_toml(frame, name="t")))
    assert schema.names == list(frame)


# ---- people --------------------------------------------------------------------------------------


def visits(name: str, people: int = 60) -> pd.DataFrame:
    """Two rows for everybody."""
    person = np.repeat(np.arange(people), 2)
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            name: [str(17 * i + 3) for i in person],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, people)[person]],
            "race": np.array(["a", "b", "c"])[rng.integers(0, 3, people)[person]],
            "etype": ["1", "2"] * people,
        }
    )


@pytest.mark.parametrize(
    "name",
    ["id", "patient", "subject", "participant", "paciente", "prontuario", "nr_prontuário", "zper", "member", "case"],
)
def test_a_column_of_people_becomes_the_person(name):
    frame = visits(name)
    schema = infer_schema(frame, name="t")
    assert schema.person_id == name
    assert schema.unit == "people"
    assert Table.from_frame(frame, schema).n_units == 60


def test_numbers_that_people_of_both_sexes_share_name_no_person():
    frame = visits("id")
    frame["sex"] = ["f", "m"] * 60
    schema = infer_schema(frame, name="t")
    assert schema.person_id is None
    assert "id" in schema.identifying
    with pytest.raises(SchemaError, match=r"'id' repeats: 60 values on 120 rows"):
        Table.from_frame(frame, schema)


def test_a_person_number_of_one_row_each_is_the_person_and_a_row_number_is_not():
    frame = pd.DataFrame({"patient": [str(i) for i in range(40)], "id": [str(i) for i in range(40)]})
    assert infer_schema(frame, name="t").person_id == "patient"
    text = proposed_toml(frame[["id"]], name="t")
    assert "person_id =" not in "".join(line for line in text.splitlines() if not line.startswith("#"))
    assert "No column says whose row it is, so records are counted, not people" in text


def test_the_number_with_the_fewest_people_is_taken():
    frame = visits("cpf")
    frame.insert(0, "patient_id", [str(i) for i in range(120)])
    assert infer_schema(frame, name="t").person_id == "cpf"


def test_a_brazilian_export_fails_closed():
    """Nothing that identifies is proposed for publication, and what is unknown stops the release."""
    rng = np.random.default_rng(3)
    n = 80
    days = pd.date_range("1940-03-01", periods=n, freq="211D")
    frame = pd.DataFrame(
        {
            "nm_paciente": [f"Maria {a} Souza" for a in "ABCDEFGH" for _ in range(10)],
            "cpf": [f"{i:03d}.456.789-09" for i in range(n)],
            "nr_prontuario": [f"{i * 37:06d}" for i in range(n)],
            "cep": [f"36570-{i:03d}" for i in range(n)],
            "dt_nasc": days.strftime("%d/%m/%Y"),
            "dt_internacao": days.strftime("%d/%m/%Y %H:%M"),
            "telefone": [f"(31) 9{i:04d}-1234" for i in range(n)],
            "contato": [f"p{i}@example.org" for i in range(n)],
            "município": rng.choice(["Viçosa", "Ubá"], n),
            "sexo": rng.choice(["F", "M"], n),
            "raça/cor": rng.choice(["parda", "preta", "branca"], n),
            "glicemia": [f"{v:.1f}".replace(".", ",") for v in rng.normal(110, 9, n)],
            "diagnóstico": rng.choice(["E11", "I10"], n),
            "desfecho": rng.choice(["alta", "óbito"], n),
            "obs": [f"paciente refere melhora desde o dia {i} de uso" for i in range(n)],
            "xyz": rng.choice(["1", "2", "3"], n),
        }
    )
    schema = infer_schema(frame, name="br")
    assert schema.identifying == ["nm_paciente", "cpf", "nr_prontuario", "telefone", "contato", "obs"]
    quasi = [a.name for a in schema.quasi_identifiers]
    assert quasi == ["cep", "dt_nasc", "dt_internacao", "município", "sexo", "raça/cor"]
    assert schema.sensitive == ["glicemia", "diagnóstico", "desfecho"]
    assert schema.undecided == ["xyz"]
    assert schema.person_id == "cpf"


def test_adult_is_proposed_sensibly():
    frame = complete_rows()
    schema = infer_schema(frame, name="adult")
    assert {"age", "sex", "race", "education", "native-country"} <= {a.name for a in schema.quasi_identifiers}
    assert (schema.person_id, schema.one_row_per_person) == (None, None)
    assert len(Table.from_frame(frame, schema)) == 30162


def test_typed_frames_and_stars():
    schema = infer_schema(pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": ["*", "x", "y"]}), name="t")
    assert schema["a"] == Numeric("a", Role.UNDECIDED, 1, 2, True)
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


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("admission", ["2024-01-31", "2023-05-06"], "date"),
        ("admission", ["31/01/2024", "06/05/2023"], "date"),
        ("admission", ["20240131", "20230506"], "date"),
        ("admission", ["31/01/2024 10:30", "06/05/2023 08:00"], "date"),
        ("salary", ["195011", "201199"], "numeric"),
        ("zip", ["01310", "90210"], "code"),
        ("cep", ["01310-100", "01310101"], "code"),
        ("cid10", ["E119", "I10", "E11.9"], "icd10"),
        ("diag_1", ["250.83", "V57", "E909", "8"], "icd9"),
        ("diag_1", ["1", "2", "3"], "numeric"),
        ("sex", ["F", "M"], "categorical"),
    ],
)
def test_rules_are_proposed_where_every_value_fits(name, values, kind):
    [proposal] = infer_columns(pd.DataFrame({name: values * 30}))
    assert type_name(replace(proposal.attribute, role=Role.SENSITIVE)) == kind


def test_day_and_month_that_may_be_swapped_are_to_be_confirmed():
    doubtful, clear = (
        infer_columns(pd.DataFrame({"admitted": days * 30}))[0]
        for days in (["05/06/2023", "07/08/2023"], ["25/06/2023"])
    )
    assert "confirm which number is the day" in doubtful.reason
    assert "confirm which" not in clear.reason
