"""FHIR R4 bulk exports (NDJSON) at the border: resources become the rows of views.

The first view gives the rows. Every further one adds its columns to them, by the columns whose names both have: a
view of conditions and one of patients that share ``patient_id`` give a row per condition with the patient's columns.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedanon.data.readers import READERS
from fedanon.data.schema import Schema
from fedanon.errors import ConfigError, DataError
from fedanon.io.fhir_views import FhirView
from fedanon.io.typed_columns import typed_frame

ENDING = ".ndjson"
#: a profile of the standard itself that names a version: .../fhir/5.0/StructureDefinition/Patient or ...Patient|5.0.0
_PROFILE = re.compile(r"https?://hl7\.org/fhir/(?:(\d)\.\d+/)?StructureDefinition/\w+(?:\|(\d)\.\d+.*)?")
_R4 = "4"

#: elements whose JSON type tells another version from R4: type of resource, element, type in that version, version
_MARKS: tuple[tuple[str, str, type, str], ...] = (
    ("Condition", "clinicalStatus", str, "STU3"),
    ("Condition", "assertedDate", str, "STU3"),
    ("Encounter", "class", list, "R5"),
    ("Encounter", "actualPeriod", dict, "R5"),
    ("Observation", "comment", str, "STU3"),
    ("Observation", "context", dict, "STU3"),
    ("MedicationStatement", "taken", str, "STU3"),
    ("Procedure", "occurrenceDateTime", str, "R5"),
    ("Procedure", "notDone", bool, "STU3"),
    ("Immunization", "notGiven", bool, "STU3"),
    ("AllergyIntolerance", "clinicalStatus", str, "STU3"),
    ("Patient", "animal", dict, "STU3"),
)


@READERS.register("ndjson")
def read_ndjson(path: Path, schema: Schema | None, encoding: str, *, views: Sequence[str] = ()) -> pd.DataFrame:  # noqa: ARG001  JSON is UTF-8
    """The rows of views of a file, or of the NDJSON files of a folder; see :func:`fedanon.data.readers.read_table`.

    Parameters
    ----------
    path : a file of resources of one type, or the folder of a bulk export.
    schema : says which numbers mean missing.
    encoding : of no use here.
    views : files of ViewDefinitions; the first one gives the rows.
    """
    if not views:
        raise ConfigError("FHIR resources need a view that makes rows of them: --view VIEW.json (SQL on FHIR).")
    chosen = [FhirView.read(Path(view)) for view in views]
    files = sorted(path.glob(f"*{ENDING}")) if path.is_dir() else [path]
    resources = [each for file in files for each in _read_resources(file)]
    wanted = {view.resource for view in chosen}
    if not path.is_dir():
        _refuse_other_types(resources, wanted, path.name)
    frames = [_frame(view, resources, schema, path.name) for view in chosen]
    rows = frames[0]
    for view, more in zip(chosen[1:], frames[1:], strict=True):
        rows = _joined(rows, more, view.name)
    return rows


def _frame(view: FhirView, resources: Iterable[Any], schema: Schema | None, name: str) -> pd.DataFrame:
    own = [each for each in resources if each["resourceType"] == view.resource]
    if not own:
        raise DataError(f"{name} holds no resource of the type {view.resource}, which the view {view.name} is about.")
    rows = view.rows(own)
    if not rows:
        raise DataError(f"The view {view.name} gives no rows of {name}.")
    return typed_frame({column: [row.get(column) for row in rows] for column in view.columns}, schema)


def _joined(rows: pd.DataFrame, more: pd.DataFrame, name: str) -> pd.DataFrame:
    shared = [column for column in rows.columns if column in more.columns]
    if not shared:
        raise ConfigError(f"The view {name} shares no column with the views before it; name a key alike in both.")
    if more.duplicated(shared).any():
        raise DataError(f"The view {name} has several rows for the same {', '.join(shared)}; it can add only one.")
    joined = rows.merge(more, on=shared, how="left", indicator=True)
    alone = int((joined.pop("_merge") == "left_only").sum())
    if alone:
        raise DataError(
            f"{alone} rows find no partner in the view {name} by {', '.join(shared)}. Export both together."
        )
    return joined


# ---- resources -----------------------------------------------------------------------------------


def _read_resources(path: Path) -> list[dict[str, Any]]:
    """All resources of a file; broken lines are counted, resources of another version refused."""
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        raise DataError(f"The file {path} does not exist.") from None
    except OSError as error:
        raise DataError(f"The file {path} cannot be read: {error.strerror}.") from None
    found = [(number, _parsed(line)) for number, line in enumerate(lines, 1) if line.strip()]
    broken = [number for number, resource in found if resource is None]
    if broken:
        raise DataError(
            f"The file {path.name} has {len(broken)} lines that are no FHIR resource in JSON, the first is line "
            f"{broken[0]}. Export it again, or remove them."
        )
    if not found:
        raise DataError(f"The file {path.name} is empty.")
    resources = [resource for _, resource in found if resource is not None]
    _refuse_other_versions(resources, path.name)
    return resources


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        resource = json.loads(line)
    except (ValueError, RecursionError):
        return None
    sound = isinstance(resource, dict) and isinstance(resource.get("resourceType"), str)
    return resource if sound else None


def _refuse_other_types(resources: Iterable[dict[str, Any]], wanted: set[str], name: str) -> None:
    other = Counter(each["resourceType"] for each in resources if each["resourceType"] not in wanted)
    if other:
        kinds = ", ".join(sorted(kind if kind.isalpha() else "a type that is none" for kind in other)[:5])
        raise DataError(
            f"The file {name} has {other.total()} resources of another type ({kinds}) than the view is about "
            f"({', '.join(sorted(wanted))}). Choose the file or the view of that type."
        )


def _refuse_other_versions(resources: Sequence[dict[str, Any]], name: str) -> None:
    marked = Counter(
        version
        for each in resources
        for kind, element, shape, version in _MARKS
        if each["resourceType"] == kind and isinstance(each.get(element), shape)
    )
    if marked:
        version, count = marked.most_common(1)[0]
        raise DataError(
            f"The file {name} has {count} elements that FHIR {version} has and R4 has not. Export it as R4 (4.0.1)."
        )
    others = [version for each in resources if (version := _stated_version(each)) not in ("", _R4)]
    if others:
        raise DataError(
            f"The file {name} has {len(others)} resources that say they are of FHIR {min(others)}.x. Export it as R4 "
            "(4.0.1)."
        )


def _stated_version(resource: dict[str, Any]) -> str:
    """The main number of the version of FHIR that a resource's own profile states; empty if it states none."""
    meta = resource.get("meta")
    profiles = meta.get("profile") if isinstance(meta, dict) else None
    for profile in profiles if isinstance(profiles, list) else ():
        found = _PROFILE.fullmatch(str(profile))
        if found:
            return found[1] or found[2] or ""
    return ""
