"""Names of columns in three languages, shapes of values, and what both say together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.detectors.columns import judge_column
from fedanon.data.detectors.headers import header_words, names_person, read_header
from fedanon.data.detectors.shapes import are_names, are_numbers, are_sentences, are_whole_numbers, shape_of
from fedanon.data.schema import Role


def cells(*values: str) -> pd.Series[str]:
    return pd.Series(values, dtype="string")


# ---- names of columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["patientName", "patient_name", "Patient name", "PATIENTNAME", "patient.name"])
def test_words_are_the_same_however_they_are_joined(name: str) -> None:
    assert {"patient", "name"} <= header_words(name)


PERSON = """
patient subject participant respondent paciente participante sujeito prontuario matricula beneficiario Prontuário
patient_id PatientID patient_nbr nr_prontuario cod_paciente id_do_participante uniquepid pidnum CPF mrn SEQN
"""
NO_PERSON = """
patient_age idade_paciente nm_paciente PatientName patients n_patients personality_score outpatient hospital_id
patientunitstayid employee_id case_id id sexo_do_paciente diagnostico_paciente
"""


@pytest.mark.parametrize("name", PERSON.split())
def test_names_of_person_numbers(name: str) -> None:
    assert names_person(name)


@pytest.mark.parametrize("name", NO_PERSON.split())
def test_names_of_something_else_than_a_person(name: str) -> None:
    assert not names_person(name)


@pytest.mark.parametrize(
    "name",
    [
        "ID",
        "e-mail",
        "Phone number",
        "CPF",
        "lastname",
        "IPAddress",
        "nm_mae",
        "Endereço",
        "nr_telefone",
        "apellidos",
        "rg",
    ],
)
def test_names_of_identifiers(name: str) -> None:
    assert read_header(name).topic(Role.IDENTIFYING) is not None


@pytest.mark.parametrize(
    "name",
    [
        "idp",
        "paid",
        "width",
        "filename2x",
        "avoid",
        "fluid",
        "lipid",
        "phone_type",
        "hospital_name",
        "nome_medicamento",
    ],
)
def test_names_of_no_identifiers(name: str) -> None:
    header = read_header(name)
    assert header.topic(Role.IDENTIFYING) is None
    assert header.whose is None


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("ZIP_code", "quasi_identifying"),
        ("birthDate", "quasi_identifying"),
        ("dt_nasc", "quasi_identifying"),
        ("cod_mun", "quasi_identifying"),
        ("CODMUNRES", "quasi_identifying"),
        ("raça/cor", "quasi_identifying"),
        ("escolaridade_mae", "quasi_identifying"),
        ("date_of_diagnosis", "quasi_identifying"),
        ("estado civil", "quasi_identifying"),
        ("dosage", "sensitive"),
        ("pressão sistólica", "sensitive"),
        ("causa_obito", "sensitive"),
        ("hospital_mortality", "sensitive"),
        ("atorvastatin", "sensitive"),
        ("wave", "insensitive"),
        ("z7", "undecided"),
        ("edlevel", "undecided"),
    ],
)
def test_roles_by_name(name: str, role: str) -> None:
    column = cells(*"aabbccddeeffgghhaabb")
    assert judge_column(name, column, rows=len(column)).role == role


# ---- values --------------------------------------------------------------------------------------

NUMBERS = {
    "Brazilian CPF numbers": ["52998224725", "11144477735", "12345678909", "39053344705", "15350946056"],
    "Brazilian CNPJ numbers": ["11.222.333/0001-81", "11444777000161"],
    "NHS numbers": ["943 476 5919", "401 023 2137"],
    "UK national insurance numbers": ["AB 12 34 56 C", "JG121316A"],
    "Spanish identity numbers": ["12345678Z", "X1234567L"],
    "Portuguese identity numbers": ["00000000 0 ZZ4"],
    "French social security numbers": ["2 95 10 99 126 111 93"],
    "Italian tax codes": ["RCCMNL83S18D969H"],
    "Chilean RUT numbers": ["12.531.909-2"],
    "IBAN account numbers": ["GB29 NWBK 6016 1331 9268 19", "BR1800360305000010009795493C1"],
    "payment card numbers": ["4111 1111 1111 1111", "5500-0055-5555-5559"],
    "dates": ["31/01/2020", "2020-01-31T10:15:00-03:00", "31JAN2020", "31 de janeiro de 2020", "20200131"],
    "times of day": ["23:36:00", "9:05"],
}


def _card(start: str) -> str:
    """A number of fifteen digits whose weighted sum is a multiple of eleven."""
    numbers = (f"{start}{end:0{15 - len(start)}d}" for end in range(10**4))
    return next(n for n in numbers if sum(int(digit) * (15 - i) for i, digit in enumerate(n)) % 11 == 0)


NUMBERS["Brazilian health card numbers"] = [_card(start) for start in ("7000", "898", "7020", "2001", "1234")]


@pytest.mark.parametrize(("title", "values"), NUMBERS.items(), ids=list(NUMBERS))
def test_shapes_of_numbers(title: str, values: list[str]) -> None:
    found = shape_of(cells(*values))
    assert found is not None
    assert found.title == title


def test_check_digits_are_checked() -> None:
    rng = np.random.default_rng(0)
    random = [f"{n:011d}" for n in rng.integers(10**10, 10**11, 500)]
    assert shape_of(cells(*random)) is None, "eleven digits are no CPF numbers"
    assert shape_of(cells("52998224725", "11144477735", "7", "8")) is None, "two of them may be chance"


def test_numbers_with_a_decimal_comma() -> None:
    assert are_numbers(cells("1,5", "-0,25", "1.234,5", "12"))
    assert not are_numbers(cells("1,5", "x"))
    assert not are_numbers(cells("007", "008"))
    assert are_whole_numbers(cells("3", "4.0"))
    assert not are_whole_numbers(cells("3", "4.5"))


def test_names_and_sentences() -> None:
    assert are_names(cells("João da Silva", "MARIA SOUZA", "Xu, Ana", "Zé Pimenta", "Kofi Boateng"))
    assert not are_names(cells("insulin", "aspirin", "none", "metformin", "other"))
    notes = [f"the patient came back on day {i} and was well" for i in range(30)]
    assert are_sentences(cells(*notes))
    assert not are_sentences(cells(*["a code that is long but the same"] * 30))


# ---- together ------------------------------------------------------------------------------------


def test_values_count_more_than_names() -> None:
    column = cells(*(f"CANARY{i}@example.org" for i in range(30)))
    found = judge_column("glucose", column, rows=30)
    assert (found.role, found.sign) == (Role.IDENTIFYING, "shape")
    assert "CANARY" not in found.reason


def test_few_values_number_nobody() -> None:
    column = cells(*["1", "2"] * 50)
    assert judge_column("participant", column, rows=100).role is Role.UNDECIDED
    assert judge_column("phone", column, rows=100).role is Role.UNDECIDED


def test_what_is_unknown_is_undecided_unless_it_is_a_record_number() -> None:
    assert judge_column("zz", cells(*["3", "4", "5"] * 10), rows=30).role is Role.UNDECIDED
    assert judge_column("zz", cells(*(f"{i * 1.5}" for i in range(30))), rows=30).role is Role.UNDECIDED
    assert judge_column("zz", cells(*(f"k{i}" for i in range(30))), rows=30).role is Role.IDENTIFYING
    assert judge_column("diagnosis_id", cells(*(str(5000 + i) for i in range(30))), rows=30).role is Role.IDENTIFYING
    assert judge_column("zz", cells(), rows=30).role is Role.UNDECIDED
    assert judge_column("zz", cells(*["x"] * 30), rows=30).role is Role.INSENSITIVE
