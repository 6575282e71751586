"""Tables as hospitals export them, with identifiers planted and the truth about them: for property tests.

``generate(seed)`` draws the language, the style of the headers, separator, decimal mark, encoding, how many rows a
person has, and which identifiers there are, under a plain header or one that says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from fedanon.types import Rng

Language = Literal["en", "pt", "es"]
Kind = Literal["name", "national_number", "email", "phone", "record_number", "birth_date"]

#: headers by kind and language; accents are those a person would type
HEADERS: dict[Kind, dict[Language, tuple[str, ...]]] = {
    "name": {
        "en": ("name", "patient_name", "Full Name", "PatientName", "PATIENTNAME"),
        "pt": ("nome", "nm_paciente", "Nome do Paciente", "nomeCompleto", "NOME"),
        "es": ("nombre", "nombre_paciente", "Nombre y Apellidos", "apellidos", "nombreCompleto"),
    },
    "national_number": {
        "en": ("ssn", "SSN", "social_security_number", "SocialSecurity"),
        "pt": ("cpf", "CPF", "nr_cpf", "CPF do paciente", "num_cpf"),
        "es": ("dni", "DNI", "nro_dni", "DNI del paciente"),
    },
    "email": {
        "en": ("email", "e-mail", "EmailAddress"),
        "pt": ("email", "e-mail", "Endereço de e-mail"),
        "es": ("correo", "email", "Correo electrónico"),
    },
    "phone": {
        "en": ("phone", "tel", "Mobile Phone", "phoneNumber"),
        "pt": ("telefone", "nr_telefone", "Celular", "tel_contato"),
        "es": ("teléfono", "telefono", "tel_movil"),
    },
    "record_number": {
        "en": ("MRN", "mrn", "medical_record_number", "Medical Record No"),
        "pt": ("prontuario", "nr_prontuario", "Número do prontuário", "PRONTUÁRIO"),
        "es": ("expediente", "nro_expediente", "historia_clinica", "Historia clínica"),
    },
    "birth_date": {
        "en": ("dob", "birth_date", "Date of Birth", "birthDate"),
        "pt": ("dt_nasc", "data_nascimento", "Data de nascimento", "dtNascimento"),
        "es": ("fecha_nacimiento", "fec_nac", "Fecha de nacimiento"),
    },
}
#: headers that say nothing, for kinds that their values give away
MUTE = ("field_7", "campo_7", "info", "dado", "x3", "contact", "contato", "contacto")
PERSON: dict[Language, tuple[str, ...]] = {
    "en": ("patient", "patient_id", "PatientID", "subject", "participant_no", "pid"),
    "pt": ("paciente", "id_paciente", "cod_paciente", "participante", "nr_paciente"),
    "es": ("paciente", "id_paciente", "sujeto", "participante_id", "nro_paciente"),
}
#: columns that identify nobody directly
OTHERS: dict[Language, dict[str, str]] = {
    "en": {"sex": "sex", "age": "age", "city": "city", "glucose": "glucose", "diagnosis": "diagnosis"},
    "pt": {"sex": "sexo", "age": "idade", "city": "município", "glucose": "glicemia", "diagnosis": "diagnóstico"},
    "es": {"sex": "sexo", "age": "edad", "city": "ciudad", "glucose": "glucosa", "diagnosis": "diagnóstico"},
}
_GIVEN = {
    "en": "James Mary Robert Patricia Zelda Emily Kofi William Susan Ingrid Thomas Laura",
    "pt": "João Maria José Ana Antônio Iracema Carlos Juliana Ubiratan Fernanda Paulo Leticia",
    "es": "Juan Carmen José María Xochitl Javier Isabel Miguel Lucía Yolanda Pablo Elena",
}
_FAMILY = {
    "en": "Smith Jones Okafor Brown Nguyen Wilson Taylor Novak Walker Young",
    "pt": "Silva Souza Oliveira Tanaka Ferreira Alves Gonçalves Ribeiro Araújo Schmidt",
    "es": "García Fernández López Quispe Martínez Rojas Mamani Núñez Romero Ibáñez",
}
_CITIES = {
    "en": ("Leeds", "York", "Bath"),
    "pt": ("Viçosa", "São Paulo", "Juiz de Fora"),
    "es": ("León", "Mérida", "Cuzco"),
}
_DATES = {"en": "%Y-%m-%d", "pt": "%d/%m/%Y", "es": "%d-%m-%Y"}


@dataclass(frozen=True)
class GeneratedTable:
    """A table and the truth about it.

    Parameters
    ----------
    frame : all columns as text, an empty cell is missing; numbers with a point.
    separator, decimal, encoding : how the file is written.
    language : of the headers.
    planted : the columns that identify a person or give a date of birth, with their kinds.
    person : the column that says whose row it is, or None.
    person_of_row : the true person of each row, also where no column says it.
    """

    frame: pd.DataFrame
    separator: str
    decimal: str
    encoding: str
    language: Language
    planted: Mapping[str, Kind]
    person: str | None
    person_of_row: tuple[int, ...]

    @property
    def one_row_per_person(self) -> bool:
        """Whether no person has two rows."""
        return len(set(self.person_of_row)) == len(self.person_of_row)

    @property
    def numbers(self) -> list[str]:
        """The columns of numbers with decimals."""
        return [OTHERS[self.language]["glucose"]]

    def to_bytes(self) -> bytes:
        """The file, as a hospital would send it."""
        written = self.frame.copy()
        for name in self.numbers:
            written[name] = written[name].str.replace(".", self.decimal, regex=False)
        return written.to_csv(index=False, sep=self.separator, lineterminator="\n").encode(self.encoding)


def generate(seed: int) -> GeneratedTable:
    """Return the table of a seed; the same one every time."""
    rng = np.random.default_rng(seed)
    language: Language = ("en", "pt", "es")[int(rng.integers(3))]
    people = int(rng.integers(40, 160))
    alone = bool(rng.random() < 0.4)
    rows = np.arange(people) if alone else np.repeat(np.arange(people), rng.integers(1, 4, people))
    columns: dict[str, list[str]] = {}
    person = str(rng.choice(PERSON[language])) if rng.random() < 0.6 else None
    if person is not None:
        columns[person] = _per_person(rows, [f"{7 * i + 1000}" for i in rng.permutation(people)])
    planted: dict[str, Kind] = {}
    for kind, draw in _DRAWERS.items():
        header = _header(kind, language, rng)
        if rng.random() < 0.5 and header not in columns:
            columns[header] = _per_person(rows, _with_gaps(draw(people, language, rng), rng))
            planted[header] = kind
    columns |= _clinical(rows, people, language, rng)
    order = rng.permutation(len(rows))
    comma = language != "en"
    return GeneratedTable(
        frame=_shuffled(columns, order),
        separator=";" if comma else ",",
        decimal="," if comma else ".",
        encoding=str(rng.choice(["utf-8", "utf-8-sig", "latin-1"])),
        language=language,
        planted=planted,
        person=person,
        person_of_row=tuple(int(row) for row in rows[order]),
    )


def _shuffled(columns: Mapping[str, list[str]], order: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(columns, dtype="str").iloc[order].reset_index(drop=True)
    return frame.where(frame != "")


def _header(kind: Kind, language: Language, rng: Rng) -> str:
    """One of the usual headers, or one that says nothing where the values do."""
    is_mute = kind in ("email", "phone", "national_number", "name", "birth_date") and rng.random() < 0.25
    return str(rng.choice(MUTE if is_mute else HEADERS[kind][language]))


def _with_gaps(values: list[str], rng: Rng) -> list[str]:
    """One column in three is not filled in for everybody."""
    share = rng.uniform(0.05, 0.4) if rng.random() < 1 / 3 else 0.0
    return [value if rng.random() >= share else "" for value in values]


def _per_person(rows: np.ndarray, values: list[str]) -> list[str]:
    return [values[row] for row in rows]


def _clinical(rows: np.ndarray, people: int, language: Language, rng: Rng) -> dict[str, list[str]]:
    names = OTHERS[language]
    return {
        names["sex"]: _per_person(rows, [str(sex) for sex in rng.choice(["F", "M"], people)]),
        names["age"]: _per_person(rows, [str(age) for age in rng.integers(18, 95, people)]),
        names["city"]: _per_person(rows, [str(city) for city in rng.choice(_CITIES[language], people)]),
        names["glucose"]: [f"{value:.1f}" for value in rng.normal(105, 20, len(rows))],
        names["diagnosis"]: [str(code) for code in rng.choice(["E11", "I10", "J45", "K35"], len(rows))],
    }


# ---- identifiers ---------------------------------------------------------------------------------


def _names(count: int, language: Language, rng: Rng) -> list[str]:
    given, family = _GIVEN[language].split(), _FAMILY[language].split()
    upper = rng.random() < 0.3
    names = [f"{rng.choice(given)} {rng.choice(family)} {rng.choice(family)}" for _ in range(count)]
    return [name.upper() for name in names] if upper else names


def _national_numbers(count: int, language: Language, rng: Rng) -> list[str]:
    draw = {"en": _ssn, "pt": _cpf, "es": _dni}[language]
    return [draw(rng) for _ in range(count)]


def _ssn(rng: Rng) -> str:
    return f"{rng.integers(100, 700)}-{rng.integers(10, 99)}-{rng.integers(1000, 9999)}"


def _cpf(rng: Rng) -> str:
    """Nine digits and two check digits, with or without signs between them."""
    digits = [int(d) for d in rng.integers(0, 10, 9)]
    for length in (9, 10):
        rest = sum(d * (length + 1 - i) for i, d in enumerate(digits)) * 10 % 11
        digits.append(rest % 10)
    a = "".join(map(str, digits))
    return f"{a[:3]}.{a[3:6]}.{a[6:9]}-{a[9:]}"


def _dni(rng: Rng) -> str:
    number = int(rng.integers(10_000_000, 99_999_999))
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def _emails(count: int, language: Language, rng: Rng) -> list[str]:
    return [f"user{rng.integers(10**6)}@example.{'com' if language == 'en' else 'org'}" for _ in range(count)]


def _phones(count: int, language: Language, rng: Rng) -> list[str]:
    forms: dict[Language, Callable[[int, int], str]] = {
        "en": lambda a, b: f"({a % 800 + 200}) 555-{b:04d}",
        "pt": lambda a, b: f"({a % 89 + 11}) 9{a:04d}-{b:04d}",
        "es": lambda a, b: f"+34 6{a % 90 + 10} {a % 900 + 100} {b % 900 + 100}",
    }
    return [forms[language](int(a), int(b)) for a, b in rng.integers(0, 9999, (count, 2))]


def _record_numbers(count: int, language: Language, rng: Rng) -> list[str]:
    numbers = rng.choice(10**6, count, replace=False)
    return [f"{number:07d}" if rng.random() < 0.999 else f"{number}" for number in numbers]


def _birth_dates(count: int, language: Language, rng: Rng) -> list[str]:
    days = pd.Timestamp("1930-01-01") + pd.to_timedelta(rng.integers(0, 30_000, count), unit="D")
    return [str(day) for day in days.strftime(_DATES[language])]


_DRAWERS: dict[Kind, Callable[[int, Language, Rng], list[str]]] = {
    "name": _names,
    "national_number": _national_numbers,
    "email": _emails,
    "phone": _phones,
    "record_number": _record_numbers,
    "birth_date": _birth_dates,
}
