"""Every page as a person meets it: in both themes and languages, on a phone and on a wall, by mouse and by keyboard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fedanon.data.schema import Schema
from tests.app.conftest import Start, Steward
from tests.app.test_journeys import decide, violations
from tests.federated.deployed import deployed, wait_until

WARDS = "patient_id,age,ward,sick\n" + "".join(
    f"P{i:03},{20 + i % 50},{('heart', 'bones', 'lungs', 'eyes')[i % 4]},{('yes', 'no')[i % 3 == 0]}\n"
    for i in range(120)
)
ROLES = {"patient_id": "identifying", "age": "quasi_identifying", "ward": "quasi_identifying", "sick": "sensitive"}
#: widths of a phone, a desk and a 4K screen
WIDTHS = (400, 1280, 3840)


def open_wards(steward: Steward, folder: Path) -> None:
    """Open a table and decide the roles."""
    file = folder / "wards.csv"
    file.write_text(WARDS, encoding="utf-8")
    page = steward.page
    steward.open_file(file)
    decide(steward, ROLES)
    page.get_by_label("Whose row is it?").select_option("column:patient_id")
    steward.press("Save and continue")
    page.wait_for_url("**/risk")


def taxonomy(steward: Steward) -> Any:
    return Schema.read(steward.project / "schema.toml")["ward"].hierarchy.to_nested()  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_file_is_dropped_and_a_taxonomy_dragged_renamed_and_typed(start: Start, tmp_path: Path) -> None:
    steward = start()
    page = steward.page
    # a file that is dropped, as the browser hands it over
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "wards <b>.csv", {type: "text/csv"}));
            document.querySelector(".drop").dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
        }""",
        WARDS,
    )
    steward.wait("#preview table")
    assert [one.name for one in (steward.project / "data").iterdir()] == ["wards -b.csv"]
    open_wards(steward, tmp_path)
    page.goto(f"{steward.base}/columns/2")
    page.get_by_label("New group, for the lines chosen below").fill("Inside")
    for label in ("heart", "lungs"):
        page.get_by_role("checkbox", name=f"({label})").check()
    page.get_by_role("button", name="Save the rule").click()
    page.wait_for_selector(".tree input[value=Inside]")
    assert taxonomy(steward) == [{"Inside": ["heart", "lungs"]}, "bones", "eyes"]
    node = page.locator(".tree .node")
    group = page.locator(".tree .node[data-group='0']")
    with page.expect_navigation():  # dragged onto the group
        node.filter(has_text="eyes").first.drag_to(group, target_position={"x": 3, "y": 3})
    assert set(taxonomy(steward)[0]["Inside"]) == {"heart", "eyes", "lungs"}
    with page.expect_navigation():  # and out of it again
        node.filter(has_text="eyes").first.drag_to(page.locator(".tree .node[data-group='']"))
    assert "eyes" in taxonomy(steward)
    # the same by keyboard alone: the name of the group, and what a value belongs to
    field = page.get_by_label("Name of the group Inside")
    field.focus()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("Organs")
    page.get_by_label("bones belongs to").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # a select does not send the form
    page.get_by_role("button", name="Save the rule").focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    [organs] = [one for one in taxonomy(steward) if isinstance(one, dict)]
    assert set(organs["Organs"]) == {"heart", "lungs", "bones"}


def _show_everything(steward: Steward, server: Path) -> list[str]:
    """A project in which no page is empty; returns its pages."""
    page = steward.page
    steward.press("Measure the risk")
    steward.wait("figure")
    steward.press("Continue to protect", "link")
    steward.wait("#preview .tiles")
    page.locator("form[action='/protect/compare'] button").click()
    steward.wait("#fig-trade")
    steward.wait("#preview .tiles")
    steward.press("Keep this setting to compare")
    page.locator("#k").fill("9")
    steward.press("Keep this setting to compare")
    page.wait_for_selector("#preview table thead th:nth-child(3)")
    for number in ("001", "002"):
        page.goto(f"{steward.base}/protect")
        steward.press("Make the release")
        page.wait_for_url(f"**/result/{number}")
    steward.press("Try attacks on it", "link")
    steward.press("Try the attacks")
    steward.wait("figure")
    steward.press("Continue to the report", "link")
    steward.press("Make the report")
    steward.wait("iframe")
    page.goto(f"{steward.base}/federation")
    page.get_by_label("Folder of the server").fill(str(server))
    steward.press("Watch")
    steward.wait("#cert-caption")
    results = Path(__file__).parents[2] / "experiments" / "results"
    page.goto(f"{steward.base}/experiments")
    page.get_by_label("Folder of results").fill(str(results))
    steward.press("Browse this folder")
    first = next(one.name for one in sorted(results.iterdir()) if one.is_dir())
    of_table = ["/open", "/columns", "/columns/1", "/columns/2", "/risk", "/protect", "/steps"]
    of_release = ["/result/002", "/attacks/002", "/report/002"]
    return [*of_table, *of_release, "/federation", "/experiments", f"/experiments/{first}", "/columns/99"]


