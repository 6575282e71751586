"""The 18 kinds of HIPAA Safe Harbor: each is found by names and, where it has one, by shape; no value is told."""

from __future__ import annotations

import pandas as pd
import pytest

from fedanon.data.detectors.headers import KINDS, kinds_of_name
from fedanon.data.detectors.shapes import SHAPES, shape_of
from fedanon.data.lint import lint_schema, safe_harbor
from fedanon.data.schema import FreeText, Numeric, Role, Schema
from fedanon.data.table import Table

NAMES = {
    "A": ["patientName", "nome_do_paciente", "Surname"],
    "B": ["zip_code", "município", "street address", "CEP"],
    "C": ["date_of_birth", "admission", "idade", "data de nascimento"],
    "D": ["phone", "telefoneCelular"],
    "E": ["fax"],
    "F": ["email", "e-mail"],
    "G": ["SSN", "cpf"],
    "H": ["MRN", "prontuário", "cartão SUS"],
    "I": ["beneficiary_number", "convênio"],
    "J": ["account_no", "conta"],
    "K": ["driver license", "passport"],
    "L": ["VIN", "placa"],
    "M": ["device_serial"],
    "N": ["URL"],
    "O": ["ip_address"],
    "P": ["fingerprint", "biometria"],
    "Q": ["photo", "foto"],
    "R": ["patient_id", "uuid", "matrícula"],
}
VALUES = {
    "B": ["12345-678", "90210-1234", "-23.5505, -46.6333"],
    "C": ["2020-01-31", "31/01/2020", "2020-01-31 10:15"],
    "D": ["+55 11 91234-5678", "(11) 91234-5678", "555-123-4567"],
    "F": ["someone@example.org"],
    "G": ["123-45-6789", "123.456.789-09"],
    "H": ["943 476 5919"],
    "J": ["GB29 NWBK 6016 1331 9268 19"],
    "L": ["1HGCM82633A004352"],
    "M": ["00:1b:44:11:3a:b7"],
    "N": ["https://example.org/p/1", "www.example.org"],
    "O": ["10.0.0.1", "fe80::1"],
    "R": ["123e4567-e89b-12d3-a456-426614174000"],
}
HARMLESS = ["flu", "C50.9", "120/80", "12345", "[20, 30]", "3.14", "positive", "2020", "A+", "10-20"]


def test_the_list_is_complete() -> None:
    assert "".join(kind.letter for kind in KINDS) == "ABCDEFGHIJKLMNOPQR"
    assert set(NAMES) == {kind.letter for kind in KINDS}
    assert set(VALUES) == {shape.kind.letter for shape in SHAPES}


@pytest.mark.parametrize(("letter", "name"), [(letter, name) for letter, names in NAMES.items() for name in names])
def test_names(letter: str, name: str) -> None:
    assert letter in [kind.letter for kind in kinds_of_name(name)]


@pytest.mark.parametrize("name", ["diagnosis", "cost", "platelets", "sex", "wbc_count", "cell_count", "data_source"])
def test_harmless_names(name: str) -> None:
    assert kinds_of_name(name) == []


@pytest.mark.parametrize(
    ("letter", "value"), [(letter, value) for letter, values in VALUES.items() for value in values]
)
def test_shapes(letter: str, value: str) -> None:
    found = shape_of(pd.Series([value, f" {value} "]))
    assert found is not None
    assert found.kind.letter == letter


@pytest.mark.parametrize("value", HARMLESS)
def test_harmless_shapes(value: str) -> None:
    assert shape_of(pd.Series([value] * 3)) is None


def test_most_values_must_have_the_shape() -> None:
    assert shape_of(pd.Series(["a@b.org", "none", "nothing"])) is None
    assert shape_of(pd.Series([], dtype="str")) is None


def planted() -> tuple[Schema, pd.DataFrame]:
    n = 30
    frame = pd.DataFrame(
        {
            "patient_id": [f"CANARY{i}" for i in range(n)],
            "age": range(n),
            "contact": [f"CANARY{i}@example.org" for i in range(n)],
            "remark": [f"CANARY told {i}" for i in range(n)],
            "cost": [i * 1.5 for i in range(n)],
        }
    )
    roles = {"contact": Role.SENSITIVE, "remark": Role.INSENSITIVE}
    texts = [FreeText(name, role) for name, role in roles.items()]
    age, cost = Numeric("age", Role.QUASI_IDENTIFYING, 0, 110), Numeric("cost", Role.INSENSITIVE, 0, 100)
    return Schema((FreeText("patient_id", Role.IDENTIFYING), age, *texts, cost)), frame


def test_columns_are_found_with_their_sign() -> None:
    schema, frame = planted()
    found = [(look.kind.letter, look.column, look.sign, look.published) for look in safe_harbor(schema, frame)]
    assert found == [
        ("C", "age", "name", False),
        ("F", "contact", "shape", True),
        ("R", "patient_id", "name", False),
        ("R", "remark", "name", True),
    ]
    assert [look.column for look in safe_harbor(schema)] == ["age", "patient_id", "remark"], "names need no data"


def test_the_schema_check_warns_and_quotes_no_value() -> None:
    schema, frame = planted()
    warnings = "\n".join(lint_schema(Table.from_frame(frame, schema)))
    assert "The sensitive column 'contact' looks like an identifier" in warnings
    assert "e-mail addresses" in warnings
    assert "CANARY" not in warnings
