"""A release as FHIR R4 resources (NDJSON), and read back.

Every row is a Patient without a name, whose extensions are the quasi-identifiers, followed by an Observation for each
other column. A generalized number is a Range, a span of days a Period, any other cell a text; a suppressed cell says
``masked`` and a missing one ``unknown`` by HL7's data-absent-reason. The ids only number the rows of the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote

import pandas as pd

from fedanon.data.hierarchy import MISSING, ROOT
from fedanon.data.schema import Schema
from fedanon.errors import DataError

COLUMN = "urn:fedanon:column:"
ABSENT = "http://hl7.org/fhir/StructureDefinition/data-absent-reason"
REASONS = "http://terminology.hl7.org/CodeSystem/data-absent-reason"
#: what a cell that says nothing is called in a release, by the reason
_EMPTY = {"masked": ROOT, "unknown": MISSING}

_SPAN = re.compile(r"\[(\S+), (\S+)\]")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def write_resources(file: BinaryIO, frame: pd.DataFrame, schema: Schema) -> None:
    """Write the published rows, one resource per line."""
    quasi = [a.name for a in schema.quasi_identifiers]
    others = [str(name) for name in frame.columns if name not in quasi]
    for number, row in enumerate(frame.to_dict("records"), 1):
        for resource in _resources(f"row-{number}", row, quasi, others):
            file.write(json.dumps(resource, ensure_ascii=False).encode() + b"\n")


def _resources(key: str, row: Mapping[Any, Any], quasi: list[str], others: list[str]) -> Iterator[dict[str, Any]]:
    extensions = [extension_of(name, str(row[name])) for name in quasi]
    yield {"resourceType": "Patient", "id": key, **({"extension": extensions} if extensions else {})}
    hidden = bool(quasi) and all(row[name] == ROOT for name in quasi) and all(pd.isna(row[name]) for name in others)
    for position, name in enumerate(others, 1):
        yield {
            "resourceType": "Observation",
            "id": f"{key}-{position}",
            "status": "final",
            "code": {"text": name},
            "subject": {"reference": f"Patient/{key}"},
            **observed(row[name], hidden=hidden),
        }


def extension_of(name: str, text: str) -> dict[str, Any]:
    """The extension of a Patient that holds a generalized cell."""
    url = COLUMN + quote(name)
    reason = next((reason for reason, said in _EMPTY.items() if said == text), None)
    if reason is not None:
        return {"url": url, "extension": [{"url": ABSENT, "valueCode": reason}]}
    return {"url": url, **_value(text)}


def observed(value: Any, *, hidden: bool = False) -> dict[str, Any]:
    """The value of an Observation, or why there is none."""
    if pd.isna(value):
        return {"dataAbsentReason": {"coding": [{"system": REASONS, "code": "masked" if hidden else "unknown"}]}}
    return {"valueString": value} if isinstance(value, str) else _value(str(value))


def _value(text: str) -> dict[str, Any]:
    """A cell as the type of FHIR that says the same, if reading it back gives the same text."""
    if (number := _exact(text)) is not None:
        return {"valueQuantity": {"value": number}}
    if span := _SPAN.fullmatch(text):
        low, high = (_exact(end) for end in span.groups())
        if low is not None and high is not None:
            return {"valueRange": {"low": {"value": low}, "high": {"value": high}}}
        if all(map(_DAY.fullmatch, span.groups())):
            return {"valuePeriod": {"start": span.group(1), "end": span.group(2)}}
    return {"valueString": text}


def _exact(text: str) -> int | float | None:
    """The number that JSON writes with the very same digits."""
    try:
        number = json.loads(text)
    except ValueError:
        return None
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    return number if is_number and json.dumps(number, allow_nan=True) == text and number - number == 0 else None


# ---- reading -------------------------------------------------------------------------------------


def read_resources(path: Path) -> pd.DataFrame:
    """The published columns as text, of a file that :func:`write_resources` wrote."""
    rows: list[dict[str, str | None]] = []
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                resource = json.loads(line, parse_float=str, parse_int=str)
                if resource["resourceType"] == "Patient":
                    cells = [_read_extension(entry) for entry in resource.get("extension", [])]
                    rows.append(dict(cells))
                else:
                    rows[-1][resource["code"]["text"]] = _read_value(resource)
    except FileNotFoundError:
        raise DataError(f"The file {path} does not exist.") from None
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise DataError(f"The file {path.name} is not a release in FHIR resources, or it is damaged.") from None
    if not rows:
        raise DataError(f"The file {path.name} is empty.")
    return pd.DataFrame(rows, dtype="str")


def _read_extension(entry: Mapping[str, Any]) -> tuple[str, str | None]:
    name = unquote(entry["url"].removeprefix(COLUMN))
    if "extension" in entry:
        return name, _EMPTY[entry["extension"][0]["valueCode"]]
    return name, _read_value(entry)


def _read_value(holder: Mapping[str, Any]) -> str | None:
    if "valueQuantity" in holder:
        return str(holder["valueQuantity"]["value"])
    if "valueRange" in holder:
        ends = holder["valueRange"]
        return f"[{ends['low']['value']}, {ends['high']['value']}]"
    if "valuePeriod" in holder:
        return f"[{holder['valuePeriod']['start']}, {holder['valuePeriod']['end']}]"
    return holder.get("valueString")
