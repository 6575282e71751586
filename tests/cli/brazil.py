"""A Brazilian hospital's months: ';', latin-1, dd/mm/yyyy, CEP, CID-10 with and without dot, some people twice."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from datetime import date, timedelta
from pathlib import Path

import numpy as np

CODES = ("E11.9", "E119", "I10", "I21.0", "J18.9", "J45", "C50.9", "N39.0", "K35.8", "F32.1", "U07.1", "S72.0")
LATER = ("E14.7", "I50", "Q21.1", "R05", "T14.9", "B34.2")
QUASI = ("nascimento", "cep", "sexo", "internacao")

SCHEMA = """
name = "internacoes"
person_id = "prontuario"
[attributes.prontuario]
role = "identifying"
type = "text"
{pseudonym}
[attributes.nascimento]
role = "quasi_identifying"
type = "date"
format = "%d/%m/%Y"
age_at = "2024-12-31"
range = [0, 110]
top = 90
[attributes.cep]
role = "quasi_identifying"
type = "code"
form = "99999-999"
prefixes = [1, 2, 5]
[attributes.sexo]
role = "quasi_identifying"
type = "categorical"
values = ["F", "M"]
[attributes.internacao]
role = "quasi_identifying"
type = "date"
format = "%d/%m/%Y"
range = ["2024-01-01", "2024-12-31"]
{shift}
[attributes.cid]
role = "sensitive"
type = "icd10"
distinct_at = "chapter"
[attributes.alta]
role = "insensitive"
type = "date"
format = "%d/%m/%Y"
{shift}
[attributes."observação"]
role = "insensitive"
type = "text"
"""


def schema_text(*, series: bool = False) -> str:
    """The schema; with ``series`` people are published as pseudonyms and their dates are shifted."""
    parts = ("pseudonym = true", "shift_days = 200") if series else ("", "")
    return SCHEMA.format(pseudonym=parts[0], shift=parts[1])


def write_month(path: Path, month: int, *, people: int = 90, codes: tuple[str, ...] = CODES, seed: int = 0) -> Path:
    """A month of admissions; person ``i`` is the same in every month."""
    lines = ["prontuario;nascimento;cep;sexo;internacao;cid;alta;observação"]
    for i in range(people):
        who, when = np.random.default_rng(i), np.random.default_rng([month, i, seed])
        born = date(1925, 1, 1) + timedelta(days=int(who.integers(0, 98 * 365)))
        fixed = f"{i:05};{born:%d/%m/%Y};{who.integers(10, 60):02}{who.integers(100, 999)}-100;{'FM'[who.integers(2)]}"
        day = date(2024, month, 1)
        for _ in range(int(when.choice([1, 1, 2, 3]))):
            day += timedelta(days=int(when.integers(0, 9)))
            lines.append(f"{fixed};{day:%d/%m/%Y};{when.choice(codes)};{day + timedelta(days=2):%d/%m/%Y};não")
    path.write_bytes("\r\n".join([*lines, ""]).encode("latin-1"))
    return path


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="latin-1", newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def people_of_each_series(path: Path) -> list[int]:
    """How many people share each series of quasi-identifiers, counted from the file and with no code of fedanon's."""
    rows = defaultdict(list)
    for row in read_rows(path):
        if row["prontuario"]:
            rows[row["prontuario"]].append(tuple(row[name] for name in QUASI))
    return sorted(Counter(tuple(sorted(series)) for series in rows.values()).values())


def rows_like_no_other_persons(path: Path) -> int:
    """Published rows whose cells, the pseudonym apart, no other person has."""
    people = defaultdict(set)
    rows = [row for row in read_rows(path) if row["prontuario"]]
    for row in rows:
        people[tuple(value for name, value in row.items() if name != "prontuario")].add(row["prontuario"])
    alone = {cells for cells, who in people.items() if len(who) == 1}
    return sum(tuple(value for name, value in row.items() if name != "prontuario") in alone for row in rows)


def classes_of_series(path: Path) -> int:
    """Different rows of quasi-identifiers, told apart by the series they belong to."""
    rows = defaultdict(list)
    for row in read_rows(path):
        if row["prontuario"]:
            rows[row["prontuario"]].append(tuple(row[name] for name in QUASI))
    return len({(cells, tuple(sorted(series))) for series in rows.values() for cells in series})
