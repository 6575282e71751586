"""FHIR Observations in and out of a gateway."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fedanon.errors import DataError
from fedanon.streams.config import GatewayConfig
from fedanon.streams.dead_letters import DEAD_LETTERS
from fedanon.streams.fhir import bundle
from fedanon.streams.gateway import Gateway, Incoming
from fedanon.streams.running import replay_file
from tests.streams.test_gateway import gateway_file, windows, write_readings
from tests.streams.wards import QUASI

VIEW = {
    "resourceType": "ViewDefinition",
    "resource": "Observation",
    "select": [
        {
            "column": [
                {"name": "patient", "path": "subject.getReferenceKey(Patient)"},
                {"name": "age", "path": "extension.where(url='urn:ward:age').value.ofType(integer)"},
                {"name": "unit", "path": "extension.where(url='urn:ward:unit').value.ofType(string)"},
                {"name": "time", "path": "effective.ofType(dateTime)"},
                {"name": "pressure", "path": "value.ofType(Quantity).value"},
            ]
        }
    ],
}


def observation(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceType": "Observation",
        "status": "final",
        "code": {"coding": [{"system": "http://loinc.org", "code": "8478-0"}]},
        "subject": {"reference": f"Patient/{row['patient']}"},
        "effectiveDateTime": datetime.fromtimestamp(row["time"], UTC).isoformat(),
        "valueQuantity": {"value": row["pressure"], "unit": "mmHg"},
        "extension": [
            {"url": "urn:ward:age", "valueInteger": row["age"]},
            {"url": "urn:ward:unit", "valueString": row["unit"]},
        ],
    }


def fhir_gateway(folder: Path) -> Path:
    path = gateway_file(folder, source='view = "view.json"', sink='format = "csv"')
    (folder / "view.json").write_text(json.dumps(VIEW), encoding="utf-8")
    return path


def test_observations_give_the_windows_of_the_same_flat_messages(tmp_path: Path) -> None:
    rows = [{**row, "time": round(row["time"], 3)} for row in write_readings(tmp_path / "in.jsonl", 150, people=15)]
    for name, make in (("flat", dict), ("fhir", observation)):
        path = fhir_gateway(tmp_path / name) if name == "fhir" else gateway_file(tmp_path / name, sink='format = "csv"')
        (tmp_path / name / "state").mkdir()
        (tmp_path / name / "state" / "gateway.key").write_bytes(b"k" * 32)
        lines = "".join(json.dumps(make(row)) + "\n" for row in rows)
        (tmp_path / name / "in.jsonl").write_text(lines, encoding="utf-8")
        counts = replay_file(GatewayConfig.read(path), tmp_path / name / "in.jsonl").counts
        assert counts.taken == len(rows)
        assert counts.published > 0
    assert windows(tmp_path / "fhir") == windows(tmp_path / "flat")


def test_resources_that_do_not_fit_are_refused_without_their_cells(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = Gateway(GatewayConfig.read(fhir_gateway(tmp_path)))
    good = {"patient": "SECRET", "age": 30, "unit": "renal", "time": 1.0, "pressure": 100}
    bad: list[Any] = [
        good,
        {**observation(good), "resourceType": "Patient"},
        {**observation(good), "effectiveDateTime": "2020-13"},
        {**observation(good), "effectiveDateTime": "2020-01-01T10:00:00"},
        {**observation(good), "extension": []},
    ]
    gateway.take([Incoming(json.dumps(one).encode()) for one in bad], 1.0)
    assert (gateway.counts.taken, gateway.counts.refused) == (0, len(bad))
    assert "SECRET" not in caplog.text
    assert len((tmp_path / "state" / DEAD_LETTERS).read_text(encoding="utf-8").splitlines()) == len(bad)
    gateway.take([Incoming(json.dumps(observation(good)).encode())], 2.0)
    assert gateway.counts.taken == 1
    gateway.close()
    (tmp_path / "view.json").unlink()
    with pytest.raises(DataError, match="does not exist"):
        Gateway(GatewayConfig.read(tmp_path / "gateway.toml"))


def test_a_publication_is_a_bundle_that_says_what_the_row_says() -> None:
    row = {
        "age": "[30, 40]",
        "unit": "Surgery",
        "time": 120.0,
        "pressure": 81,
        "pseudonym": "f00",
        "epoch": 3,
        "class": 7,
    }
    made = bundle(12, [row, {**row, "pressure": None}], QUASI, "time")
    assert (made["resourceType"], made["type"], made["identifier"]["value"]) == ("Bundle", "collection", "12")
    first, second = (entry["resource"] for entry in made["entry"])
    [patient] = first["contained"]
    assert first["subject"] == {"reference": "#p"}
    assert patient["identifier"][0]["value"] == "f00"
    assert patient["extension"][0] == {
        "url": "urn:fedanon:column:age",
        "valueRange": {"low": {"value": 30}, "high": {"value": 40}},
    }
    assert patient["extension"][1]["valueString"] == "Surgery"
    assert first["effectiveDateTime"] == "1970-01-01T00:02:00+00:00"
    values = {part["code"]["text"]: part for part in first["component"]}
    assert values["pressure"]["valueQuantity"] == {"value": 81}
    assert set(values) == {"pressure", "epoch", "class"}
    assert "dataAbsentReason" in second["component"][0]
    assert "name" not in patient
