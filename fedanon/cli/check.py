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
    from fedanon.verification import CheckedRelease


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

    A manifest beside the file is compared with it. Exit code 4 if the manifest's claim, its hash, --k or --require does
    not hold. A claim that cannot be told from the file (people without --original, k over a federation) is left open.
    --k and --require count rows; people whom a person_id column tells apart are counted only with --original.
    """
    with audited(audit, "check") as entry:
        entry |= {"release": release.name, "k": k, "require": require}
        checked = _checked(release, schema, original, k, require, missing, encoding)
        entry |= {name: checked.metrics.get(name) for name in ("classes", "k_reached")}
        entry |= {"manifest": checked.claim, "conclusion": checked.conclusion.level}
        if as_json:
            print_json({"release": str(release), **checked.to_dict()})
        else:
            _report(release, checked)
        if checked.violation:
            raise PrivacyViolationError(checked.violation)


def _checked(
    release: Path,
    schema: Path,
    original: Path | None,
    k: int | None,
    require: str | None,
    missing: str | None,
    encoding: str,
) -> CheckedRelease:
    """What was found."""
    from fedanon.data.schema import Schema
    from fedanon.privacy.models.k_anonymity import KAnonymity
    from fedanon.privacy.requirements import parse_requirements
    from fedanon.verification import inspect_release

    table = None
    if original is not None:
        source = options.TableSource(file=original, schema=schema, missing=missing, encoding=encoding)
        table = source.load(also=())
    required = [*([] if k is None else [KAnonymity(k=k)]), *parse_requirements(require or "")]
    return inspect_release(release, Schema.read(schema), required=required, table=table)


def _report(release: Path, checked: CheckedRelease) -> None:
    from fedanon.metrics import METRICS

    rows = [(METRICS[n].title if n in METRICS else n, v) for n, v in checked.metrics.items()]
    if rows:
        print_table(str(release.name), ["metric", "value"], rows)
    print_checks(checked.checks)
    print_conclusion(checked.conclusion)
    if checked.violation:
        return
    out = console()
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
