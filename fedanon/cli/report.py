"""`fedanon report`: results of experiments, or the risks of a release, as one page for people or as PDF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_conclusion, print_json, tell_progress
from fedanon.cli.series import Previous, earlier_files, known_series
from fedanon.errors import ConfigError, DataError, PrivacyViolationError

if TYPE_CHECKING:
    from fedanon.datasets.source import DataSource
    from fedanon.release.conclusion import Conclusion
    from fedanon.report.document import Document
    from fedanon.report.privacy.evidence import ReleaseEvidence
    from fedanon.report.privacy.language import Language

#: the page, unless -o names another
PAGE = Path("report.html")

Results = Annotated[
    list[Path],
    typer.Argument(help="Folders of results, or the experiments' TOML files; with --privacy one release or result."),
]

Page = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="The page (HTML), report.html by default; with --privacy also .pdf."),
]
Population = Annotated[
    Path | None, typer.Option(help="With --privacy: CSV of the population among which an attacker looks.")
]
Required = Annotated[
    str | None, typer.Option(help="With --privacy: requirements in addition to the manifest's claim: k=10,l=2:COLUMN.")
]
Privacy = Annotated[
    bool, typer.Option("--privacy", help="The risks of a released file, or of a federation (its JSON result).")
]
Attacks = Annotated[
    bool, typer.Option("--attacks/--no-attacks", help="With --privacy and --original: run the attacks.")
]
Suite = Annotated[
    str,
    typer.Option(
        help="With --privacy and --original: which attacks, as in `fedanon attack`; release,lira,tree_reconstruction "
        "adds who is found by membership and whose rows are rebuilt, and takes minutes."
    ),
]
Fields = Annotated[
    Path | None,
    typer.Option(help="With --privacy: TOML file with texts for fields of the impact assessment, such as controller."),
]
Evidence = Annotated[
    bool, typer.Option("--json", help="With --privacy: print the evidence as JSON; write a page only with -o.")
]


@options.takes_reading
def report(
    reading: options.ReadOptions,
    results: Results,
    output: Page = None,
    pdf: Annotated[Path | None, typer.Option(help="Also write a PDF.")] = None,
    figures: Annotated[Path | None, typer.Option(help="Also write every figure into this folder, PNG and SVG.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report; that of the experiment by default.")] = None,
    privacy: Privacy = False,
    schema: Annotated[Path | None, typer.Option(help="With --privacy: schema of the original table.")] = None,
    original: Annotated[
        str | None, typer.Option(help="With --privacy: the original table, for attacks and truthfulness.")
    ] = None,
    population: Population = None,
    require: Required = None,
    language: Annotated[str, typer.Option(help="With --privacy: en or pt.")] = "en",
    attacks: Attacks = True,
    suite: Suite = "release",
    fields: Fields = None,
    row_key: options.RowKey = None,
    key: options.PersonKeyFile = None,
    previous: Previous = None,
    missing: options.Missing = None,
    force: options.Force = False,
    audit: AuditFile = None,
    as_json: Evidence = False,
) -> None:
    """One self-contained page about the results of experiments: findings, figures, tables, provenance.

    It loads nothing, so it can be mailed or put on a server as it is. Several folders become one page. With --privacy:
    the risks of a released file (with its manifest beside it), or of a federation (the JSON of `fedanon simulate
    --json` or of a server, or a folder with one). Exit code 4 if a promise does not hold; it is written all the same.
    """
    if privacy:
        _refuse_several(results, figures)
        chosen = PrivacyOptions(
            schema=schema,
            original=None if original is None else reading.at(original).source,
            population=population,
            require=require,
            language=language,
            suite=suite if attacks else None,
            fields=fields,
            row_key=row_key,
            key=key,
            previous=tuple(previous or ()),
            missing=missing,
            title=title,
            force=force,
            audit=audit,
            as_json=as_json,
        )
        privacy_report(results[0], output, pdf, chosen)
        return
    if as_json:
        raise ConfigError("--json goes with --privacy.")
    with audited(audit, "report") as entry:
        entry["sources"] = [path.name for path in results]
        entry["written"] = _experiments(results, output or PAGE, pdf, figures, title, force=force)


def _refuse_several(results: list[Path], figures: Path | None) -> None:
    if len(results) != 1 or figures is not None:
        raise ConfigError("--privacy takes one release or one result, and no --figures.")


def _experiments(
    results: list[Path], output: Path, pdf: Path | None, figures: Path | None, title: str | None, *, force: bool
) -> list[str]:
    """Write the page and what else was asked for; returns the names of the files."""
    from fedanon.harness.result_set import read_results
    from fedanon.io.atomic import atomic_write
    from fedanon.io.outputs import check_output
    from fedanon.report.experiment_report import experiment_report
    from fedanon.report.html import render_html

    check_output(output, inputs=results, endings=(".html", ".htm"), force=force)
    check_output(pdf, inputs=[*results, output], endings=(".pdf",), force=force)
    document = experiment_report([read_results(_folder(path)) for path in results], title=title)
    written = [output]
    atomic_write(output, render_html(document))
    if pdf is not None:
        from fedanon.report.pdf import render_pdf

        atomic_write(pdf, render_pdf(document))
        written.append(pdf)
    console().print(f"Report: {', '.join(map(str, written))}.")
    if figures is not None:
        drawn = _write_figures(document, figures, force=force)
        console().print(f"{len(drawn) // 2} figures, PNG and SVG: {figures}.")
        written += drawn
    return [path.name for path in written]


def _folder(path: Path) -> Path:
    return path.parent / "results" / path.stem if path.suffix == ".toml" else path


def _write_figures(document: Document, folder: Path, *, force: bool) -> list[Path]:
    from fedanon.io.atomic import atomic_write
    from fedanon.io.outputs import check_output
    from fedanon.report.drawing import figure_file

    folder.mkdir(parents=True, exist_ok=True)
    files = {folder / f"{each.name}.{kind}": (each, kind) for each in document.figures() for kind in ("png", "svg")}
    for path in files:
        check_output(path, force=force)
    for path, (each, kind) in files.items():
        atomic_write(path, figure_file(each, kind))
    return list(files)


# ---- `fedanon report --privacy` ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PrivacyOptions:
    """What `--privacy` goes with."""

    schema: Path | None
    original: DataSource | None
    population: Path | None
    require: str | None
    language: str
    suite: str | None
    fields: Path | None
    row_key: Path | None
    key: Path | None
    previous: tuple[Path, ...]
    missing: str | None
    title: str | None
    force: bool
    audit: Path | None
    as_json: bool


@dataclass(frozen=True)
class PrivacyReport:
    """A report that is ready to be written: the page, its evidence as data, what it concludes, and what is logged."""

    document: Document
    evidence: dict[str, Any]
    conclusion: Conclusion
    facts: dict[str, Any]


def privacy_report(source: Path, output: Path | None, pdf: Path | None, chosen: PrivacyOptions) -> None:
    """Write the report as HTML or PDF, by the name of ``output``; fail if a promise does not hold."""
    from fedanon.io.outputs import check_output, schema_files
    from fedanon.report.privacy.language import language

    if output is None and not chosen.as_json:
        output = PAGE
    originals = [] if chosen.original is None else chosen.original.inputs
    read = [source, *schema_files(chosen.schema), *originals, chosen.population, chosen.row_key, chosen.key]
    read.append(chosen.fields)
    read += earlier_files(chosen.previous)
    check_output(output, inputs=read, endings=(".html", ".htm", ".pdf"), force=chosen.force)
    check_output(pdf, inputs=[*read, output], endings=(".pdf",), force=chosen.force)
    say = language(chosen.language)
    if _is_experiment(source):
        raise ConfigError(
            f"--privacy takes a released file or the JSON result of a federation; {source.name} is an experiment, "
            "which `fedanon report` shows without --privacy."
        )
    with audited(chosen.audit, "report") as entry:
        entry |= {"source": source.name, "language": say.code}
        of_federation = source.is_dir() or source.suffix.lower() == ".json"
        made = _of_federation(source, say, chosen) if of_federation else _of_release(source, say, chosen)
        failed = made.conclusion.level == "broken"
        entry |= made.facts | {"conclusion": made.conclusion.level, "outcome": "failed" if failed else "done"}
        written = [path for path in (output, pdf) if path is not None]
        for path in written:
            _write(made.document, path)
        entry["written"] = [path.name for path in written]
    if chosen.as_json:
        print_json(made.evidence)
    else:
        print_conclusion(made.conclusion, say.code)
        console().print(f"Report: {', '.join(map(str, written))}.")
    if failed:
        console(stderr=True).print(
            "A promise does not hold, or the file was changed; the report says which.", style="red"
        )
        raise typer.Exit(PrivacyViolationError.exit_code)


def _is_experiment(source: Path) -> bool:
    """Whether it is what `fedanon experiment` reads or writes: its TOML file, its folder of results, their manifest."""
    from fedanon.harness.result_set import MANIFEST, read_manifest

    if source.suffix.lower() == ".toml":
        return True
    folder = source.parent if source.name == MANIFEST else source
    try:
        return "experiment" in read_manifest(folder)
    except DataError:
        return False


def _of_release(source: Path, say: Language, chosen: PrivacyOptions) -> PrivacyReport:
    from fedanon.report.privacy.evidence_json import describe_release
    from fedanon.report.privacy.impact_fields import read_fields
    from fedanon.report.privacy.release_report import release_report

    evidence = _evidence(source, say, chosen)
    attacks = None if chosen.suite is None else evidence.attacked(_Told(chosen.suite), chosen.suite)
    by_hand = None if chosen.fields is None else read_fields(chosen.fields)
    document = release_report(evidence, say, attacks=attacks, title=chosen.title, by_hand=by_hand)
    verdicts = {verdict.name: verdict.holds for verdict in evidence.verdicts}
    facts = {"sha256": evidence.sha256, "k_reached": evidence.released.smallest_class, "promises": verdicts}
    return PrivacyReport(document, describe_release(evidence, attacks), evidence.conclusion(attacks), facts)


def _evidence(source: Path, say: Language, chosen: PrivacyOptions) -> ReleaseEvidence:
    from fedanon.data.schema import Schema
    from fedanon.io.manifest import Manifest
    from fedanon.privacy.models.population import Population
    from fedanon.privacy.requirements import parse_requirements
    from fedanon.report.privacy.evidence import ReleaseEvidence

    manifest = Manifest.beside(source)
    held = None if manifest is None else manifest.declared_schema
    declared = held if chosen.schema is None else Schema.read(chosen.schema)
    declared = None if declared is None else options.with_key(declared, chosen.key)
    if declared is None:
        raise ConfigError("Give the schema of the original table with --schema; no manifest beside the file holds it.")
    policy: Any = chosen.missing or (manifest.document.get("missing") if manifest else None) or "error"
    originals = [] if chosen.original is None else chosen.original.inputs
    named = [
        *(("origin.original", file) for file in originals),
        ("origin.schema_file", chosen.schema),
        ("origin.population", chosen.population),
    ]
    table, series = None, known_series(source, chosen.schema, chosen.previous)
    if chosen.original is not None:
        table = chosen.original.load_by(declared, missing=policy)
        if series is not None:
            table = series.with_counterfeits(table, chosen.original)
    return ReleaseEvidence.from_file(
        source,
        declared,
        table=table,
        series=series,
        row_key=chosen.row_key,
        required=parse_requirements(chosen.require or ""),
        population=None if chosen.population is None else Population.read(chosen.population, declared),
        files=tuple((say(key), path) for key, path in named if path is not None),
    )


def _of_federation(source: Path, say: Language, chosen: PrivacyOptions) -> PrivacyReport:
    from fedanon.report.privacy.evidence_json import describe_federation
    from fedanon.report.privacy.federation_report import federation_report
    from fedanon.report.privacy.federation_result import read_result

    of_release = ("schema", "original", "population", "require", "fields")
    given = [name for name in of_release if getattr(chosen, name) is not None]
    if given:
        raise ConfigError(f"--{', --'.join(given)} goes with a released file, not with the result of a federation.")
    result = read_result(source)
    facts = {"sha256": result.sha256, "hospitals": len(result.nodes), "method": result.method}
    document = federation_report(result, say, title=chosen.title)
    return PrivacyReport(document, describe_federation(result), result.conclusion(), facts)


def _write(document: Document, path: Path) -> None:
    from fedanon.io.atomic import atomic_write
    from fedanon.report.html import render_html

    if path.suffix.lower() == ".pdf":
        from fedanon.report.pdf import render_pdf

        atomic_write(path, render_pdf(document))
    else:
        atomic_write(path, render_html(document))


class _Told:
    """Says which attack is being tried."""

    def __init__(self, suite: str) -> None:
        from fedanon.attacks.suite import select_attacks

        self._waiting = [name for name, _ in select_attacks(suite)]

    def __call__(self, attack: str) -> None:
        console(stderr=True).print(f"attack: {attack}")
        tell_progress(self._waiting.index(attack) / len(self._waiting), attack)
