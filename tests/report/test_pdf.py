"""The PDF: opens, holds what the page holds, and is the same every time."""

from __future__ import annotations

import re
from pathlib import Path

from fedanon.harness.result_set import read_results
from fedanon.report.document import Bullets, Code, Details, Document, Facts, Note, Paragraph, Section
from fedanon.report.experiment_report import experiment_report
from fedanon.report.pdf import render_pdf
from tests.report.conftest import Folder, rows, said


def pages(data: bytes) -> int:
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")
    return len(re.findall(rb"/Type /Page\b(?!s)", data))


def made(folder: Path) -> bytes:
    return render_pdf(experiment_report([read_results(folder)]))


def test_pages_and_same_bytes(folder: Folder) -> None:
    results = folder(rows(), findings=[said("One & two < three")], title="A <b>title</b>")
    data = made(results)
    assert 2 <= pages(data) <= 5
    assert made(results) == data


def test_long_tables_go_on_over_pages(folder: Folder) -> None:
    many = folder(rows(labels=tuple(f"method {i}" for i in range(40)), ks=(2, 3, 5), seeds=1))
    assert pages(made(many)) > pages(made(folder(rows(seeds=1))))


def test_every_block_in_another_language() -> None:
    blocks = (
        Paragraph("Risco de reidentificação: ≤ 5 %."),
        Bullets(("um", "dois")),
        Note("Atenção", ("Três", "quatro"), "warning"),
        Facts((("linhas", "42"),)),
        Code("x = 1\n" + "y" * 300),
        Details("Mais", (Paragraph("cinco"),)),
        Details("Menos", (Paragraph("seis"),), printed=False),
        Section("Seção", (Section("Subseção", (Paragraph("sete"),)),)),
    )
    assert pages(render_pdf(Document("Título", "fedanon", "", blocks, "Feito", language="pt"))) == 1


def test_only_failures(folder: Folder) -> None:
    failure = {"cell": "x", "grid": "grid", "what": "first", "reason": "too few rows"}
    assert pages(made(folder([], failures=[failure] * 30, finished=0))) >= 1
