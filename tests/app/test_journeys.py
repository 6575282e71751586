"""The whole way of a steward, in a real browser on a real server: from a file to a verified release and its report."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fedanon.io.manifest import file_sha256
from fedanon.io.row_order import read_row_key
from tests.app.conftest import Start, Steward
from tests.cli.brazil import QUASI, write_month

#: from an example to a verified release and its report
MOST_CLICKS = 12


def violations(page: Any, *, dark: bool) -> dict[str, list[str]]:
    """What axe-core finds on a page by all its rules; in the dark, where only colors differ, by that of contrast."""
    from axe_playwright_python.sync_playwright import Axe

    found = {}
    themes = {"light": {}, **({"dark": {"runOnly": ["color-contrast"]}} if dark else {})}
    for scheme, rules in themes.items():
        page.emulate_media(color_scheme=scheme)
        answer = Axe().run(page, options={"resultTypes": ["violations"], **rules})
        found[scheme] = [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in answer.response["violations"]]
    return found


def assert_accessible(steward: Steward, *, dark: bool = True) -> None:
    found = violations(steward.page, dark=dark)
    assert not any(found.values()), (steward.page.url, found)
    assert steward.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), steward.page.url


def people_per_class(project: Path, quasi: tuple[str, ...], person: str, original: Path, **reading: Any) -> list[int]:
    """People who share each published combination, counted from the files with no code of the app."""
    release = project / "releases" / "001" / "release.csv"
    order = read_row_key(project / "secret" / "001.key", file_sha256(release))
    with original.open(newline="", encoding=reading.get("encoding", "utf-8")) as file:
        people = [row[person] for row in csv.DictReader(file, delimiter=reading.get("separator", ","))]
    classes = defaultdict(set)
    with release.open(newline="", encoding=reading.get("encoding", "utf-8")) as file:
        for row, shown in zip(csv.DictReader(file, delimiter=reading.get("separator", ",")), order, strict=True):
            classes[tuple(row[name] for name in quasi)].add(people[shown])
    return sorted(len(who) for who in classes.values())


def decide(steward: Steward, roles: dict[str, str]) -> None:
    """Choose roles by the names of columns, as a person does."""
    for name, role in roles.items():
        steward.page.get_by_role("row", name=name).locator("select").first.select_option(role)


def test_from_a_brazilian_file_to_a_report(start: Start, tmp_path: Path) -> None:
    """Reload and a second tab in the middle of a run, a run that is cancelled, and every page accessible."""
    original = write_month(tmp_path / "internações março.csv", 3)
    steward = start()
    page = steward.page
    page.set_input_files("input[type=file]", original)
    page.locator("form[action='/open/upload'] button").click()
    steward.wait("#preview table")
    assert "latin-1" in page.inner_text("#preview") or "cp1252" in page.inner_text("#preview")
    steward.press("Continue to the columns")
    page.wait_for_url("**/columns")
    decide(steward, {"cid": "sensitive", "alta": "insensitive", "observação": "insensitive"})
    decide(steward, dict.fromkeys(QUASI, "quasi_identifying") | {"prontuario": "identifying"})
    page.get_by_label("Whose row is it?").select_option("column:prontuario")
    assert_accessible(steward, dark=False)
    steward.press("Save and continue")
    page.wait_for_url("**/risk")
    steward.press("Continue to protect", "link")
    steward.wait("#preview .tiles")
    assert "people" in page.inner_text("form.protect")
    assert_accessible(steward, dark=False)
    _cancel_a_run(steward)
    page.locator("select[name=method]").select_option("mondrian")
    steward.press("Make the release")
    page.wait_for_url("**/result/001")
    steward.wait("#rows table")
    assert_accessible(steward)
    found = people_per_class(steward.project, QUASI, "prontuario", original, encoding="latin-1", separator=";")
    assert found[0] >= 5
    tile = page.locator(".tiles div", has_text="smallest class, in people").locator("dd").inner_text()
    assert int(tile) == found[0]
    assert "at least 5 people" in page.inner_text("main")
    _report_in_portuguese(steward)


def _cancel_a_run(steward: Steward) -> None:
    """A method that searches for long is started, seen from a second tab and after a reload, and cancelled."""
    page = steward.page
    page.locator("select[name=method]").select_option("anneal")
    steward.press("Make the release")
    steward.wait(".job.running")
    page.reload()
    steward.wait(".job.running")
    other = steward.open_tab()
    other.goto(f"{steward.base}/protect")
    other.wait_for_selector(".job.running")
    other.get_by_role("button", name="Cancel").click()
    other.wait_for_selector(".job.cancelled")
    other.close()
    steward.wait(".job.cancelled")
    assert list((steward.project / "releases").iterdir()) == []
    assert list((steward.project / "secret").iterdir()) == []


def _report_in_portuguese(steward: Steward) -> None:
    page = steward.page
    page.get_by_label("Language").select_option("pt")
    page.wait_for_selector("html[lang=pt]")
    assert "pessoas" in page.inner_text("main")
    steward.press("Ir ao relatório", "link")
    page.get_by_label("com ataques").uncheck()
    page.get_by_text("Campos a preencher").click()
    page.locator("textarea[name=controller]").fill("Hospital São José <b>")
    steward.press("Fazer o relatório")
    steward.wait("iframe")
    assert_accessible(steward, dark=False)
    report = (steward.project / "releases" / "001" / "report-pt.html").read_text(encoding="utf-8")
    assert "Hospital São José &lt;b&gt;" in report
    assert "pelo menos 5 pessoas" in report
    evidence = json.loads((steward.project / "releases/001/report-pt.evidence.json").read_text(encoding="utf-8"))
    assert evidence["counted"] == "people"
    assert (steward.project / "releases/001/report-pt.pdf").stat().st_size > 10_000
    with page.expect_download() as download:
        page.get_by_role("link", name="release.csv", exact=True).click()
    assert file_sha256(Path(download.value.path())) == file_sha256(steward.project / "releases/001/release.csv")


@pytest.mark.slow
def test_few_clicks_lead_from_an_example_to_a_report(start: Start) -> None:
    steward = start()
    page = steward.page
    assert_accessible(steward)
    steward.press("Use nhanes")
    page.wait_for_url("**/columns")
    assert_accessible(steward)
    steward.press("Save and continue")
    page.wait_for_url("**/risk")
    steward.press("Measure the risk")
    steward.wait("figure")
    assert_accessible(steward)
    steward.press("Continue to protect", "link")
    steward.wait("#preview .tiles")
    assert_accessible(steward)
    steward.press("Make the release")
    page.wait_for_url("**/result/001")
    steward.wait("#rows table")
    assert_accessible(steward)
    steward.press("Try attacks on it", "link")
    steward.press("Try the attacks")
    steward.wait("figure")
    assert_accessible(steward)
    steward.press("Continue to the report", "link")
    steward.press("Make the report")
    steward.wait("iframe")
    assert_accessible(steward)
    assert steward.clicks <= MOST_CLICKS
    print(f"{steward.clicks} clicks")
    page.goto(f"{steward.base}/columns/3")
    assert_accessible(steward)
    for path in ("/steps", "/federation", "/experiments"):
        page.goto(steward.base + path)
        assert_accessible(steward)


@pytest.mark.slow
def test_colon_counts_people(start: Start, tmp_path: Path) -> None:
    """Two rows per patient: the page says people, and a recount finds at least k of them in every class."""
    from tests.data.labeled_tables import labels, read

    frame = read(next(table for table in labels() if table.name == "colon"))
    if frame is None:
        pytest.skip("pydataset is not installed")
    original = tmp_path / "colon.csv"
    frame.to_csv(original, index=False)
    steward = start()
    page = steward.page
    steward.open_file(original)
    assert page.get_by_label("Whose row is it?").input_value() == "column:id"
    for name in frame.columns:
        role = {"id": "identifying", "age": "quasi_identifying", "sex": "quasi_identifying", "status": "sensitive"}
        select = page.locator("tr", has=page.locator("th", has_text=re.compile(rf"^{re.escape(name)}$"))).locator(
            "select"
        )
        select.select_option(role.get(name, "insensitive"))
    steward.press("Save and continue")
    page.wait_for_url("**/risk")
    steward.press("Continue to protect", "link")
    steward.wait("#preview .tiles")
    page.locator("#k").fill("7")
    steward.press("Make the release")
    page.wait_for_url("**/result/001")
    found = people_per_class(steward.project, ("age", "sex"), "id", original)
    assert found[0] >= 7
    assert "at least 7 people" in page.inner_text("main")
    assert int(page.locator(".tiles div", has_text="smallest class, in people").locator("dd").inner_text()) == found[0]


@pytest.mark.slow
def test_diabetes_130_goes_all_the_way(start: Start) -> None:
    steward = start()
    steward.context.set_default_timeout(600_000)
    page = steward.page
    steward.press("Use diabetes_130")
    page.wait_for_url("**/columns")
    steward.press("Save and continue")
    page.wait_for_url("**/risk")
    steward.press("Continue to protect", "link")
    steward.wait("#preview .tiles")
    steward.press("Make the release")
    page.wait_for_url("**/result/001")
    steward.wait("#rows table")
    assert_accessible(steward)
    steward.press("Go to the report", "link")
    page.get_by_label("with attacks").uncheck()
    steward.press("Make the report")
    steward.wait("iframe")
    evidence = json.loads((steward.project / "releases/001/report-en.evidence.json").read_text(encoding="utf-8"))
    assert evidence["counted"] == "people"
    assert evidence["n"] == 71518


@pytest.mark.slow
def test_a_federation_is_simulated_with_its_scores(start: Start) -> None:
    steward = start()
    page = steward.page
    page.goto(f"{steward.base}/federation")
    page.get_by_label("Nodes").fill("3")
    page.get_by_label("Rounds").fill("6")
    steward.press("Start the simulation")
    steward.wait("#run-title")
    assert_accessible(steward)
    result = json.loads((steward.project / "federations/001.json").read_text(encoding="utf-8"))
    assert len(result["facts"]) == 3
    assert page.locator("#run-title ~ .wide tbody tr").count() == 3
    assert f"{result['accuracy']:.4g}".rstrip("0") in page.inner_text("main")


@pytest.mark.slow
def test_the_session_ends_with_the_process(start: Start) -> None:
    """What was shown from the rows lies in a folder that is gone, and nothing lies in the browser's storage."""
    steward = start()
    page = steward.page
    steward.press("Use nhanes")
    page.wait_for_url("**/columns")
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    [cookie] = steward.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert cookie["expires"] == -1