@pytest.mark.slow
def test_every_page_is_accessible_in_both_themes_and_languages_at_every_width(start: Start, tmp_path: Path) -> None:
    from fedanon.federated.deployment.server import Server

    server = Server.init(tmp_path / "server", host="127.0.0.1", port=9443, nodes=2, days=20)
    steward = start()
    page = steward.page
    open_wards(steward, tmp_path)
    pages = _show_everything(steward, server.folder)
    for language in ("en", "pt"):
        page.goto(f"{steward.base}/open")
        page.locator("select[name=language]").select_option(language)
        page.wait_for_selector(f"html[lang={language}]")
        for path in pages:
            page.goto(steward.base + path)
            found = violations(page, dark=True)
            assert not any(found.values()), (path, language, found)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, language, width)
            page.set_viewport_size({"width": 1280, "height": 900})
    # on paper: what was found, without what can be pressed
    page.goto(f"{steward.base}/result/002")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert not page.locator("header.top").is_visible()
    assert page.locator(".note.large").is_visible()
    assert page.locator("main details:not([open])").count() == 0
    assert page.pdf().startswith(b"%PDF")


def press_by_keyboard(page: Any, name: str) -> None:
    """Go on by Tab to what has this name, and press it."""
    for _ in range(120):
        page.keyboard.press("Tab")
        here = "((document.activeElement || document.body).textContent || '').trim()"
        if page.evaluate(here) == name:
            page.keyboard.press("Enter")
            return
    raise AssertionError(f"{name} cannot be reached by Tab")


@pytest.mark.slow
def test_the_keyboard_alone_reaches_a_report(start: Start) -> None:
    steward = start()
    page = steward.page
    steward.wait("form[action='/open/example']")
    press_by_keyboard(page, "Use nhanes")
    page.wait_for_url("**/columns")
    press_by_keyboard(page, "Save and continue")
    page.wait_for_url("**/risk")
    press_by_keyboard(page, "Continue to protect")
    page.wait_for_url("**/protect")
    steward.wait("#preview .tiles")
    before = page.inner_text("#preview .tiles")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "k":
            break
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.locator("output[for=k]").inner_text() == "10"
    page.wait_for_function("before => document.querySelector('#preview .tiles').innerText !== before", arg=before)
    press_by_keyboard(page, "Make the release")
    page.wait_for_url("**/result/001")
    press_by_keyboard(page, "Go to the report")
    page.wait_for_url("**/report/001")
    press_by_keyboard(page, "Make the report")
    steward.wait("iframe")
    assert json.loads((steward.project / "releases/001/release.json").read_text(encoding="utf-8"))["asked"]["k"] == 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what an orphan of Flower's may still hold when the test ends
def test_rounds_of_a_real_server_appear_as_they_end(start: Start, tmp_path: Path) -> None:
    """Server and nodes are processes of their own; the page is loaded once, and shows rounds until the result."""
    run = 'method = "mondrian"\nmodel = "lr"\nrounds = 6\nevaluate_every = 1\nmethod_settings = { k = 4 }\n'
    folder = tmp_path / "federation"
    folder.mkdir()
    steward = start()
    page = steward.page
    with deployed(folder, run, nodes=2) as found:
        page.goto(f"{steward.base}/federation")
        page.get_by_label("Folder of the server").fill(str(found.server.folder))
        steward.press("Watch")
        rounds = page.locator("#watched .tiles div", has_text="last round kept").locator("dd")
        assert rounds.inner_text() == "0 of 6"
        for number in range(2):
            found.start_node(number)
        server = found.start_server()
        seen = set()

        def finished() -> bool:
            seen.add(rounds.inner_text())
            return page.locator("#watched .tiles div", has_text="finished").locator("dd").inner_text() == "yes"

        wait_until(finished, "the page to show the end", alive=None)
        found.finish(server)
    assert "6 of 6" in seen
    assert len(seen) >= 3  # some came in between
    assert page.locator("#fig-server-log_loss").count() == 1
    assert page.locator("#watched tbody tr", has_text="server.crt").count() == 1
