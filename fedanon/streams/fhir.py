"""FHIR R4 in and out: an Observation becomes a flat message by a view, a publication becomes a Bundle of Observations.

What a message holds of a resource says a ViewDefinition (SQL on FHIR), as for tables. An instant in the time column
becomes seconds since 1970. What is published of a row is one Observation: its subject is a contained Patient without
a name, whose extensions are the generalized cells, and whose identifier is the pseudonym, where there is one; every
other column is a component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedanon.errors import SchemaError
from fedanon.io.fhir_release import extension_of, observed
from fedanon.io.fhir_views import FhirView

PSEUDONYM_SYSTEM = "urn:fedanon:pseudonym"
PUBLICATION_SYSTEM = "urn:fedanon:publication"


class ObservationReader:
    """Flattens resources.

    Parameters
    ----------
    view : file of the ViewDefinition.
    time : the column of the message that holds its time.
    """

    def __init__(self, view: Path, time: str) -> None:
        self._view, self._time = FhirView.read(view), time

    def flatten(self, resource: Any) -> dict[str, Any]:
        """The message in a resource; SchemaError if there is not exactly one."""
        wanted = self._view.resource
        if not isinstance(resource, Mapping) or resource.get("resourceType") != wanted:
            raise SchemaError(f"The message is no FHIR resource of the type {wanted}.")
        rows = self._view.rows([resource])
        if len(rows) != 1:
            raise SchemaError(f"The view {self._view.name} makes {len(rows)} rows of the resource; one is needed.")
        [row] = rows
        if isinstance(row.get(self._time), str):
            row[self._time] = _seconds(row[self._time], self._time)
        return row


def _seconds(text: str, column: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise SchemaError(f"The time column {column!r} of the resource is no instant.") from None
    if moment.tzinfo is None:
        raise SchemaError(f"The time column {column!r} of the resource has no time zone.")
    return moment.timestamp()


def bundle(number: int, rows: Sequence[Mapping[str, Any]], quasi: Sequence[str], time: str) -> dict[str, Any]:
    """A publication as a Bundle; its identifier is its number, which comes again if it is sent again."""
    return {
        "resourceType": "Bundle",
        "type": "collection",
        "identifier": {"system": PUBLICATION_SYSTEM, "value": str(number)},
        "entry": [{"resource": observation(row, quasi, time)} for row in rows],
    }


def observation(row: Mapping[str, Any], quasi: Sequence[str], time: str) -> dict[str, Any]:
    """A published row."""
    patient: dict[str, Any] = {
        "resourceType": "Patient",
        "id": "p",
        "extension": [extension_of(name, str(row[name])) for name in quasi],
    }
    if "pseudonym" in row:
        patient["identifier"] = [{"system": PSEUDONYM_SYSTEM, "value": row["pseudonym"]}]
    others = [name for name in row if name not in (*quasi, "pseudonym", time)]
    made: dict[str, Any] = {
        "resourceType": "Observation",
        "status": "final",
        "code": {"text": "reading"},
        "contained": [patient],
        "subject": {"reference": "#p"},
        "component": [{"code": {"text": name}, **observed(row[name])} for name in others],
    }
    if row.get(time) is not None:
        made["effectiveDateTime"] = datetime.fromtimestamp(float(row[time]), UTC).isoformat()
    return made
