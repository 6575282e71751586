"""`fedanon anonymize`: a table in, a verified release out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.bound import with_bound
from fedanon.cli.output import console, print_conclusion, print_json, print_table, search_progress
from fedanon.cli.publishing import PublishingSource, takes_publishing_source, written_lines
from fedanon.cli.runs import describe_run, make_anonymizer, run
from fedanon.cli.series import Previous, StartsSeries, earlier_files, open_series, series_lines
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer
    from fedanon.data.table import Table
    from fedanon.io.dialect import Dialect
    from fedanon.io.parquet_source import ParquetSource
    from fedanon.release.conclusion import Conclusion
    from fedanon.release.release import Release


ProvenFor = Annotated[
    float | None,
    typer.Option("--bound", help="Also prove, for this many seconds, how little any partition could lose.", min=0),
]


@takes_publishing_source
def anonymize(
    source: PublishingSource,
    method: options.Method = None,
    k: options.MinimumK = None,
    require: options.Requirement = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    series: StartsSeries = False,
    previous: Previous = None,
    bound: ProvenFor = None,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Anonymize a table from a file, a database or a data set, verify the release, and report loss and risk.

    With -o the release is written together with a manifest (OUT.csv.manifest.json), and only if the method's claim was
    verified on the output. A CSV file keeps the separator, decimal mark and encoding of the input. From Parquet to
    Parquet, only the columns that the method needs are held in memory; the others are passed through.
    """
    from fedanon.data.columns import changed_columns
    from fedanon.io.manifest import file_sha256

    source.check_outputs(*earlier_files(previous or []))
    method = method or "mondrian"
    k, more = asked_of_classes(k, require)
    anonymizer = make_anonymizer(method, k, {**options.parse_settings(settings), **more})
    if bound is not None and (series or previous):
        raise ConfigError("--bound is about one release; leave it out for a series.")
    with audited(audit, "anonymize") as entry, open_series(source, series, previous or []) as earlier:
        entry |= {"method": method, "parameters": asdict(anonymizer), "seed": seed}
        table, dialect, columns = _read(source, anonymizer, streamed=earlier is None)
        with search_progress():
            if earlier is None:
                release, result = run(anonymizer, table, seed)
            else:
                step, seconds = earlier.release(anonymizer, table, seed)
                release, table = step.release, step.table
                result = describe_run(anonymizer, table, release, seed, seconds)
        if bound is not None:
            release, facts = with_bound(release, table, anonymizer, result, bound)
            result |= facts
        conclusion = conclude_release(release, table, columns)
        entry |= logged(release, result) | {"conclusion": conclusion.level}
        if changed_columns(table.schema):
            result["changed_columns"] = changed_columns(table.schema)
        if dialect is not None:
            result["read_as"] = str(dialect)
        if source.output is not None:
            if earlier is None:
                result |= source.write(release, table, dialect, columns)
            else:
                result |= earlier.write(step, dialect)
            entry |= {"output": source.output.name, "output_sha256": file_sha256(source.output)}
    if as_json:
        print_json(result | {"conclusion": conclusion.to_dict()})
    else:
        _report(result, conclusion)


def _read(
    source: PublishingSource, anonymizer: Anonymizer, *, streamed: bool
) -> tuple[Table, Dialect | None, ParquetSource | None]:
    """The table, the dialect of a CSV file, and where the other columns of a Parquet file pass by if they may."""
    from fedanon.io.parquet import is_parquet

    file = source.file
    alone = streamed and file is not None and source.dataset is None and source.node is None
    if alone and is_parquet(file) and is_parquet(source.output):
        assert file is not None
        columns = options.parquet_source(Path(file), source.schema, source.quasi, source.key)
        policy: Any = source.missing or "error"
        if columns.passes_columns:
            return columns.table(missing=policy, also=_columns_of(anonymizer)), None, columns
    table, dialect = source.load_with_dialect()
    table.refuse_without_key()
    return table, dialect, None


