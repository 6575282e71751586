"""`fedanon anonymize`: a table in, a verified release out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.cli.runs import make_anonymizer, run
from fedanon.cli.search_progress import search_progress
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer


def anonymize(
    file: options.InputFile = None,
    dataset: options.Dataset = None,
    client: options.Client = None,
    schema: options.SchemaFile = None,
    quasi: options.Quasi = None,
    method: Annotated[str, typer.Option(help="Anonymizer; see `fedanon methods`.")] = "mondrian",
    k: Annotated[int | None, typer.Option(help="Minimum number of people who share a published record.")] = None,
    require: Annotated[
        str | None, typer.Option(help="What classes must keep beyond k: l=2:COLUMN,t=0.3:COLUMN; may name k itself.")
    ] = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    missing: options.Missing = None,
    encoding: options.Encoding = "utf-8",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write the release: CSV, or .parquet.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Anonymise a CSV or Parquet file or a data set, verify the release, and report loss and risk.

    With -o the release is written together with a manifest (OUT.csv.manifest.json); nothing is written unless what the
    method claims was verified on the output. From Parquet to Parquet only the columns the method needs are held in
    memory; the others pass by.
    """
    from fedanon.data.parquet_format import is_parquet
    from fedanon.data.release_file import write_release

    k, more = _requirement(k, require)
    anonymizer = make_anonymizer(method, k, {**options.parse_settings(settings), **more})
    write = write_release
    if file is not None and is_parquet(file) and is_parquet(output) and dataset is None and client is None:
        source = options.parquet_source(file, schema, quasi)
        policy: Any = missing or "error"
        table = source.table(missing=policy, also=_columns_of(anonymizer))
        write = source.write_release
    else:
        table = options.load_table(
            file=file, dataset=dataset, client=client, schema=schema, quasi=quasi, missing=missing, encoding=encoding
        )
    with search_progress():
        release, result = run(anonymizer, table, seed)
    if output is not None:
        write(release, table, output)
        result["output"] = str(output)
    if as_json:
        print_json(result)
    else:
        _report(result)


def _columns_of(anonymizer: Anonymizer) -> set[str]:
    """The columns that what is required beyond k is about."""
    return {getattr(model, "column", "") for model in getattr(anonymizer, "required", ())}


def _requirement(k: int | None, require: str | None) -> tuple[int | None, dict[str, str]]:
    """k from either option, and what is required beyond as a setting of the method."""
    from fedanon.privacy.requirements import split_k

    if require is None:
        return k, {}
    wanted, rest = split_k(require)
    if None not in (k, wanted) and k != wanted:
        raise ConfigError(f"--k asks for {k}, --require for k={wanted}.")
    return k if wanted is None else wanted, {"require": rest} if rest else {}


def _report(result: dict[str, Any]) -> None:
    from fedanon.metrics import METRICS

    rows = [(METRICS[name].title if name in METRICS else name, value) for name, value in _numbers(result)]
    print_table(f"{result['method']} on {result['n']:,} rows", ["measure", "value"], rows)
    out = console()
    claim = result["claim"]
    out.print(f"Verified: {claim}." if claim else "No promise is made about this release.")
    for note in result["notes"]:
        out.print(f"Note: {note}")
    if result["truthfulness"] < 1:
        out.print(f"Note: {1 - result['truthfulness']:.1%} of the published cells are not true of their record.")
    out.print("Not protected: columns that are not quasi-identifiers are published as they are; people in a class who")
    out.print("share a sensitive value disclose it; several releases of the same people can be combined.")
    if result["parameters"].get("require"):
        out.print("What is required bounds what a class discloses of the columns it names, and of no others.")
    else:
        out.print("With --require a class must also hold several values: l=2:COLUMN, t=0.3:COLUMN.")
    if "output" in result:
        out.print(f"Written: {result['output']} and its manifest.")


def _numbers(result: dict[str, Any]) -> list[tuple[str, Any]]:
    skipped = {"method", "claim", "notes", "parameters", "output", "version", "n"}
    return [(name, value) for name, value in result.items() if name not in skipped]
