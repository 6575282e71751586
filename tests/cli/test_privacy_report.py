"""`fedanon report --privacy` end to end: a CSV in, a verified release, a report out, in a browser too."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from fedanon.datasets.adult import complete_rows
from fedanon.harness.experiment import read_experiment
from fedanon.harness.result_set import write_results
from tests.cli.conftest import Run
from tests.report.conftest import Page
from tests.report.test_browser import CHROMIUM, browse
from tests.report.test_pdf import pages


@pytest.fixture
def released(run: Run, ward: Path, schema: Path, tmp_path: Path) -> Path:
    out = tmp_path / "released.csv"
    assert run("anonymize", ward, "--schema", schema, "--k", "4", "-o", out).code == 0
    return out


def test_from_a_file_to_a_report(run: Run, released: Path, ward: Path, schema: Path, tmp_path: Path) -> None:
    page, pdf = tmp_path / "report.html", tmp_path / "report.pdf"
    done = run("report", "--privacy", released, "--schema", schema, "--original", ward, "-o", page, "--pdf", pdf)
    assert done.code == 0, done.err
    text = Page(page.read_text(encoding="utf-8")).text
    assert "The promises hold, but they do not cover this" in text
    assert "The promises hold, but they do not cover this" in done.out
    assert "People are counted, not rows" in text
    assert "Record linkage" in text
    assert not any(value in text for value in ("P001", "=cmd", "cardiac", "orthopaedics"))
    assert pages(pdf.read_bytes()) >= 4
    portuguese = tmp_path / "relatorio.pdf"
    assert run("report", "--privacy", released, "--language", "pt", "--no-attacks", "-o", portuguese).code == 0
    assert pages(portuguese.read_bytes()) >= 4


def test_a_failed_claim_is_red_and_has_its_exit_code(run: Run, released: Path, ward: Path, tmp_path: Path) -> None:
    manifest = Path(f"{released}.manifest.json")
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(document | {"claim": {"model": "k-anonymity", "k": 39}}))
    page, log = tmp_path / "report.html", tmp_path / "log"
    told = run("report", "--privacy", released, "--original", ward, "--no-attacks", "-o", page, "--audit", log)
    assert told.code == 4
    assert "A promise does not hold" in told.err
    html = page.read_text(encoding="utf-8")
    assert '<td class="bad">✗ FAILS' in html
    assert "A promise does not hold" in Page(html).text
    facts = json.loads(log.read_text())["facts"]
    assert (facts["outcome"], facts["promises"]) == ("failed", {"39-anonymity": False})


def test_what_is_asked_beside_the_claim(run: Run, released: Path, ward: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    asked = ["--original", ward, "--no-attacks", "-o", page]
    assert run("report", "--privacy", released, *asked, "--require", "l=2:diagnosis").code == 4, "nearly all have flu"
    assert "✗ FAILS" in page.read_text(encoding="utf-8")


def test_people_fill_in_what_evidence_cannot(run: Run, released: Path, ward: Path, tmp_path: Path) -> None:
    page, fields = tmp_path / "report.html", tmp_path / "fields.toml"
    asked = ["--original", ward, "--no-attacks", "--force", "-o", page, "--fields", fields]
    fields.write_text('controller = "St. Mary <b>"\nauthor_name = "Ana"\n', encoding="utf-8")
    assert run("report", "--privacy", released, *asked).code == 0
    html = page.read_text(encoding="utf-8")
    assert "St. Mary &lt;b&gt;" in html
    assert "Ana" in html
    for wrong in ('risks = "none at all"', "controller = 3", "= broken"):
        fields.write_text(wrong, encoding="utf-8")
        told = run("report", "--privacy", released, *asked)
        assert told.code in (2, 3), "what the evidence says cannot be replaced"
        assert "fields" in told.err or "controller" in told.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.txt"], "must end in .html or .htm or .pdf"),
        (["--language", "fr"], "one of: en, pt"),
        (["--figures", "f"], "no --figures"),
    ],
)
def test_wrong_options(run: Run, released: Path, arguments: list[str], message: str) -> None:
    told = run("report", "--privacy", released, *arguments)
    assert told.code == 2
    assert message in told.err


def test_without_a_manifest_a_schema_is_needed(run: Run, released: Path, schema: Path, tmp_path: Path) -> None:
    Path(f"{released}.manifest.json").unlink()
    told = run("report", "--privacy", released, "-o", tmp_path / "r.html")
    assert (told.code, "--schema" in told.err) == (2, True)
    assert run("report", "--privacy", released, "--schema", schema, "-o", tmp_path / "r.html").code == 0


@pytest.mark.parametrize("what", ["two.toml", "results/two", "results/two/manifest.json"])
def test_an_experiment_is_shown_without_privacy(run: Run, tmp_path: Path, what: str) -> None:
    (tmp_path / "two.toml").write_text('[[grid]]\ntask = "release"\ndataset = "randhie"\nmethods = ["identity"]\n')
    write_results(read_experiment(tmp_path / "two.toml"), tmp_path / "results" / "two", {})
    told = run("report", "--privacy", tmp_path / what, "-o", tmp_path / "r.html")
    assert told.code == 2
    assert told.err == (
        "error: --privacy takes a released file or the JSON result of a federation; "
        f"{Path(what).name} is an experiment, which `fedanon report` shows without --privacy.\n"
    )
    assert not (tmp_path / "r.html").exists()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium to look at the page with")
def test_the_page_in_a_browser(run: Run, released: Path, tmp_path: Path) -> None:
    page, shot = tmp_path / "report.html", tmp_path / "shot.png"
    assert run("report", "--privacy", released, "--language", "pt", "-o", page).code == 0
    seen = browse(page, f"--screenshot={shot}")
    assert "CONSOLE" not in seen.stderr, seen.stderr
    assert shot.stat().st_size > 20_000


def test_the_most_exposed_are_shown_by_numbers(run: Run, tmp_path: Path) -> None:
    """Also those of a model's attack, which --suite adds; no subgroup of anybody is named."""
    out, page = tmp_path / "adult.csv", tmp_path / "report.html"
    complete_rows()[:300].to_csv(tmp_path / "table.csv", index=False)
    schema = files("fedanon.datasets") / "bundled" / "adult.toml"
    assert run("anonymize", tmp_path / "table.csv", "--schema", schema, "--k", "5", "-o", out).code == 0
    asked = ["--original", tmp_path / "table.csv", "--schema", schema, "--suite", "record_linkage,membership_loss"]
    done = run("report", "--privacy", out, *asked, "-o", page, "--json")
    assert done.code == 0, done.err
    text = Page(page.read_text(encoding="utf-8")).text
    assert "The most exposed 1 %" in text
    assert "Risk by subgroup" in text
    assert not any(value in text for value in ("Female", "Amer-Indian-Eskimo", "Black"))
    (risk,) = done.json["attacks"]["record_risks"]
    assert risk["most"] == 3
    assert {"column", "subgroups", "lowest", "highest", "differs"} == set(risk["columns"][0])
