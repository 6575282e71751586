"""What can be opened beside a CSV file: a database, a folder, a workbook, a Parquet file; and what cannot."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path

import pandas as pd
import pytest

from tests.app.conftest import Visitor

FRAME = pd.DataFrame({"age": [20 + i % 50 for i in range(40)], "sex": ["F", "M"] * 20, "ill": ["yes", "no"] * 20})


def _write_fhir(folder: Path) -> Path:
    """A bulk export of patients, and a view that makes rows of them."""
    folder.mkdir()
    people = [{"resourceType": "Patient", "id": f"p{i}", "gender": ("male", "female")[i % 2]} for i in range(40)]
    (folder / "Patient.ndjson").write_text("\n".join(map(json.dumps, people)) + "\n", encoding="utf-8")
    columns = [{"name": "id", "path": "getResourceKey()"}, {"name": "sex", "path": "gender"}]
    view = {"resourceType": "ViewDefinition", "resource": "Patient", "name": "people", "status": "draft"}
    (folder / "people.json").write_text(json.dumps({**view, "select": [{"column": columns}]}), encoding="utf-8")
    return folder


def test_a_file_is_read_again_in_another_way(visitor: Visitor) -> None:
    """The separator and the decimal mark that were found can be changed, and every command is told."""
    visitor.enter()
    rows = "\n".join(f"{20 + i % 50};{i % 9 + 1},{i % 10}00" for i in range(40))
    answer = visitor.post("/open/upload", files={"file": ("t.csv", f"age;cells\n{rows}\n".encode(), "text/csv")})
    assert answer.status_code == 303, answer.text
    assert visitor.state.opened is not None
    assert visitor.state.opened["dialect"]["decimal"] == ","
    assert visitor.state.opened["head"][0][1] == "1.000"  # a thousand, taken for one
    assert visitor.post("/open/reading", {"decimal": "point"}).status_code == 303
    assert visitor.state.opened["head"][0][1] == "1,000"
    assert "--decimal-in ." in visitor.client.get("/open").text
    answer = visitor.post("/open/reading", {"separator": "comma"})  # which makes no table of it
    assert answer.status_code == 422
    assert visitor.state.project.source == {"data": ["data/t.csv"], "decimal": "."}
    assert visitor.post("/open/reading", {"separator": "nothing"}).status_code == 303
    assert visitor.state.project.source == {"data": ["data/t.csv"]}


@pytest.mark.slow
def test_tables_of_every_kind_are_opened(visitor: Visitor, tmp_path: Path) -> None:
    visitor.enter()
    base = tmp_path / "ward.db"
    with sqlite3.connect(base) as connection:
        FRAME.to_sql("ward", connection, index=False)
    connection.close()
    folder = tmp_path / "nodes"
    folder.mkdir()
    for name in ("a", "b"):
        FRAME.to_csv(folder / f"{name}.csv", index=False)
    FRAME.to_excel(tmp_path / "ward.xlsx", index=False)
    FRAME.to_parquet(tmp_path / "ward.parquet")
    places = {
        str(folder): ({}, 80),
        str(tmp_path / "ward.xlsx"): ({}, 40),
        str(tmp_path / "ward.parquet"): ({}, 40),
        f"sqlite:///{base}": ({"query": "SELECT age, sex FROM ward"}, 40),
        str(_write_fhir(tmp_path / "export")): ({"views": str(tmp_path / "export" / "people.json")}, 40),
    }
    for place, (more, rows) in places.items():
        answer = visitor.post("/open/place", {"place": place, **more})
        assert answer.status_code == 303, answer.text
        assert visitor.state.opened is not None
        assert visitor.state.opened["rows"] == rows, place
        assert visitor.client.get("/open").status_code == 200
    before = visitor.state.project.source
    for wrong in (str(tmp_path / "absent.csv"), "ftp://example.org/a.csv", f"sqlite:///{base}"):
        answer = visitor.post("/open/place", {"place": wrong})
        assert answer.status_code == 422, wrong
        assert visitor.state.project.source == before


@pytest.mark.slow
def test_a_release_is_made_from_a_database(visitor: Visitor, tmp_path: Path) -> None:
    """The whole way without a browser: also what a workbook, a folder or FHIR resources go through."""
    visitor.enter()
    base = tmp_path / "ward.db"
    with sqlite3.connect(base) as connection:
        FRAME.to_sql("ward", connection, index=False)
    connection.close()
    visitor.post("/open/place", {"place": f"sqlite:///{base}", "query": "SELECT age, sex, ill FROM ward"})
    visitor.post("/columns/propose")
    roles = {"role_0": "quasi_identifying", "role_1": "quasi_identifying", "role_2": "sensitive"}
    answer = visitor.post("/columns", {**roles, "next": "1", "person": "one_row"})
    assert answer.status_code == 303, answer.text
    assert visitor.post("/protect", {"method": "mondrian", "k": "4", "l": "2", "t": "100"}).status_code == 303
    while visitor.state.jobs.running is not None:
        time.sleep(0.2)
    job = visitor.state.jobs.last("release")
    assert job is not None
    assert job.state == "done", job.message
    text = visitor.client.get("/result/001").text
    assert "at least 4 people" in text
    assert "--require" in text


@pytest.mark.slow
def test_steps_are_taken_undone_and_released(visitor: Visitor) -> None:
    """Risk falls by a step, rises again when it is taken back, and the release is that of the steps."""
    visitor.enter()
    table = FRAME.assign(weight=[50 + i % 30 for i in range(40)]).to_csv(index=False).encode()
    visitor.post("/open/upload", files={"file": ("t.csv", table, "text/csv")})
    visitor.post("/columns/propose")
    roles = {
        "role_0": "quasi_identifying",
        "role_1": "quasi_identifying",
        "role_2": "sensitive",
        "role_3": "insensitive",
    }
    assert visitor.post("/columns", {**roles, "next": "1", "person": "one_row"}).status_code == 303
    assert visitor.client.get("/steps").status_code == 200
    answer = visitor.post("/steps", {"step": "no_such_method"})
    assert answer.status_code == 422
    for step in ("local_suppression:k=3", "additive_noise:weight,c=0.1"):
        answer = visitor.post("/steps", {"step": step})
        assert answer.status_code == 303, answer.text
    assert visitor.state.project.settings["steps"]["taken"] == ["local_suppression:k=3", "additive_noise:weight,c=0.1"]
    assert visitor.post("/steps/undo").status_code == 303
    text = visitor.client.get("/steps").text
    assert "local_suppression:k=3" in text
    assert "<code>additive_noise:weight" not in text
    assert visitor.post("/steps/run").status_code == 303
    while visitor.state.jobs.running is not None:
        time.sleep(0.2)
    job = visitor.state.jobs.last("release")
    assert job is not None
    assert job.state == "done", job.message
    for path in ("/result/001", "/report/001"):
        assert visitor.client.get(path).status_code == 200, path
