"""`fedanon sdc apply`: several methods in a row on one table; the last one can be undone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.anonymize import conclude_release, logged
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_conclusion, print_json, print_table
from fedanon.cli.publishing import PublishingSource, takes_publishing_source, written_lines
from fedanon.errors import ConfigError, DataError

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.release.release import Release
    from fedanon.sdc.methods.pipeline import Pipeline, Step

Steps = Annotated[
    list[str] | None,
    typer.Option(
        "--step",
        metavar="METHOD[:COLUMN,...][,NAME=VALUE,...]",
        help="A method with the columns it changes and its parameters; repeat the option for a chain.",
    ),
]
Manifest = Annotated[
    Path | None, typer.Option("--from", metavar="MANIFEST", help="Start from the steps and the seed of this manifest.")
]


@takes_publishing_source
def apply(
    source: PublishingSource,
    steps: Steps = None,
    origin: Manifest = None,
    undo: Annotated[bool, typer.Option("--undo", help="Drop the last step of --from.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness; 0, or that of --from.", min=0)] = None,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Run methods one after the other, such as --step pram:sex,race,keep=0.9 --step egadp:income.

    Any method of `fedanon methods` can be a step. A column that is not a quasi-identifier is masked from the step on
    that names it. With -o the release is written with a manifest of the chain; --from MANIFEST --undo makes the
    release again, on the same data, as it was before the last step.
    """
    from fedanon.io.manifest import file_sha256

    source.check_outputs(origin)
    before = _read_manifest(origin) if origin is not None else None
    pipeline = _pipeline(before, steps or [], undo=undo)
    with audited(audit, "sdc apply") as entry:
        table, dialect = source.load_with_dialect()
        _refuse_other_data(before, table)
        release, result = _run(pipeline, table, _seed(before, seed))
        conclusion = conclude_release(release, table)
        entry |= {"steps": result["steps"], "seed": result["seed"], **logged(release, result)}
        entry["conclusion"] = conclusion.level
        if source.output is not None:
            result |= source.write(release, pipeline.masked_table(table), dialect)
            entry |= {"output": source.output.name, "output_sha256": file_sha256(source.output)}
    if as_json:
        print_json(result | {"conclusion": conclusion.to_dict()})
    else:
        _report(result)
        print_conclusion(conclusion)


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return the provenance in a manifest."""
    try:
        provenance = json.loads(path.read_text(encoding="utf-8"))["provenance"]
        if not isinstance(provenance, dict) or not isinstance(provenance["seed"], int):
            raise TypeError
    except FileNotFoundError:
        raise DataError(f"The manifest {path} does not exist.") from None
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(f"The manifest {path.name} cannot be read.") from None
    return provenance


def _pipeline(before: dict[str, Any] | None, steps: list[str], *, undo: bool) -> Pipeline:
    from fedanon.sdc.methods.pipeline import Pipeline

    added = tuple(parse_step(text) for text in steps)
    if before is None:
        if undo:
            raise ConfigError("--undo needs --from MANIFEST.")
        if not added:
            raise ConfigError("Give at least one --step, or --from MANIFEST.")
        return Pipeline(added)
    earlier = Pipeline.from_provenance(before)
    if not undo:
        return Pipeline((*earlier.steps, *added))
    # the only step may be replaced by another, but not by nothing
    return Pipeline((*earlier.steps[:-1], *added)) if added else earlier.without_last()


def _refuse_other_data(before: dict[str, Any] | None, table: Table) -> None:
    """Reject a table other than the one the chain was made from."""
    if before is not None and before.get("data_sha256") != table.sha256:
        raise DataError("The table is not the one the manifest describes (its data or schema differ).")


def _seed(before: dict[str, Any] | None, given: int | None) -> int:
    if before is None:
        return given or 0
    if given is not None:
        raise ConfigError("--seed cannot be changed with --from: the earlier steps would come out differently.")
    return int(before["seed"])


def _run(pipeline: Pipeline, table: Table, seed: int) -> tuple[Release, dict[str, Any]]:
    """Run the steps and measure the release; ``seconds`` is the time of the steps alone."""
    from fedanon.cli.runs import measure

    start = time.perf_counter()
    release = pipeline.anonymize(table, rng=seed)
    seconds = time.perf_counter() - start
    provenance = release.provenance
    return release, {
        "method": provenance.method,
        "steps": provenance.parameters["steps"],
        "masked": provenance.parameters["masked"],
        **measure(pipeline.masked_table(table), release),
        "notes": list(provenance.notes),
        "seed": seed,
        "version": provenance.version,
        "seconds": round(seconds, 4),
    }


def _report(result: dict[str, Any]) -> None:
    from fedanon.metrics import METRICS

    rows = [
        (i + 1, step["method"], ", ".join(step["columns"]) or "all that fit", _changed(step))
        for i, step in enumerate(result["steps"])
    ]
    print_table(f"Steps on {result['n']:,} rows", ["step", "method", "columns", "cells changed"], rows)
    metrics = [(METRICS[name].title, value) for name, value in result.items() if name in METRICS]
    print_table("The release", ["metric", "value"], metrics)
    out = console()
    for note in result["notes"]:
        out.print(f"Note: {note}")
    for line in written_lines(result):
        out.print(line)


def _changed(step: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in step["changed"].items()) or "none"


# ---- the grammar of a step -----------------------------------------------------------------------
#
# Columns come first. A parameter's value runs to the next NAME=, so it may hold commas; nothing needs quotes::
#     pram:sex,race,keep=0.9
#     local_suppression:sex,race,education,k=3,importance=sex,race
#     mondrian:k=5


def parse_step(text: str) -> Step:
    """Parse a step."""
    from fedanon.sdc.methods.pipeline import Step

    method, _, rest = text.partition(":")
    columns: list[str] = []
    settings: dict[str, str] = {}
    name = None
    for item in rest.split(",") if rest.strip() else []:
        head, equals, value = item.partition("=")
        if equals:
            name = _new_name(head.strip(), settings, method)
            settings[name] = value.strip()
        elif name is None:
            columns.append(item.strip())
        else:
            settings[name] += f",{item.strip()}"
    if not method.strip() or not all(columns):
        raise ConfigError("A step is METHOD[:COLUMN,...][,NAME=VALUE,...], such as pram:sex,race,keep=0.9.")
    return Step(method.strip(), tuple(columns), settings)


def _new_name(name: str, settings: dict[str, str], method: str) -> str:
    if name in settings:
        raise ConfigError(f"The step {method!r} gives the parameter {name!r} twice.")
    return name
