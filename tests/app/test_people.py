"""What is about people over time: pseudonyms with a key, dates that are moved, and series of releases."""

from __future__ import annotations

import csv
import json
import stat
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from fedanon.app.jobs import Jobs
from fedanon.app.pages.protect import undo_release
from fedanon.app.project import Project
from fedanon.data.schema import Schema
from fedanon.io.person_key import read_person_key
from tests.app.conftest import Visitor


def finish(visitor: Visitor, kind: str = "release") -> None:
    """Wait until the job is done."""
    while visitor.state.jobs.running is not None:
        time.sleep(0.1)
    job = visitor.state.jobs.last(kind)
    assert job is not None
    assert job.state == "done", job.message


def upload(visitor: Visitor, name: str, text: str) -> None:
    answer = visitor.post("/open/upload", files={"file": (name, text.encode(), "text/csv")})
    assert answer.status_code == 303, answer.text
    assert visitor.post("/columns/propose").status_code == 303


def visits() -> str:
    """Three visits of each of 60 people, and the day of each."""
    rng = np.random.default_rng(0)
    lines = ["record_number,sex,admitted,ill"]
    for person in range(60):
        days = sorted(rng.integers(1, 28, 3))
        lines += [f"P{person:03},{'FM'[person % 2]},2024-03-{day:02},{rng.choice(['yes', 'no'])}" for day in days]
    return "\n".join(lines) + "\n"


def test_people_are_followed_by_pseudonyms_and_their_dates_moved(visitor: Visitor) -> None:
    """At least k people share the whole course of their rows; nobody's number and no key is shown anywhere."""
    visitor.enter()
    upload(visitor, "visits.csv", visits())
    roles = ("identifying", "quasi_identifying", "quasi_identifying", "sensitive")
    form = {f"role_{i}": role for i, role in enumerate(roles)} | {"person": "column:record_number"}
    answer = visitor.post("/columns", {**form, "pseudonym": "1", "shift": "9000"})
    assert answer.status_code == 422
    answer = visitor.post("/columns", {**form, "pseudonym": "1", "shift": "30", "next": "1"})
    assert answer.status_code == 303, answer.text
    project = visitor.state.project
    key = project.folder / "secret" / "person.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    fingerprint = read_person_key(key).fingerprint
    assert Schema.read(project.schema).key_fingerprint == fingerprint
    page = visitor.client.get("/columns").text
    assert fingerprint in page
    # a rule that is changed elsewhere keeps what was decided here
    rule = {"type": "date", "format": "%Y-%m-%d", "low": "2024-01-01", "high": "2024-12-31", "level": "day"}
    answer = visitor.post("/columns/2", rule)
    assert answer.status_code == 303, answer.text
    assert Schema.read(project.schema).shifted[0].name == "admitted"
    assert visitor.post("/protect", {"method": "mondrian", "k": "4"}).status_code == 303
    finish(visitor)
    release = project.folder / "releases" / "001" / "release.csv"
    courses = defaultdict(list)
    with release.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            courses[row["record_number"]].append((row["sex"], row["admitted"]))
    alike = defaultdict(int)
    for course in courses.values():
        alike[tuple(sorted(course))] += 1
    assert min(alike.values()) >= 4
    assert not any(name.startswith("P0") for name in courses)
    pages = visitor.client.get("/result/001").text + visitor.client.get("/report/001").text
    assert "--key secret/person.key" in pages
    assert read_person_key(key).secret.hex() not in pages
    assert "at least 4 people" in pages
    assert visitor.post("/result/001/rows", {"start": "1"}).status_code == 200


def month(number: int) -> str:
    """Some people of a ward: a tenth leaves and as many come from month to month."""
    rng = np.random.default_rng(number)
    lines = ["record_number,age,sex,diagnosis"]
    for person in range(20 * number, 20 * number + 200):
        who = np.random.default_rng(1000 + person)
        lines.append(f"P{person:04},{who.integers(20, 90)},{'FM'[person % 2]},{who.choice(['flu', 'cold', 'none'])}")
    order = rng.permutation(len(lines) - 1)
    return "\n".join([lines[0], *(lines[1 + i] for i in order)]) + "\n"


def test_next_month_is_released_together_with_this_one(visitor: Visitor) -> None:
    """A series begins and goes on; its ledger knows both; what was released in it cannot be taken back by a cancel."""
    visitor.enter()
    upload(visitor, "january.csv", month(0))
    roles = ("identifying", "quasi_identifying", "quasi_identifying", "sensitive")
    form = {f"role_{i}": role for i, role in enumerate(roles)} | {"person": "column:record_number"}
    assert visitor.post("/columns", {**form, "next": "1"}).status_code == 303
    asked = {"method": "mondrian", "k": "5", "l": "2", "t": "100", "column": "0", "series": "1"}
    assert visitor.post("/protect", asked).status_code == 303
    finish(visitor)
    upload(visitor, "february.csv", month(1))
    project = visitor.state.project
    assert project.series.fits(project.read_schema())  # the roles are those of the series
    assert "the next release of the series (releases so far: 1)" in visitor.client.get("/protect").text
    assert visitor.post("/protect", asked).status_code == 303
    finish(visitor)
    manifest = json.loads((project.folder / "releases/002/release.csv.manifest.json").read_text(encoding="utf-8"))
    assert manifest["claim"]["series"]["releases"] == 2
    text = visitor.client.get("/report/002").text
    assert "it knows 2 releases" in text
    assert "--previous releases/001/release.csv.manifest.json" in text
    for number in ("001", "002"):
        release = project.release(number)
        assert release is not None
        shown = visitor.state.desk.ask("rows", **visitor.state.release_files(release), start=0)
        place = shown["columns"].index("diagnosis")
        pairs = [row["cells"][place] for row in shown["rows"] if not row["suppressed"]]
        assert len(pairs) > 10
        assert all(before == after for before, after in pairs)  # each record beside what is published of itself
        facts = release.read("facts")
        assert all(one["holds"] for one in facts["evidence"]["promises"]), number
    # other rules: it is said that the release would stand alone, and the series is refused
    assert visitor.post("/columns", {**form, "role_2": "insensitive", "next": "1"}).status_code == 303
    assert "would stand alone" in visitor.client.get("/protect").text
    answer = visitor.post("/protect", asked)
    assert answer.status_code == 422
    assert len(list((project.folder / "releases").iterdir())) == 2


def test_what_a_ledger_knows_is_not_undone(tmp_path: Path) -> None:
    """A cancel that comes when the release is written finds it published."""
    release = Project.open(tmp_path / "project").new_release()
    (release.path / "release.csv").write_text("a\n1\n", encoding="utf-8")
    assert not undo_release(release, {"series": True, "file": "release.csv"})
    assert release.path.is_dir()
    assert undo_release(release, {"series": False, "file": "release.csv"})
    assert not release.path.exists()


@pytest.mark.parametrize(("undone", "state"), [(True, "cancelled"), (False, "done")])
def test_a_cancelled_job_is_finished_where_it_cannot_be_undone(tmp_path: Path, undone: bool, state: str) -> None:
    jobs, finished = Jobs(tmp_path, lambda: tmp_path), []
    job = jobs.start("release", [["--version"]], page="/protect", finish=finished.append, undo=lambda: undone)
    jobs.cancel(job.id)
    while job.state == "running":
        time.sleep(0.01)
    assert job.state == state
    assert finished == ([] if undone else [job])
