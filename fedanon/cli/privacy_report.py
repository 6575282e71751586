"""`fedanon report --privacy`: evidence about a release or a federation, for a data protection officer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fedanon.cli import USAGE_ERROR, options
from fedanon.cli.audit import audited
from fedanon.cli.output import console
from fedanon.errors import ConfigError, DataError

if TYPE_CHECKING:
    from fedanon.report.document import Document
    from fedanon.report.privacy.evidence import Evidence
    from fedanon.report.privacy.language import Language


@dataclass(frozen=True, kw_only=True)
class PrivacyOptions:
    """What `--privacy` goes with."""

    schema: Path | None
    original: Path | None
    population: Path | None
    require: str | None
    language: str
    attacks: bool
    missing: str | None
    encoding: str
    title: str | None
    audit: Path | None


def privacy_report(source: Path, output: Path, pdf: Path | None, chosen: PrivacyOptions) -> None:
    """Write the report as HTML or PDF, by the name of ``output``; exit code 2 if a promise does not hold."""
    from fedanon.report.privacy.language import language

    if output.suffix.lower() not in (".html", ".htm", ".pdf"):
        raise ConfigError("The report must be a file that ends in .html or .pdf.")
    say = language(chosen.language)
    if _is_experiment(source):
        raise ConfigError(
            f"--privacy takes a released file or the JSON result of a federation; {source.name} is an experiment, "
            "which `fedanon report` shows without --privacy."
        )
    with audited(chosen.audit, "report") as entry:
        entry |= {"source": source.name, "language": say.code}
        of_federation = source.is_dir() or source.suffix.lower() == ".json"
        document, failed, facts = (
            _of_federation(source, say, chosen) if of_federation else _of_release(source, say, chosen)
        )
        entry |= facts | {"outcome": "failed" if failed else "done"}
        written = [output, *([pdf] if pdf else [])]
        for path in written:
            _write(document, path)
        entry["written"] = [path.name for path in written]
    console().print(f"Report: {', '.join(map(str, written))}.")
    if failed:
        console(stderr=True).print(
            "A promise does not hold, or the file was changed; the report says which.", style="red"
        )
        raise typer.Exit(USAGE_ERROR)


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


def _of_release(source: Path, say: Language, chosen: PrivacyOptions) -> tuple[Document, bool, dict[str, Any]]:
    from fedanon.report.privacy.release_report import release_report

    evidence = _evidence(source, say, chosen)
    attacks = evidence.attacked(_tell) if chosen.attacks else None
    document = release_report(evidence, say, attacks=attacks, title=chosen.title)
    verdicts = {verdict.name: verdict.holds for verdict in evidence.verdicts}
    return document, evidence.failed, {"sha256": evidence.sha256, "k_reached": evidence.k_reached, "promises": verdicts}


def _evidence(source: Path, say: Language, chosen: PrivacyOptions) -> Evidence:
    from fedanon.data.manifest import Manifest
    from fedanon.data.schema import Schema
    from fedanon.privacy.population import Population
    from fedanon.privacy.requirements import parse_requirements
    from fedanon.report.privacy.evidence import Evidence

    manifest = Manifest.beside(source)
    held = None if manifest is None else manifest.schema
    declared = held if chosen.schema is None else Schema.read(chosen.schema)
    if declared is None:
        raise ConfigError("Give the schema of the original table with --schema; no manifest beside the file holds it.")
    policy: Any = chosen.missing or (manifest.document.get("missing") if manifest else None) or "error"
    named = {
        "origin.original": chosen.original,
        "origin.schema_file": chosen.schema,
        "origin.population": chosen.population,
    }
    return Evidence.of(
        source,
        declared,
        table=None
        if chosen.original is None
        else options.read_table(chosen.original, declared, policy, chosen.encoding),
        required=parse_requirements(chosen.require or ""),
        population=None if chosen.population is None else Population.read(chosen.population, declared),
        files=tuple((say(key), path) for key, path in named.items() if path is not None),
    )


def _of_federation(source: Path, say: Language, chosen: PrivacyOptions) -> tuple[Document, bool, dict[str, Any]]:
    from fedanon.report.privacy.federation_report import federation_report
    from fedanon.report.privacy.federation_result import read_result

    given = [name for name in ("schema", "original", "population", "require") if getattr(chosen, name) is not None]
    if given:
        raise ConfigError(f"--{', --'.join(given)} goes with a released file, not with the result of a federation.")
    result = read_result(source)
    facts = {"sha256": result.sha256, "hospitals": len(result.nodes), "method": result.method}
    return federation_report(result, say, title=chosen.title), result.failed, facts


def _write(document: Document, path: Path) -> None:
    from fedanon.data.atomic import atomic_write
    from fedanon.report.html import render_html

    if path.suffix.lower() == ".pdf":
        from fedanon.report.pdf import render_pdf

        atomic_write(path, render_pdf(document))
    else:
        atomic_write(path, render_html(document))


def _tell(attack: str) -> None:
    console(stderr=True).print(f"attack: {attack}")
