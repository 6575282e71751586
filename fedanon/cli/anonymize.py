"""`fedanon anonymize`: a table in, a verified release out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.cli.runs import make_anonymizer, run
from fedanon.cli.search_progress import search_progress


def anonymize(
    file: options.InputFile = None,
    dataset: options.Dataset = None,
    client: options.Client = None,
    schema: options.SchemaFile = None,
    quasi: options.Quasi = None,
    method: Annotated[str, typer.Option(help="Anonymizer; see `fedanon methods`.")] = "mondrian",
    k: Annotated[int | None, typer.Option(help="Minimum number of people who share a published record.")] = None,
    settings: options.Settings = None,
    seed: options.Seed = 0,
    missing: options.Missing = None,
    encoding: options.Encoding = "utf-8",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to write the release (CSV).")] = None,
    as_json: options.Json = False,
) -> None:
    """Anonymise a CSV file or a data set, verify the release, and report loss and risk.

    With -o the release is written together with a manifest (OUT.csv.manifest.json); nothing is written unless what the
    method claims was verified on the output.
    """
    anonymizer = make_anonymizer(method, k, options.parse_settings(settings))
    table = options.load_table(
        file=file, dataset=dataset, client=client, schema=schema, quasi=quasi, missing=missing, encoding=encoding
    )
    with search_progress():
        release, result = run(anonymizer, table, seed)
    if output is not None:
        release.to_csv(output, table)
        result["output"] = str(output)
    if as_json:
        print_json(result)
    else:
        _report(result)


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
    if "output" in result:
        out.print(f"Written: {result['output']} and its manifest.")


def _numbers(result: dict[str, Any]) -> list[tuple[str, Any]]:
    skipped = {"method", "claim", "notes", "parameters", "output", "version", "n"}
    return [(name, value) for name, value in result.items() if name not in skipped]