def conclude_release(release: Release, table: Table, streamed: ParquetSource | None = None) -> Conclusion:
    """What is to be said first of a release, which has passed the gate."""
    from fedanon.release.conclusion import conclude
    from fedanon.release.exposure import measure_exposure
    from fedanon.release.verdicts import verified_claim
    from fedanon.verification import carried_columns

    whole, path = (release, None) if streamed is None else (streamed.widened(release, table), streamed.path)
    exposure = measure_exposure(whole, carried_columns(whole, path))
    return conclude(whole, verified_claim(release), exposure=exposure)


def logged(release: Release, result: dict[str, Any]) -> dict[str, Any]:
    """What the audit log keeps of a release: sizes and hashes."""
    sizes = {name: result[name] for name in ("n", "people", "suppressed", "classes", "k_reached")}
    provenance = release.provenance
    claim = None if release.claim is None else release.claim.to_dict()
    hashes = {"data_sha256": provenance.data_sha256, "schema_sha256": provenance.schema_sha256}
    return {**sizes, **hashes, "claim": claim}


def _columns_of(anonymizer: Anonymizer) -> set[str]:
    """The columns that what is required beyond k is about."""
    return {getattr(model, "column", "") for model in getattr(anonymizer, "required", ())}


def asked_of_classes(k: int | None, require: str | None) -> tuple[int | None, dict[str, str]]:
    """k from either option, and what is required beyond as a setting of the method."""
    from fedanon.privacy.requirements import split_k

    if require is None:
        return k, {}
    wanted, rest = split_k(require)
    if None not in (k, wanted) and k != wanted:
        raise ConfigError(f"--k asks for {k}, --require for k={wanted}.")
    return k if wanted is None else wanted, {"require": rest} if rest else {}


def _report(result: dict[str, Any], conclusion: Conclusion) -> None:
    from fedanon.metrics import METRICS

    rows = [(METRICS[name].title if name in METRICS else name, value) for name, value in _numbers(result)]
    print_table(f"{result['method']} on {result['n']:,} rows", ["metric", "value"], rows)
    print_conclusion(conclusion)
    out = console()
    claim = result["claim"]
    out.print(f"Verified: {claim}." if claim else "No promise is made about this release.")
    for note in result["notes"]:
        out.print(f"Note: {note}")
    if result["truthfulness"] < 1:
        out.print(f"Note: {1 - result['truthfulness']:.1%} of the published cells are not true of their record.")
    guarded = any("cells" in change for change in result.get("changes", ()))
    for line in _limits(result["parameters"], guarded, "changed_columns" in result, "series" in result):
        out.print(line)
    if "read_as" in result:
        out.print(f"Read as {result['read_as']}.")
    for line in [*written_lines(result), *series_lines(result)]:
        out.print(line)


def _limits(parameters: Mapping[str, Any], guarded: bool, changed: bool, series: bool) -> tuple[str, ...]:
    """What a release does not protect from."""
    if "epsilon" in parameters:
        return ("Not protected: several releases of the same people can be combined; their epsilons add up.",)
    apart = ", apostrophes apart" if guarded else ""
    apart += ", those noted above apart" if changed else ""
    combined = "releases of other series" if series else "several releases of the same people"
    return (
        f"Not protected: columns that are not quasi-identifiers are published as they are{apart}; a class whose",
        f"records share a sensitive value discloses it; {combined} can be combined.",
        "What is required bounds what a class discloses of the columns it names, and of no others."
        if parameters.get("require")
        else "With --require a class must also hold several values: l=2:COLUMN, t=0.3:COLUMN.",
    )


#: what is said of the file in sentences
FILE_FACTS = ("read_as", "row_order", "changes", "row_key", "table", "changed_columns", "series", "ledger")


def _numbers(result: dict[str, Any]) -> list[tuple[str, Any]]:
    skipped = {"method", "claim", "counted", "notes", "parameters", "output", "version", "n", *FILE_FACTS}
    return [(name, value) for name, value in result.items() if name not in skipped]
