"""The page in a real browser: it renders without an error, follows light and dark, and fits a phone."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import escape
from pathlib import Path

import pytest

from fedanon.harness.result_set import read_results
from fedanon.report.experiment_report import experiment_report
from fedanon.report.html import render_html
from tests.report.conftest import Folder, rows, said

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium to look at the page with")

LONG = "a_label_without_any_space_that_is_much_longer_than_a_phone_is_wide_" * 2
#: put into a copy of the page: how wide it is, whether its script ran, and what stands out
PROBE = """<script>addEventListener("load", () => {
  const width = document.documentElement.clientWidth;
  const out = [...document.querySelectorAll("body *")].filter((one) => !one.closest(".wide, pre, svg")
    && one.getBoundingClientRect().right > width + 1).map((one) => one.tagName + "." + one.className);
  parent.document.body.dataset.probe = [document.documentElement.scrollWidth, innerWidth,
    document.querySelectorAll("thead button").length, ...out].join(" ");
});</script></body>"""


@pytest.fixture
def page(folder: Folder, tmp_path: Path) -> Path:
    results = folder(
        rows(labels=("first", LONG)),
        title=LONG,
        findings=[said(LONG)],
        data={LONG: "da7a" * 16},
    )
    path = tmp_path / "page.html"
    path.write_text(render_html(experiment_report([read_results(results)])), encoding="utf-8")
    return path


def browse(page: Path, *options: str, width: int = 1280) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--window-size={width},900"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    command = [CHROMIUM, *fixed, profile, *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def brightness(page: Path, scheme: int) -> float:
    from PIL import Image, ImageStat

    shot = page.with_name(f"shot{scheme}.png")
    seen = browse(page, f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}")
    assert "CONSOLE" not in seen.stderr, seen.stderr
    with Image.open(shot) as image:
        grey = ImageStat.Stat(image.convert("L"))
    assert grey.stddev[0] > 5, "something is drawn"
    return float(grey.mean[0])


def test_light_and_dark(page: Path) -> None:
    dark, light = brightness(page, 0), brightness(page, 1)
    assert dark < 90
    assert light > 180


def test_fits_a_phone(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # the probe is not the page's own script, which is all that its policy lets run
    probed = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text).replace("</body>", PROBE)
    # a browser's window may have a least width; a frame has none
    frame = (
        f'<!doctype html><body><iframe style="width: 400px; height: 800px" srcdoc="{escape(probed)}"></iframe></body>'
    )
    copy = page.with_name("framed.html")
    copy.write_text(frame, encoding="utf-8")
    seen = browse(copy, "--dump-dom")
    found = re.search(r'data-probe="(\d+) (\d+) (\d+)([^"]*)"', seen.stdout)
    assert found is not None
    wide, window, buttons = map(int, found.groups()[:3])
    assert window == 400
    assert wide <= window, found.group(4)
    assert buttons > 0, "columns can be sorted"


def test_the_policy_stops_other_scripts(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("</body>", PROBE)
    copy = page.with_name("refused.html")
    copy.write_text(text, encoding="utf-8")
    assert "data-probe=" not in browse(copy, "--dump-dom").stdout
