"""`fedanon sdc impute`: multiple imputation, several synthetic copies of some columns with pooled estimates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table
from fedanon.cli.publishing import PublishingSource, takes_publishing_source
from fedanon.errors import ConfigError
from fedanon.fields import listed

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.release.release import Release


@takes_publishing_source
def impute(
    source: PublishingSource,
    columns: Annotated[str, typer.Option("--columns", help="Numeric columns a,b,c to redraw.")] = "",
    given: Annotated[
        str, typer.Option("--given", help="Columns that stay and explain them; by default all other numeric columns.")
    ] = "",
    copies: Annotated[int, typer.Option(help="Number of copies.", min=2)] = 5,
    seed: options.Seed = 0,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Draw columns anew several times from a model, such as --columns income,tax --given region,age --copies 5.

    With -o OUT.csv the copies are written as OUT_1.csv, OUT_2.csv, ... with a manifest each. Means and slopes of the
    columns are pooled over the copies and reported beside the original's: whoever analyzes the copies does the same.
    """
    names = listed(columns)
    if not names:
        raise ConfigError("Name the numeric columns to draw anew with --columns.")
    if source.output is not None and source.row_key is not None:
        raise ConfigError("--row-key belongs to one file; copies are several.")
    targets = [None if source.output is None else _numbered(source.output, i) for i in range(1, copies + 1)]
    for target in targets:
        replace(source, output=target).check_outputs()
    with audited(audit, "sdc impute") as entry:
        table, dialect = source.load_with_dialect()
        releases, result = _run(table, names, given, copies, seed)
        entry |= {"columns": names, "given": given, "copies": copies, "seed": seed, "data_sha256": table.sha256}
        for i, (release, target) in enumerate(zip(releases, targets, strict=True)):
            if target is not None:
                _write(replace(source, output=target), release, table, (names, given, copies, i + 1), dialect)
        result["written"] = [str(target) for target in targets if target is not None]
    if as_json:
        print_json(result)
        return
    rows = [
        (name, *(one[part] for part in ("pooled", "deviation", "deviation_rubin", "original")))
        for name, one in result["estimates"].items()
    ]
    headers = ["estimate", "pooled", "standard error (Reiter)", "(Rubin)", "original"]
    print_table(f"{copies} copies of {', '.join(names)}", headers, rows)
    console().print(
        "Reiter's rule is that of synthetic columns; Rubin's, of imputed ones, is more cautious. A chain of methods "
        "promises nothing by itself."
    )
    for path in result["written"]:
        console().print(f"Written: {path} and its manifest.")


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}_{number}{path.suffix}")


def _run(table: Table, names: list[str], given: str, copies: int, seed: int) -> tuple[list[Release], dict[str, Any]]:
    from fedanon.sdc.copies import summarize_copies, synthetic_copies

    releases = synthetic_copies(table, names, given=given, copies=copies, seed=seed)
    estimates = summarize_copies([release.to_frame() for release in releases], names, table.frame)
    return releases, {"n": len(table), "copies": copies, "seed": seed, "estimates": estimates}


def _write(
    source: PublishingSource, release: Release, table: Table, made: tuple[list[str], str, int, int], dialect: Any
) -> None:
    from fedanon.sdc.copies import copy_chain

    source.write(release, copy_chain(*made).masked_table(table), dialect)
