"""Every command says its worst finding first, in words and in JSON, and an independent recount agrees."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import SCHEMA, Outcome, Run
from tests.independent_recount import Recount, contradictions, declared, recount
from tests.report.conftest import Page

TITLES = {
    "broken": "✗ A promise does not hold",
    "not_checked": "? Not everything that is promised could be checked",
    "kept_but": "! The promises hold, but they do not cover this",
    "kept": "✓ The promises hold",
    "nothing_promised": "! Nothing is promised",
}
PERSON = 'person_id = "patient"'
ALONE = "one_row_per_person = true"


@dataclass
class Place:
    """A table, its schema and its release."""

    run: Run
    folder: Path
    persons: list[str] | None = None

    def write(self, people: str, *, rows: int = 240, times: int = 1, names: bool = False) -> None:
        """Patients of four kinds, each ``times``; with a column of names beside them if asked."""
        number = range(rows)
        frame = pd.DataFrame(
            {
                "patient": [f"P{i:03d}" for i in number],
                "age": [30 + 10 * (i % 4) for i in number],
                "sex": ["FM"[i % 2] for i in number],
                "unit": [("cardiac", "oncology")[i % 2] for i in number],
                "diagnosis": [("flu", "asthma")[i // 4 % 2] for i in number],
            }
        )
        text = SCHEMA.replace(PERSON, people)
        if names:
            frame["surname"] = [f"Surname{i}" for i in number]
            text += '[attributes.surname]\nrole = "insensitive"\ntype = "text"\n'
        pd.concat([frame] * times).to_csv(self.folder / "ward.csv", index=False)
        (self.folder / "ward.toml").write_text(text, encoding="utf-8")
        self.persons = frame["patient"].tolist() * times if "records" not in people else None

    @property
    def released(self) -> Path:
        return self.folder / "out.csv"

    def anonymize(self, *more: str) -> Outcome:
        made = ["--schema", self.folder / "ward.toml", "--k", "4", "-o", self.released]
        made += ["--keep-order", "--force"]  # people are listed in the order of the rows
        return self.run("anonymize", self.folder / "ward.csv", *made, *more)

    def recounted(self) -> Recount:
        said = declared(Path(f"{self.released}.manifest.json"))
        return recount(self.released, said.roles, self.persons, numeric=said.numeric, missing=said.missing)

    def promise(self, **claim: object) -> None:
        path = Path(f"{self.released}.manifest.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"claim": claim or None}), encoding="utf-8")

    def ask(self, command: str, *more: str | Path) -> tuple[Outcome, dict[str, object]]:
        """What a command prints, and the conclusion in its JSON."""
        first: tuple[str | Path, ...] = (command, self.released)
        if command == "check":
            first += ("--schema", self.folder / "ward.toml")
        elif command == "report":
            first += ("--privacy", "--no-attacks")
        page = ("-o", self.folder / "report.html", "--force") if command == "report" else ()
        return self.run(*first, *page, *more), self.run(*first, *more, "--json").json["conclusion"]

    def sees(self, level: str, *more: str | Path, code: int = 0) -> None:
        """All commands conclude the same, and nothing they print is denied."""
        for command in ("check", "verify", "report"):
            told, conclusion = self.ask(command, *more)
            assert (conclusion["level"], told.code) == (level, code), (command, told.err)
            assert TITLES[level] in told.out, command
            assert contradictions(told.out, conclusion, self.recounted()) == []
        page = Page((self.folder / "report.html").read_text(encoding="utf-8")).text
        assert TITLES[level] in page
        assert contradictions(page, conclusion, self.recounted()) == []


@pytest.fixture
def place(run: Run, tmp_path: Path) -> Place:
    return Place(run, tmp_path)


def test_kept(place: Place) -> None:
    place.write(ALONE)
    told = place.anonymize()
    assert TITLES["kept"] in told.out
    assert contradictions(told.out, place.anonymize("--json").json["conclusion"], place.recounted()) == []
    place.sees("kept")


def test_names_and_unique_rows_are_said_although_every_promise_holds(place: Place) -> None:
    place.write(ALONE, names=True)
    told, conclusion = place.anonymize(), place.anonymize("--json").json["conclusion"]
    assert TITLES["kept_but"] in told.out
    assert "look like an identifier: 'surname'" in told.out
    assert "100 % of the published rows (240 of 240) hold values that no other person has" in told.out
    assert [finding["kind"] for finding in conclusion["findings"]] == ["suspected_identifier", "jointly_unique"]
    assert contradictions(told.out, conclusion, place.recounted()) == []
    place.sees("kept_but")


def test_people_cannot_be_counted_without_the_original(place: Place) -> None:
    place.write(PERSON, times=2)
    told = place.anonymize()
    assert TITLES["kept"] in told.out, "the table says who is who"
    place.sees("not_checked")
    page = Page((place.folder / "report.html").read_text(encoding="utf-8")).text
    assert "Promises checked now and kept: 0 of 1." in page
    assert "480 people" not in page
    place.sees("kept", "--original", place.folder / "ward.csv")


def test_records_are_called_records(place: Place) -> None:
    place.write("one_row_per_person = false  # records", times=2)
    assert "at least 4 records" in place.anonymize().out
    place.sees("kept_but")
    page = Page((place.folder / "report.html").read_text(encoding="utf-8")).text
    assert "480 records; who the people are" in page
    assert "Records in them" in page
    assert "among at least k records" in page
    assert " people whose sensitive value" not in page


def test_a_broken_promise(place: Place) -> None:
    place.write(ALONE, names=True)
    assert place.anonymize().code == 0
    place.promise(model="k-anonymity", k=61)
    place.sees("broken", code=4)


def test_a_changed_file(place: Place) -> None:
    place.write(ALONE)
    assert place.anonymize().code == 0
    place.released.write_text("\n".join(place.released.read_text().splitlines()[:-1]) + "\n")
    for command in ("check", "verify", "report"):
        told, conclusion = place.ask(command)
        assert (told.code, conclusion["level"]) == (4, "broken"), command
        assert "✗ The file is not what its manifest says" in told.out, command
        assert conclusion["findings"][0]["kind"] == "file_changed", command


def test_nothing_promised(place: Place) -> None:
    place.write(ALONE)
    assert place.anonymize().code == 0
    place.promise()
    place.sees("nothing_promised")


def test_columns_that_pass_by_are_looked_at_too(place: Place) -> None:
    """From Parquet to Parquet names are not held in memory, and are found all the same."""
    pytest.importorskip("pyarrow")
    from fedanon.io.parquet import write_frame

    place.write(ALONE, names=True)
    source, out, schema = (place.folder / name for name in ("ward.parquet", "out.parquet", "ward.toml"))
    with source.open("wb") as file:
        write_frame(file, pd.read_csv(place.folder / "ward.csv"))
    streamed = place.run("anonymize", source, "--schema", schema, "--k", "4", "-o", out, "--json").json["conclusion"]
    assert streamed == place.anonymize("--json").json["conclusion"]
    assert place.run("check", out, "--schema", schema, "--json").json["conclusion"] == streamed


def test_json_of_a_report_alone_writes_no_page(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.folder)
    place.write(ALONE, names=True)
    assert place.anonymize().code == 0
    told = place.run("report", "--privacy", place.released, "--original", place.folder / "ward.csv", "--json")
    assert (told.code, (place.folder / "report.html").exists()) == (0, False)
    assert told.json["counted"] == "people"
    assert [one["holds"] for one in told.json["promises"]] == [True]
    assert "singled_out" in [finding["kind"] for finding in told.json["conclusion"]["findings"]]
    assert "Surname1" not in told.out
    refused = place.run("report", place.folder, "--json")
    assert (refused.code, refused.err) == (2, "error: --json goes with --privacy.\n")
