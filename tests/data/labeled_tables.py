"""The tables of labels.toml, read where they are at hand, and what a proposal for them is worth."""

from __future__ import annotations

import json
import lzma
import tarfile
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.data.infer import infer_columns
from fedanon.data.schema import Role
from fedanon.datasets.files import bundled_bytes, find, text_frame

#: rows that are read of a table: long ones would only take longer
MOST_ROWS = 20_000


@dataclass(frozen=True)
class Labels:
    """What a person says about a table."""

    name: str
    source: str
    path: str
    part: int
    identifiers: tuple[str, ...]
    person: str | None

    @property
    def telling(self) -> set[str]:
        """The columns that must not be published."""
        return {*self.identifiers, *([self.person] if self.person else [])}


@dataclass(frozen=True)
class Score:
    """What was found of a table."""

    table: str
    found: tuple[str, ...]
    missed: tuple[str, ...]
    person_is_right: bool
    others: tuple[str, ...]
    undecided: tuple[str, ...]
    dropped: tuple[str, ...]


def labels() -> list[Labels]:
    document = tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))
    return [
        Labels(name, entry["source"], entry["path"], entry["part"], tuple(entry["identifiers"]), entry.get("person"))
        for name, entry in document.items()
    ]


def score(table: Labels, frame: pd.DataFrame) -> Score:
    """Compare a proposal with the labels; a person column counts as found only if it is proposed where it repeats."""
    proposals = infer_columns(frame)
    roles = {proposal.name: proposal.role for proposal in proposals}
    person = next((proposal.name for proposal in proposals if proposal.is_person), None)
    repeats = table.person is not None and not frame[table.person].is_unique
    others = [name for name in roles if name not in table.telling]
    return Score(
        table=table.name,
        found=tuple(name for name in roles if name in table.telling and roles[name] is Role.IDENTIFYING),
        missed=tuple(name for name in roles if name in table.telling and roles[name] is not Role.IDENTIFYING),
        person_is_right=person == table.person if repeats else person in (None, table.person),
        others=tuple(others),
        undecided=tuple(name for name in others if roles[name] is Role.UNDECIDED),
        dropped=tuple(name for name in others if roles[name] is Role.IDENTIFYING),
    )


# ---- reading -------------------------------------------------------------------------------------


def read(table: Labels) -> pd.DataFrame | None:
    """The rows of a table as text, as a CSV file gives them; None where it is not at hand."""
    if table.source == "bundled":
        frame = _bundled(table.path)
    elif table.source == "shared":
        frame = _shared(table.path)
    elif table.source == "pydataset":
        frame = _of_pydataset(table.path)
    else:
        frame = _of_package(table.source, table.path)
    return None if frame is None else frame.head(MOST_ROWS)


def _bundled(path: str) -> pd.DataFrame:
    if path == "adult":
        from fedanon.datasets.adult import complete_rows

        return complete_rows()
    return text_frame(bundled_bytes(f"{path}.csv.xz"))


def _shared(path: str) -> pd.DataFrame | None:
    file = find(path)
    if file is None:
        return None
    if ".ndjson" in path:
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        flat = _flat_patient if "Patient" in path else _flat_condition
        return pd.DataFrame([flat(row) for row in rows]).astype("string")
    return _text(pd.read_csv(file, dtype=str, keep_default_na=False, na_values=[""]))


def _package(name: str) -> Path | None:
    spec = find_spec(name)
    return None if spec is None or not spec.submodule_search_locations else Path(spec.submodule_search_locations[0])


def _of_package(name: str, path: str) -> pd.DataFrame | None:
    folder = _package(name)
    if folder is None:
        return None
    file = folder / path
    if file.suffix == ".dta":
        return _text(pd.read_stata(file, convert_categoricals=False))
    options: dict[str, Any] = {"dtype": str, "keep_default_na": False, "na_values": [""], "skipinitialspace": True}
    first = file.read_text(encoding="utf-8-sig").partition("\n")[0]
    separator = next(sign for sign in "\t,; " if sign in first)
    return _text(pd.read_csv(file, sep=separator, **options))


@cache
def _archive() -> dict[str, bytes]:
    """The files of pydataset that are needed; the archive is long to read, so it is read once."""
    folder = _package("pydataset")
    if folder is None:
        return {}
    wanted = {f"resources/rdata/csv/{table.path}.csv": table.path for table in labels() if table.source == "pydataset"}
    with tarfile.open(folder / "resources.tar.gz") as archive:
        members = (member for member in archive if member.name in wanted)
        return {wanted[member.name]: _bytes(archive, member) for member in members}


def _bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _of_pydataset(path: str) -> pd.DataFrame | None:
    data = _archive().get(path)
    return None if data is None else _text(text_frame(data))


def _text(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the row names of R, a first column without a name, and the quotes of some headers."""
    first = str(frame.columns[0])
    frame = frame.drop(columns=first) if first.strip() == "" or first.startswith("Unnamed") else frame
    return frame.rename(columns=lambda name: str(name).strip().strip("'"))


def _flat_patient(row: dict[str, Any]) -> dict[str, Any]:
    name, address = row["name"][0], row["address"][0]
    numbers = {
        f"identifier.{kind}": entry["value"]
        for entry in row["identifier"]
        if (kind := entry.get("type", {}).get("coding", [{}])[0].get("code"))
    }
    place = {part["url"]: part["valueDecimal"] for part in address["extension"][0]["extension"]}
    extra = {entry["url"].rpartition("/")[2]: entry for entry in row["extension"]}
    return {
        "id": row["id"],
        **numbers,
        "name.family": name["family"],
        "name.given": name["given"][0],
        "name.prefix": (name.get("prefix") or [None])[0],
        "telecom": row["telecom"][0]["value"],
        "gender": row["gender"],
        "birthDate": row["birthDate"],
        "address.line": address["line"][0],
        "address.city": address["city"],
        "address.state": address["state"],
        "address.postalCode": address.get("postalCode"),
        "address.country": address["country"],
        **place,
        "maritalStatus": row["maritalStatus"]["text"],
        "multipleBirth": row.get("multipleBirthBoolean"),
        "language": row["communication"][0]["language"]["text"],
        "mothersMaidenName": extra.get("patient-mothersMaidenName", {}).get("valueString"),
        "qualityAdjustedLifeYears": extra.get("quality-adjusted-life-years", {}).get("valueDecimal"),
    }


def _flat_condition(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "clinicalStatus": row["clinicalStatus"]["coding"][0]["code"],
        "verificationStatus": row["verificationStatus"]["coding"][0]["code"],
        "code.code": row["code"]["coding"][0]["code"],
        "code.text": row["code"]["text"],
        "subject.reference": row["subject"]["reference"],
        "encounter.reference": row["encounter"]["reference"],
        "onsetDateTime": row.get("onsetDateTime"),
        "abatementDateTime": row.get("abatementDateTime"),
        "recordedDate": row.get("recordedDate"),
    }
