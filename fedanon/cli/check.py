"""`fedanon check`: what a released file holds, computed from the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_checks, print_conclusion, print_json, print_table
from fedanon.cli.series import Previous, known_series
from fedanon.errors import PrivacyViolationError
from fedanon.fields import listed

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.verification import CheckedRelease, KnownSeries


@options.takes_reading
def check(
    reading: options.ReadOptions,
    release: Annotated[Path, typer.Argument(help="The released file: CSV, .xlsx, .parquet or .ndjson.")],
    schema: Annotated[Path, typer.Option(help="Schema of the original table (TOML).")],
    original: Annotated[
        str | None, typer.Option(help="The original, a file or a database, to measure loss and truthfulness.")
    ] = None,
    k: Annotated[int | None, typer.Option(help="Fail unless every class has at least this many.", min=1)] = None,
    require: Annotated[
        str | None, typer.Option(help="Fail unless every class satisfies this: k=10,l=2:COLUMN,t=0.3:COLUMN.")
    ] = None,
    row_key: options.RowKey = None,
    key: options.PersonKeyFile = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Also compute metrics a,b,c, before and after; needs --original (see sdc_metrics in the docs)."
        ),
    ] = None,
    previous: Previous = None,
    missing: options.Missing = None,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Check a release: class sizes and risks from the file alone; with --original also loss, truth and linkage.

    A manifest beside the file is compared with it. Exit code 4 if the manifest's claim, its hash, --k or --require does
    not hold. A claim that cannot be told from the file (people without --original, k over a federation) is left open.
    --k and --require count rows; people whom a person_id column tells apart are counted by their pseudonyms if the file
    has any, else only with --original. Rows in
    random order are matched with the original by --row-key, else by what they say, as far as that is certain.
    """
    with audited(audit, "check") as entry:
        entry |= {"release": release.name, "k": k, "require": require}
        source = reading.at(original, schema=schema, missing=missing, key=key)
        table = _original(release, source)
        series = known_series(release, schema, previous)
        if series is not None and table is not None:
            table = series.with_counterfeits(table, source.source)
        checked = _checked(release, schema, table, k, require, row_key, listed(metrics or ""), series)
        entry |= {name: checked.metrics.get(name) for name in ("classes", "k_reached")}
        entry |= {"manifest": checked.claim, "conclusion": checked.conclusion.level}
        if as_json:
            print_json({"release": str(release), **checked.to_dict()})
        else:
            _report(release, checked)
        if checked.violation:
            raise PrivacyViolationError(checked.violation)


def _original(release: Path, source: options.TableSource) -> Table | None:
    from fedanon.io.manifest import Manifest
    from fedanon.io.parquet import is_parquet, plain_columns

    if source.file is None:
        return None
    manifest = Manifest.beside(release)
    kept = manifest is None or manifest.keeps_order
    # to match rows by what they say, all columns are needed
    return source.load(also=plain_columns(Path(source.file)) if is_parquet(source.file) and not kept else ())


def _checked(
    release: Path,
    schema: Path,
    table: Table | None,
    k: int | None,
    require: str | None,
    row_key: Path | None,
    metrics: list[str],
    series: KnownSeries | None,
) -> CheckedRelease:
    """What was found."""
    from fedanon.data.schema import Schema
    from fedanon.privacy.models.k_anonymity import KAnonymity
    from fedanon.privacy.requirements import parse_requirements
    from fedanon.verification import inspect_release

    required = [*([] if k is None else [KAnonymity(k=k)]), *parse_requirements(require or "")]
    return inspect_release(
        release,
        Schema.read(schema),
        required=required,
        table=table,
        row_key=row_key,
        metrics=metrics,
        series=series,
    )


def _report(release: Path, checked: CheckedRelease) -> None:
    from fedanon.verification import UNMATCHED

    rows = [(_title(name), value) for name, value in checked.metrics.items()]
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


def _title(name: str) -> str:
    from fedanon.metrics import METRICS

    plain = name.removesuffix("_original")
    if plain not in METRICS:
        return name
    return METRICS[plain].title if plain == name else f"{METRICS[plain].title}, of the original"
