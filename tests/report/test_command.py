"""`fedanon report`: a page, figures and a PDF, and one clear line where something is missing."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, run  # noqa: F401  the fixture
from tests.report.conftest import Folder, Page, rows


def test_page_figures_and_pdf(run: Run, folder: Folder, tmp_path: Path) -> None:  # noqa: F811
    results, page, pdf, figures = folder(rows()), tmp_path / "r.html", tmp_path / "r.pdf", tmp_path / "figures"
    made = run("report", results, results, "-o", page, "--pdf", pdf, "--figures", figures, "--title", "Mine & yours")
    assert made.code == 0, made.err
    assert Page(page.read_text(encoding="utf-8")).text.startswith("Mine & yours")
    assert pdf.read_bytes().startswith(b"%PDF")
    names = sorted(path.name for path in figures.iterdir())
    assert names == sorted(
        f"{number}-grid-{kind}.{ending}"
        for number in (1, 2)
        for kind in ("trade-off", "across-k")
        for ending in ("png", "svg")
    )
    assert all(path.stat().st_size > 1000 for path in figures.iterdir())


def test_a_folder_without_results(run: Run, tmp_path: Path) -> None:  # noqa: F811
    refused = run("report", tmp_path, "-o", tmp_path / "r.html")
    assert refused.code == 3
    assert "holds no result set; run the experiment first" in refused.err
    assert not (tmp_path / "r.html").exists()


def test_a_page_must_be_html(run: Run, folder: Folder, tmp_path: Path) -> None:  # noqa: F811
    refused = run("report", folder(rows()), "-o", tmp_path / "r.pdf")
    assert refused.code == 2
    assert "must end in .html" in refused.err


@pytest.mark.parametrize(("package", "options"), [("matplotlib", []), ("reportlab", ["--pdf", "r.pdf"])])
def test_a_missing_package_is_named_with_its_extra(
    run: Run,  # noqa: F811
    folder: Folder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    options: list[str],
) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(name=name)
        return real(name, *more)

    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "fedanon.report.pdf", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    refused = run("report", folder(rows()), "-o", "r.html", *options)
    assert refused.code == 2
    assert "fedanon[report]" in refused.err
