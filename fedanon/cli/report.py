"""`fedanon report`: the results of experiments as one page for people, as figures, as PDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedanon.cli.output import console
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.report.document import Document

Results = Annotated[list[Path], typer.Argument(help="Folders of results, or the experiments' TOML files.")]


def report(
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page (HTML).")] = Path("report.html"),
    pdf: Annotated[Path | None, typer.Option(help="Also write a PDF.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Also write every figure into this folder, PNG and SVG.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report; that of the experiment by default.")] = None,
) -> None:
    """One self-contained page about the results of experiments: findings, figures, tables, provenance.

    It can be mailed or put on a server as it is; it loads nothing. Several folders become one page.
    """
    from fedanon.data.atomic import atomic_write
    from fedanon.harness.result_set import read_results
    from fedanon.report.experiment_report import experiment_report
    from fedanon.report.html import render_html

    if output.suffix.lower() not in (".html", ".htm"):
        raise ConfigError("The page must be a file that ends in .html; --pdf FILE writes a PDF.")
    document = experiment_report([read_results(_folder(path)) for path in results], title=title)
    written = [output]
    atomic_write(output, render_html(document))
    if pdf is not None:
        from fedanon.report.pdf import render_pdf

        atomic_write(pdf, render_pdf(document))
        written.append(pdf)
    console().print(f"Report: {', '.join(map(str, written))}.")
    if figures is not None:
        console().print(f"{_write_figures(document, figures)} figures, PNG and SVG: {figures}.")


def _folder(path: Path) -> Path:
    return path.parent / "results" / path.stem if path.suffix == ".toml" else path


def _write_figures(document: Document, folder: Path) -> int:
    from fedanon.data.atomic import atomic_write
    from fedanon.report.drawing import figure_file

    folder.mkdir(parents=True, exist_ok=True)
    found = document.figures()
    for figure in found:
        for kind in ("png", "svg"):
            atomic_write(folder / f"{figure.name}.{kind}", figure_file(figure, kind))
    return len(found)
