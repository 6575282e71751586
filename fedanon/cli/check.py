"""`fedanon check`: what a released file holds, computed from the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table


def check(
    release: Annotated[Path, typer.Argument(help="The released file: CSV, or .parquet.")],
    schema: Annotated[Path, typer.Option(help="Schema of the original table (TOML).")],
    original: Annotated[Path | None, typer.Option(help="The original file, to measure loss and truth.")] = None,
    k: Annotated[int | None, typer.Option(help="Fail unless every class holds at least this many.", min=1)] = None,
    require: Annotated[
        str | None, typer.Option(help="Fail unless every class keeps this: k=10,l=2:COLUMN,t=0.3:COLUMN.")
    ] = None,
    missing: options.Missing = None,
    encoding: options.Encoding = "utf-8",
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Check a release: class sizes and risks from the file alone; with --original also loss, truth and linkage.

    A manifest beside the file is compared with it. Exit code 2 if the manifest's claim, its hash, --k or --require does
    not hold.
    Rows are counted; people are counted only with --original and a schema that names a person_id column.
    """
    with audited(audit, "check") as entry:
        entry |= {"release": release.name, "k": k, "require": require}
        result, countable = _checked(release, schema, original, k, require, missing, encoding)
        entry |= {"classes": result["classes"], "k_reached": result["k_reached"], "manifest": result["manifest"]}
    if as_json:
        print_json({"release": str(release), **result})
    else:
        _report(release, result, countable=countable)


def _checked(
    release: Path,
    schema: Path,
    original: Path | None,
    k: int | None,
    require: str | None,
    missing: str | None,
    encoding: str,
) -> tuple[dict[str, Any], bool]:
    """What was found, and whether promises about people could be evaluated; raise if anything does not hold."""
    from fedanon.data.schema import Schema
    from fedanon.privacy.models.k_anonymity import KAnonymity
    from fedanon.privacy.requirements import parse_requirements
    from fedanon.verification import can_count_people, check_release

    declared = Schema.read(schema)
    table = None
    if original is not None:
        source = options.TableSource(file=original, schema=schema, missing=missing, encoding=encoding)
        table = source.load(also=())
    required = [*([] if k is None else [KAnonymity(k=k)]), *parse_requirements(require or "")]
    return check_release(release, declared, required=required, table=table), can_count_people(declared, table)


def _report(release: Path, result: dict[str, Any], *, countable: bool) -> None:
    from fedanon.metrics import METRICS

    rows = [(METRICS[n].title if n in METRICS else n, v) for n, v in result.items() if n != "manifest"]
    print_table(str(release.name), ["metric", "value"], rows)
    claim = result["manifest"]
    out = console()
    if claim is None:
        out.print("No manifest beside the file: nothing was promised, so nothing could be compared.")
    elif "k" in claim:
        more = [entry["model"] for entry in claim.get("all_of", [])[1:]]
        named = ", ".join([f"k-anonymity with k={claim['k']}", *(more if countable else [])])
        out.print(f"The manifest's claim holds on the file: {named}.")
        if more and not countable:
            out.print(f"Not checked, since people can be counted only with --original: {', '.join(more)}.")
    elif "epsilon" in claim:
        out.print(
            f"The manifest belongs to the file and promises differential privacy, epsilon {claim['epsilon']:g}, delta "
            f"{claim['delta']:g}: a property of how it was made, which no file can show."
        )
    else:
        out.print("The manifest belongs to the file and promises nothing.")
