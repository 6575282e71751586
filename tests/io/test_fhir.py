"""FHIR bulk exports: views make rows of resources, and a release becomes resources again."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from fedanon.anonymizers import Mondrian
from fedanon.data.readers import read_frame, read_table
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets.files import find
from fedanon.errors import ConfigError, DataError
from fedanon.io.fhir import read_ndjson
from fedanon.io.manifest import Manifest
from fedanon.io.release_file import read_release, write_release
from fedanon.verification import Verification

PATIENTS = [
    {
        "resourceType": "Patient",
        "id": f"p{i}",
        "gender": "female" if i % 2 else "male",
        "birthDate": f"{1950 + i}-01-02",
        "name": [{"use": "official", "family": f"Silva {i}"}, {"use": "maiden", "family": "Souza"}],
        "address": [{"postalCode": f"0131{i}"}] if i else [],
        "deceasedBoolean": i == 2,
    }
    for i in range(4)
]
COLUMNS = [
    {"name": "id", "path": "getResourceKey()"},
    {"name": "sex", "path": "gender"},
    {"name": "dead", "path": "deceased.ofType(boolean)"},
]


def view(path: Path, *selects: dict[str, Any], resource: str = "Patient", **more: Any) -> Path:
    path.write_text(json.dumps({"resource": resource, "select": list(selects), **more}), encoding="utf-8")
    return path


def ndjson(path: Path, *resources: Any) -> Path:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in resources]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    return ndjson(tmp_path / "Patient.ndjson", *PATIENTS)


def rows(path: Path, *views: Path) -> list[dict[str, Any]]:
    frame = read_frame(path, views=tuple(map(str, views)))
    return [
        {str(k): v for k, v in row.items()}
        for row in frame.astype(object).where(frame.notna(), None).to_dict("records")
    ]


def test_columns_of_a_view(patients: Path, tmp_path: Path) -> None:
    found = rows(patients, view(tmp_path / "v.json", {"column": COLUMNS}))
    assert found[2] == {"id": "p2", "sex": "male", "dead": "true"}
    assert len(found) == 4


def test_a_row_per_element_or_one_without(patients: Path, tmp_path: Path) -> None:
    names = {"forEach": "name", "column": [{"name": "family", "path": "family"}]}
    places = {"forEachOrNull": "address", "column": [{"name": "postal", "path": "postalCode"}]}
    found = rows(patients, view(tmp_path / "v.json", {"column": COLUMNS[:1]}, names, places))
    assert found[:3] == [
        {"id": "p0", "family": "Silva 0", "postal": None},
        {"id": "p0", "family": "Souza", "postal": None},
        {"id": "p1", "family": "Silva 1", "postal": "01311"},
    ]
    assert len(found) == 8


def test_conditions_constants_unions_and_nesting(patients: Path, tmp_path: Path) -> None:
    select = {
        "column": COLUMNS[:1],
        "select": [{"column": [{"name": "born", "path": "birthDate.substring(0, 4)"}]}],
        "unionAll": [
            {"column": [{"name": "family", "path": "name.where(use = %kind).family"}]},
            {"column": [{"name": "family", "path": "name.where(use = 'maiden').family"}]},
        ],
    }
    constants = [{"name": "kind", "valueCode": "official"}]
    path = view(tmp_path / "v.json", select, constant=constants, where=[{"path": "gender = 'female'"}])
    assert rows(patients, path) == [
        {"id": f"p{i}", "born": str(1950 + i), "family": family} for i in (1, 3) for family in (f"Silva {i}", "Souza")
    ]


def test_views_are_joined_by_the_columns_they_share(patients: Path, tmp_path: Path) -> None:
    codes = [("p1", "I10"), ("p3", "E11"), ("p1", "J18")]
    conditions = [
        {"resourceType": "Condition", "subject": {"reference": f"Patient/{who}"}, "code": {"text": code}}
        for who, code in codes
    ]
    export = tmp_path / "export"
    export.mkdir()
    patients.rename(export / patients.name)
    ndjson(export / "Condition.ndjson", *conditions)
    key = {"name": "id", "path": "subject.getReferenceKey(Patient)"}
    first = view(tmp_path / "c.json", {"column": [key, {"name": "code", "path": "code.text"}]}, resource="Condition")
    second = view(tmp_path / "p.json", {"column": COLUMNS})
    found = read_ndjson(export, None, "", views=(str(first), str(second)))
    assert found[["id", "code", "sex"]].to_numpy().tolist() == [[who, code, "female"] for who, code in codes]
    stranger = {"resourceType": "Condition", "subject": {"reference": "Patient/p9"}, "code": {"text": "I10"}}
    ndjson(export / "Condition.ndjson", *conditions, stranger)
    with pytest.raises(DataError, match=r"1 rows find no partner in the view p\.json by id"):
        read_ndjson(export, None, "", views=(str(first), str(second)))
    with pytest.raises(DataError, match="several rows for the same id"):
        read_ndjson(export, None, "", views=(str(second), str(first)))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "is empty"),
        ([PATIENTS[0], "{broken Silva", PATIENTS[1], '["Silva"]', '{"id": "Silva"}'], "3 lines .* the first is line 2"),
        ([PATIENTS[0], {"resourceType": "Encounter", "id": "Silva"}], r"1 resources of another type \(Encounter\)"),
        ([{"resourceType": "Condition", "clinicalStatus": "active"}], "FHIR STU3 has and R4 has not. Export it as R4"),
        ([{"resourceType": "Encounter", "class": [{}]}], "FHIR R5 has and R4 has not"),
        (
            [{"resourceType": "Patient", "meta": {"profile": ["http://hl7.org/fhir/5.0/StructureDefinition/Patient"]}}],
            r"1 resources that say they are of FHIR 5\.x",
        ),
        (
            [
                {
                    "resourceType": "Patient",
                    "meta": {"profile": [f"http://hl7.org/fhir/StructureDefinition/Patient|{v}"]},
                }
                for v in ("4.0.1", "3.0.2")
            ],
            r"1 resources that say they are of FHIR 3\.x",
        ),
    ],
)
def test_files_that_are_no_export_of_r4(tmp_path: Path, lines: list[Any], words: str) -> None:
    path = ndjson(tmp_path / "x.ndjson", *lines)
    with pytest.raises(DataError, match=words) as caught:
        rows(path, view(tmp_path / "v.json", {"column": COLUMNS}))
    assert "Silva" not in str(caught.value)


@pytest.mark.parametrize(
    ("select", "more", "error", "words"),
    [
        ({"column": [{"name": "f", "path": "name.family"}]}, {}, DataError, "'f' .* several values in 4 rows"),
        ({"column": [{"name": "f", "path": "name.first()"}]}, {}, ConfigError, "element with parts"),
        ({"column": [{"name": "f", "path": "name..x("}]}, {}, ConfigError, "'name..x\\('"),
        ({"column": [{"name": "f", "path": "nosuch()"}]}, {}, ConfigError, "cannot be evaluated"),
        ({"column": [{"name": "f", "path": "id", "collection": True}]}, {}, ConfigError, "collection"),
        ({"column": [{"name": "f"}]}, {}, ConfigError, "needs a name and a path"),
        ({"column": [{"name": "f", "path": "id"}] * 2}, {}, ConfigError, "twice"),
        ({"repeat": ["item"]}, {}, ConfigError, "not understood here: repeat"),
        ({"column": COLUMNS}, {"fhirVersion": ["5.0.0"]}, ConfigError, "another version of FHIR"),
        ({"column": COLUMNS}, {"where": [{"path": "gender = 'other'"}]}, DataError, "gives no rows"),
        ({"column": COLUMNS}, {"resource": "Condition"}, DataError, "another type"),
        ({}, {}, ConfigError, "no columns"),
    ],
)
def test_views_that_do_not_fit(
    patients: Path, tmp_path: Path, select: dict[str, Any], more: dict[str, Any], error: type[Exception], words: str
) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps({"resource": "Patient", "select": [select], **more}), encoding="utf-8")
    with pytest.raises(error, match=words) as caught:
        rows(patients, path)
    assert "Silva" not in str(caught.value)


def test_files_that_are_no_view(patients: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="need a view"):
        read_frame(patients)
    with pytest.raises(DataError, match="does not exist"):
        read_frame(patients, views=(str(tmp_path / "no.json"),))
    (tmp_path / "v.json").write_text("{")
    with pytest.raises(DataError, match="not a JSON file"):
        read_frame(patients, views=(str(tmp_path / "v.json"),))
    (tmp_path / "v.json").write_text("[]")
    with pytest.raises(ConfigError, match="no ViewDefinition"):
        read_frame(patients, views=(str(tmp_path / "v.json"),))


# ---- releases ------------------------------------------------------------------------------------

SCHEMA = Schema.from_dict(
    {
        "one_row_per_person": True,
        "attributes": {
            "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 120]},
            "ala é": {"role": "quasi_identifying", "type": "categorical", "values": ["a", "b"]},
            "exam": {"role": "sensitive", "type": "numeric"},
            "note": {"role": "insensitive", "type": "text"},
        },
    }
)


def test_a_release_is_patients_and_observations(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "age": [20 + 0.5 * i for i in range(12)],
            "ala é": ["a", "b"] * 6,
            "exam": [1.25 * i for i in range(12)],
            "note": [None if i == 5 else "[1, 2]" if i == 6 else "007" for i in range(12)],
        }
    )
    frame.to_csv(tmp_path / "in.csv", index=False)
    table = read_table(tmp_path / "in.csv", SCHEMA)
    release = Mondrian(k=3).anonymize(table, rng=0)
    out = write_release(release, table, tmp_path / "out.ndjson")
    resources = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    kinds = [each["resourceType"] for each in resources]
    assert kinds == ["Patient", "Observation", "Observation"] * 12
    ranges = [e for each in resources[::3] for e in each["extension"] if e["url"] == "urn:fedanon:column:age"]
    assert all(set(entry["valueRange"]) == {"low", "high"} for entry in ranges)
    absent = [each["dataAbsentReason"]["coding"][0]["code"] for each in resources if "dataAbsentReason" in each]
    assert absent == ["unknown"]
    view = read_release(out, SCHEMA)
    assert sorted(view.frame["age"]) == sorted(release.to_frame()["age"])
    assert sorted(view.frame["note"].dropna()) == sorted(frame["note"].dropna())
    manifest = Manifest.beside(out)
    assert manifest is not None
    found = {c.name: c.outcome for c in Verification(manifest, SCHEMA, tmp_path / "in.csv").checks(rebuild=True)}
    assert set(found.values()) == {"pass"}


def test_suppressed_cells_say_so(tmp_path: Path) -> None:
    from fedanon.io.fhir_release import read_resources, write_resources

    frame = pd.DataFrame(
        {
            "age": ["*", "[1, 2.5]", "[2024-01-01, 2024-03-31]", "1.50", "(missing)"],
            "ala é": ["*", "a", "*", "b", "a"],
            "exam": [None, 1.5, 2.0, 3.0, None],
            "note": [None, "x", "y", "z", None],
        }
    )
    with (tmp_path / "out.ndjson").open("wb") as file:
        write_resources(file, frame, SCHEMA)
    resources = [json.loads(line) for line in (tmp_path / "out.ndjson").read_text(encoding="utf-8").splitlines()]
    reasons = [r["dataAbsentReason"]["coding"][0]["code"] for r in resources if "dataAbsentReason" in r]
    assert reasons == ["masked", "masked", "unknown", "unknown"]
    first, third, fourth = (resources[3 * i]["extension"][0] for i in (0, 2, 3))
    assert first["extension"] == [
        {"url": "http://hl7.org/fhir/StructureDefinition/data-absent-reason", "valueCode": "masked"}
    ]
    assert third["valuePeriod"] == {"start": "2024-01-01", "end": "2024-03-31"}
    assert fourth["valueString"] == "1.50"  # the digits are the cell's
    again = read_resources(tmp_path / "out.ndjson")
    for name in ("age", "ala é", "note"):
        assert again[name].where(again[name].notna(), None).tolist() == frame[name].tolist()
    (tmp_path / "out.ndjson").write_text('{"resourceType": "Observation"}\n')
    with pytest.raises(DataError, match="not a release in FHIR resources"):
        read_resources(tmp_path / "out.ndjson")


# ---- an export of a hundred patients -------------------------------------------------------------


@pytest.mark.needs_data
def test_an_export_of_synthea(tmp_path: Path) -> None:
    packed = {name: find(f"fhir_synthea/{name}.ndjson.xz") for name in ("Patient", "Condition")}
    if None in packed.values():
        pytest.skip("the export is not in FEDANON_DATA")
    export = tmp_path / "export"
    export.mkdir()
    for name, path in packed.items():
        assert path is not None
        (export / f"{name}.ndjson").write_bytes(lzma.decompress(path.read_bytes()))
    key = {"name": "id", "path": "subject.getReferenceKey(Patient)"}
    coding = {"forEach": "code.coding", "column": [{"name": "code", "path": "code"}]}
    conditions = view(
        tmp_path / "c.json", {"column": [key]}, coding, resource="Condition", where=[{"path": "onset.exists() or true"}]
    )
    born = {"name": "year", "path": "birthDate.substring(0, 4).toInteger()"}
    people = view(tmp_path / "p.json", {"column": [*COLUMNS[:2], born]})
    frame = read_ndjson(export, None, "", views=(str(conditions), str(people)))
    lines = (export / "Condition.ndjson").read_text(encoding="utf-8").splitlines()
    assert len(frame) == sum(len(json.loads(line)["code"]["coding"]) for line in lines)
    assert frame["id"].nunique() <= 100
    schema = Schema.from_dict(
        {
            "person_id": "id",
            "attributes": {
                "id": {"role": "identifying"},
                "code": {"role": "sensitive", "type": "text"},
                "sex": {"role": "quasi_identifying", "type": "categorical", "values": ["female", "male"]},
                "year": {"role": "quasi_identifying", "type": "numeric", "range": [1890, 2030], "integer": True},
            },
        }
    )
    table = Table.from_frame(frame, schema)
    release = Mondrian(k=10).anonymize(table, rng=0)
    assert release.smallest_class >= 10
