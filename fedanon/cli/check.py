"""`fedanon check`: what a released file holds, computed from the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_checks, print_conclusion, print_json, print_table
from fedanon.errors import PrivacyViolationError

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.verification import CheckedRelease


def check(
    release: Annotated[Path, typer.Argument(help="The released file: CSV, or .parquet.")],
    schema: Annotated[Path, typer.Option(help="Schema of the original table (TOML).")],
    original: Annotated[Path | None, typer.Option(help="The original file, to measure loss and truth.")] = None,
    k: Annotated[int | None, typer.Option(help="Fail unless every class holds at least this many.", min=1)] = None,
    require: Annotated[
        str | None, typer.Option(help="Fail unless every class keeps this: k=10,l=2:COLUMN,t=0.3:COLUMN.")
    ] = None,
    row_key: options.RowKey = None,
    missing: options.Missing = None,
    encoding: options.Encoding = "auto",
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Check a release: class sizes and risks from the file alone; with --original also loss, truth and linkage.

    A manifest beside the file is compared with it. Exit code 4 if the manifest's claim, its hash, --k or --require does
    not hold. A claim that cannot be told from the file (people without --original, k over a federation) is left open.
    --k and --require count rows; people whom a person_id column tells apart are counted only with --original. Rows in
    random order are matched with the original by --row-key, else by what they say, as far as that is certain.
    """
    with audited(audit, "check") as entry:
        entry |= {"release": release.name, "k": k, "require": require}
        table = _original(release, schema, original, missing, encoding)
        checked = _checked(release, schema, table, k, require, row_key)
        entry |= {name: checked.metrics.get(name) for name in ("classes", "k_reached")}
        entry |= {"manifest": checked.claim, "conclusion": checked.conclusion.level}
        if as_json:
            print_json({"release": str(release), **checked.to_dict()})
        else:
            _report(release, checked)
        if checked.violation:
            raise PrivacyViolationError(checked.violation)


def _original(release: Path, schema: Path, original: Path | None, missing: str | None, encoding: str) -> Table | None:
    from fedanon.io.manifest import Manifest
    from fedanon.io.parquet import is_parquet, plain_columns

    if original is None:
        return None
    manifest = Manifest.beside(release)
    kept = manifest is None or manifest.keeps_order
    source = options.TableSource(file=original, schema=schema, missing=missing, encoding=encoding)
    # to match rows by what they say, all columns are needed
    return source.load(also=plain_columns(original) if is_parquet(original) and not kept else ())


def _checked(
    release: Path, schema: Path, table: Table | None, k: int | None, require: str | None, row_key: Path | None
) -> CheckedRelease:
    """What was found."""
    from fedanon.data.schema import Schema
    from fedanon.privacy.models.k_anonymity import KAnonymity
    from fedanon.privacy.requirements import parse_requirements
    from fedanon.verification import inspect_release

    required = [*([] if k is None else [KAnonymity(k=k)]), *parse_requirements(require or "")]
    return inspect_release(release, Schema.read(schema), required=required, table=table, row_key=row_key)


def _report(release: Path, checked: CheckedRelease) -> None:
    from fedanon.metrics import METRICS
    from fedanon.verification import UNMATCHED

    rows = [(METRICS[n].title if n in METRICS else n, v) for n, v in checked.metrics.items()]
    if rows:
        print_table(str(release.name), ["metric", "value"], rows)
    print_checks(checked.checks)
    print_conclusion(checked.conclusion)
    if checked.violation:
        return
    out = console()
    if checked.matching in UNMATCHED:
        out.print(f"Not all could be measured: {UNMATCHED[checked.matching]}.")
    left = sum(check.outcome == "open" for check in checked.checks)
    if checked.claim is None:
        out.print("No manifest beside the file: nothing was promised, so nothing could be compared.")
    elif len(checked.claim) == 1:
        out.print("The manifest belongs to the file and promises nothing.")
    elif "epsilon" in checked.claim:
        epsilon, delta = checked.claim["epsilon"], checked.claim["delta"]
        out.print(f"The manifest belongs to the file and promises epsilon {epsilon:g}, delta {delta:g}.")
    else:
        more = f", {left} left open" if left else ""
        out.print(f"The manifest belongs to the file: no promise is broken{more}.")
