"""A made-up table as a Brazilian hospital exports it, and the same rows in the other formats hospitals have."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from stdnum.br import cpf as cpf_number

HOSPITALS = ("Santa Clara", "São José", "Misericórdia", "Regional", "Universitário")
CODES = ("I10", "E11.9", "J18.9", "N39.0", "C50.9")


def hospital_rows(people: int = 260, seed: int = 0) -> pd.DataFrame:
    """A row per stay; every sixth person has two."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for i in range(people):
        age = int(rng.integers(18, 95))
        first = f"{100000000 + 7919 * i:09d}"
        person = {
            "cpf": cpf_number.format(first + cpf_number._calc_check_digits(first)),
            "nome": f"Conceição {i}",
            "nascimento": pd.Timestamp(2024 - age, 1 + i % 12, 1 + i % 28),
            "sexo": "FM"[int(rng.integers(2))],
            "cep": f"{int(rng.integers(1000, 9999)):05d}-{int(rng.integers(1000)):03d}",
            "hospital": HOSPITALS[i % len(HOSPITALS)],
        }
        for stay in range(1 + (i % 6 == 0)):
            died = "sim" if rng.random() < (age - 10) / 120 else "não"
            weight = round(float(rng.normal(70, 12)), 1)
            row = person | {"idade": age, "peso": weight, "cid": CODES[(i + stay) % len(CODES)], "obito": died}
            rows.append(row)
    return pd.DataFrame(rows)


#: how every column is declared
ATTRIBUTES = {
    "cpf": 'role = "identifying"',
    "nome": 'role = "identifying"',
    "nascimento": 'role = "identifying"',
    "sexo": 'role = "quasi_identifying"\ntype = "categorical"\nvalues = ["F", "M"]',
    "cep": 'role = "identifying"',
    "hospital": 'role = "identifying"',
    "idade": 'role = "quasi_identifying"\ntype = "numeric"\nrange = [0, 120]\ninteger = true',
    "peso": 'role = "sensitive"\ntype = "numeric"',
    "cid": 'role = "sensitive"',
    "obito": 'role = "sensitive"\ntype = "categorical"\nvalues = ["não", "sim"]',
}


def hospital_schema(*columns: str) -> str:
    """The schema of some columns in their order, by default of all."""
    declared = (f"[attributes.{name}]\n{ATTRIBUTES[name]}\n" for name in columns or ATTRIBUTES)
    return 'person_id = "cpf"\ntarget = "obito"\n' + "".join(declared)


def write_csv(rows: pd.DataFrame, path: Path) -> Path:
    """With semicolons, decimal commas, days first, and in Latin-1."""
    shown = rows.assign(
        nascimento=rows["nascimento"].dt.strftime("%d/%m/%Y"), peso=[f"{w:.1f}".replace(".", ",") for w in rows["peso"]]
    )
    path.write_bytes(shown.to_csv(index=False, sep=";", lineterminator="\r\n").encode("latin-1"))
    return path


def write_excel(rows: pd.DataFrame, path: Path, sheet: str = "internações") -> Path:
    """As Excel keeps it: dates as dates, numbers as numbers."""
    import openpyxl

    book = openpyxl.Workbook()
    page = book.active
    page.title = sheet
    page.append(list(rows.columns))
    for row in rows.itertuples(index=False):
        page.append([value.to_pydatetime() if isinstance(value, pd.Timestamp) else value for value in row])
    book.save(path)
    return path


def write_sqlite(rows: pd.DataFrame, path: Path) -> str:
    """As a table of a database; returns its address."""
    shown = rows.assign(nascimento=rows["nascimento"].dt.strftime("%Y-%m-%d"))
    connection = sqlite3.connect(path)
    try:
        connection.execute(CREATE)
        connection.executemany(f"INSERT INTO stays VALUES ({', '.join('?' * shown.shape[1])})", shown.values.tolist())
        connection.commit()
    finally:
        connection.close()
    return f"sqlite:///{path}"


CREATE = """
CREATE TABLE stays (cpf TEXT, nome TEXT, nascimento DATE, sexo TEXT, cep TEXT, hospital TEXT, idade INTEGER,
peso DOUBLE PRECISION, cid TEXT, obito TEXT)
"""


def write_fhir(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """A bulk export of patients and encounters; returns the views that make the rows of it again."""
    folder.mkdir()
    patients = rows.drop_duplicates("cpf").to_dict("records")
    number = {row["cpf"]: i for i, row in enumerate(patients)}
    _write(folder / "Patient.ndjson", [_patient(row, i) for i, row in enumerate(patients)])
    stays = [_encounter(row, i, f"p{number[row['cpf']]}") for i, row in enumerate(rows.to_dict("records"))]
    _write(folder / "Encounter.ndjson", stays)
    views = [folder.parent / "encounters.json", folder.parent / "patients.json"]
    for path, view in zip(views, (ENCOUNTERS, PATIENTS), strict=True):
        path.write_text(json.dumps(view), encoding="utf-8")
    return views


def _write(path: Path, resources: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(resource) + "\n" for resource in resources), encoding="utf-8")


def _patient(row: dict[Any, Any], number: int) -> dict[str, Any]:
    return {
        "resourceType": "Patient",
        "id": f"p{number}",
        "identifier": [{"system": CPF, "value": row["cpf"]}],
        "name": [{"text": row["nome"]}],
        "gender": {"F": "female", "M": "male"}[row["sexo"]],
        "birthDate": f"{row['nascimento']:%Y-%m-%d}",
        "address": [{"postalCode": row["cep"]}],
    }


def _encounter(row: dict[Any, Any], number: int, patient: str) -> dict[str, Any]:
    measured = {"idade": row["idade"], "peso": row["peso"]}
    return {
        "resourceType": "Encounter",
        "id": f"e{number}",
        "status": "finished",
        "class": {"code": "IMP"},
        "subject": {"reference": f"Patient/{patient}"},
        "reasonCode": [{"coding": [{"system": CID, "code": row["cid"]}]}],
        "serviceProvider": {"display": row["hospital"]},
        "hospitalization": {"dischargeDisposition": {"text": row["obito"]}},
        "extension": [{"url": f"urn:example:{name}", "valueDecimal": value} for name, value in measured.items()],
    }


CPF, CID = "http://rnds.saude.gov.br/fhir/r4/NamingSystem/cpf", "http://hl7.org/fhir/sid/icd-10"

ENCOUNTERS = {
    "resource": "Encounter",
    "constant": [{"name": "cid", "valueString": CID}],
    "where": [{"path": "status = 'finished'"}],
    "select": [
        {
            "column": [
                {"name": "id", "path": "subject.getReferenceKey(Patient)"},
                {"name": "hospital", "path": "serviceProvider.display"},
                {"name": "idade", "path": "extension('urn:example:idade').value.ofType(decimal)"},
                {"name": "peso", "path": "extension('urn:example:peso').value.ofType(decimal)"},
                {"name": "obito", "path": "hospitalization.dischargeDisposition.text"},
            ]
        },
        {"forEach": "reasonCode.coding.where(system = %cid)", "column": [{"name": "cid", "path": "code"}]},
    ],
}
PATIENTS = {
    "resource": "Patient",
    "select": [
        {
            "column": [
                {"name": "id", "path": "getResourceKey()"},
                {"name": "cpf", "path": "identifier.first().value"},
                {"name": "nome", "path": "name.first().text"},
                {"name": "nascimento", "path": "birthDate"},
                {"name": "cep", "path": "address.first().postalCode"},
                {"name": "sexo", "path": "iif(gender = 'female', 'F', 'M')"},
            ]
        }
    ],
}
