"""`fedanon check`: what a released file holds, judged from the file itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import PrivacyViolationError

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.io.release_file import ReleasedFrame
    from fedanon.privacy.base import PrivacyModel

ORIGINAL_MEASURES = ("ncp", "ncp_published", "truthfulness", "linkage_expected", "linkage_expected_share", "il")


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
    """What was found, and whether promises about people could be judged; raise if anything does not hold."""
    from fedanon.data.schema import Schema
    from fedanon.io.release_file import read_release
    from fedanon.release.released import check_released

    declared = Schema.read(schema)
    manifest = _check_manifest(release)
    # what was claimed of people cannot be judged by rows
    countable = declared.person_id is None or original is not None
    wanted, models = _required(require, manifest if countable else None)
    released = read_release(release, declared, also={getattr(model, "column", "") for model in models})
    table = None
    if original is not None:
        table = options.load_table(
            file=original, dataset=None, schema=schema, missing=missing, encoding=encoding, also=()
        )
    result = _class_measures(released, table)
    if table is not None:
        result |= _against_original(released, table)
    result["manifest"] = manifest
    promised = [least for least in (k, wanted, (manifest or {}).get("k")) if least is not None]
    _enforce(result, max(promised, default=0))
    check_released(released, declared, models, None if table is None else table.persons)
    return result, countable


def _required(require: str | None, manifest: dict[str, Any] | None) -> tuple[int | None, list[PrivacyModel]]:
    """The k of --require, and the models beyond it that the option or the manifest names."""
    from fedanon.privacy.base import PrivacyModel
    from fedanon.privacy.requirements import models_of_claim, parse_requirements, split_k

    asked = parse_requirements(require or "")
    models = [model for model in asked if isinstance(model, PrivacyModel)]
    return split_k(require or "")[0], models + [m for m in models_of_claim(manifest or {}) if m not in models]


def _class_measures(released: ReleasedFrame, table: Table | None) -> dict[str, Any]:
    classes = released.classes
    sizes = classes.sizes
    if table is not None and table.persons is not None and len(table) == len(released):
        sizes = classes.distinct(table.persons)
    kept = int(classes.sizes.sum())
    return {
        "n": len(released),
        "suppressed": int(released.suppressed.sum()),
        "classes": classes.count,
        "k_reached": int(sizes.min()) if classes.count else 0,
        "average_class_size": kept / classes.count if classes.count else float("nan"),
        "prosecutor_risk": 1 / int(sizes.min()) if classes.count else 0.0,
        "marketer_risk": classes.count / kept if kept else 0.0,
    }


def _against_original(released: ReleasedFrame, table: Table) -> dict[str, Any]:
    from fedanon.metrics import evaluate
    from fedanon.release.reconstruction import reconstruct

    return dict(evaluate(table, reconstruct(released, table), ORIGINAL_MEASURES))


def _check_manifest(release: Path) -> dict[str, Any] | None:
    """The claim of the manifest beside the file; None if there is no manifest."""
    from fedanon.io.manifest import Manifest

    manifest = Manifest.beside(release)
    if manifest is None:
        return None
    if not manifest.is_of_file:
        raise PrivacyViolationError(f"The file {release.name} is not the one its manifest describes (SHA-256 differs).")
    return {"verified_hash": True, **manifest.claim}


def _enforce(result: dict[str, Any], k: int) -> None:
    if result["classes"] and result["k_reached"] < k:
        raise PrivacyViolationError(
            f"The release does not reach k={k}: its smallest equivalence class holds {result['k_reached']}."
        )


def _report(release: Path, result: dict[str, Any], *, countable: bool) -> None:
    from fedanon.metrics import METRICS

    rows = [(METRICS[n].title if n in METRICS else n, v) for n, v in result.items() if n != "manifest"]
    print_table(str(release.name), ["measure", "value"], rows)
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
