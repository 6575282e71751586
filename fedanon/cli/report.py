"""`fedanon report`: results of experiments, or the risks of a release, as one page for people or as PDF."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile
from fedanon.cli.output import console
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.report.document import Document

Results = Annotated[
    list[Path],
    typer.Argument(help="Folders of results, or the experiments' TOML files; with --privacy one release or result."),
]


def report(
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page (HTML); with --privacy also .pdf.")] = Path(
        "report.html"
    ),
    pdf: Annotated[Path | None, typer.Option(help="Also write a PDF.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Also write every figure into this folder, PNG and SVG.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report; that of the experiment by default.")] = None,
    privacy: Annotated[
        bool, typer.Option("--privacy", help="The risks of a released file, or of a federation (its JSON result).")
    ] = False,
    schema: Annotated[Path | None, typer.Option(help="With --privacy: schema of the original table.")] = None,
    original: Annotated[Path | None, typer.Option(help="With --privacy: the original, for attacks and truth.")] = None,
    population: Annotated[
        Path | None, typer.Option(help="With --privacy: CSV of the people among whom an attacker looks.")
    ] = None,
    require: Annotated[
        str | None, typer.Option(help="With --privacy: what is asked beside the manifest's claim: k=10,l=2:COLUMN.")
    ] = None,
    language: Annotated[str, typer.Option(help="With --privacy: en or pt.")] = "en",
    attacks: Annotated[
        bool, typer.Option("--attacks/--no-attacks", help="With --privacy and --original: try the attacks.")
    ] = True,
    missing: options.Missing = None,
    encoding: options.Encoding = "utf-8",
    audit: AuditFile = None,
) -> None:
    """One self-contained page about the results of experiments: findings, figures, tables, provenance.

    It can be mailed or put on a server as it is; it loads nothing. Several folders become one page.

    With --privacy: the risks of a released file (CSV or .parquet, with its manifest beside it), or of a federation (the
    JSON of `fedanon simulate --json` or of a server, or a folder with one), for a data protection officer. Exit code 2
    if a promise does not hold on the file; the report is written all the same.
    """
    if privacy:
        from fedanon.cli.privacy_report import PrivacyOptions, privacy_report

        if len(results) != 1 or figures is not None:
            raise ConfigError("--privacy takes one release or one result, and no --figures.")
        chosen = PrivacyOptions(
            schema=schema,
            original=original,
            population=population,
            require=require,
            language=language,
            attacks=attacks,
            missing=missing,
            encoding=encoding,
            title=title,
            audit=audit,
        )
        privacy_report(results[0], output, pdf, chosen)
        return
    _experiments(results, output, pdf, figures, title)


def _experiments(results: list[Path], output: Path, pdf: Path | None, figures: Path | None, title: str | None) -> None:
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
