"""`fedanon bound`: the least loss that any partition into classes of k records can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table, search_progress
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer
    from fedanon.anonymizers.bounds.bound import Bound
    from fedanon.data.table import Table
    from fedanon.release.release import Release

Wanted = Annotated[str, typer.Option(help="auto (sse if all columns are numbers), sse (means) or ncp (cells).")]
Loss = Annotated[float | None, typer.Option(help="An achieved loss to compare with: IL in percent, or NCP.", min=0)]
Seconds = Annotated[float, typer.Option(help="Wall time; the bound is valid whenever the command stops.", min=0)]


@options.takes_table_source
def bound(
    source: options.TableSource,
    k: Annotated[int | None, typer.Option(help="Minimum number of records in a class.", min=1)] = None,
    objective: Wanted = "auto",
    loss: Loss = None,
    seconds: Seconds = 60.0,
    as_json: options.Json = False,
) -> None:
    """Prove how little any partition of a table into classes of k records can lose.

    The bound is proved at any moment: Ctrl-C or --seconds end it with what has been proved. It holds for partitions
    that publish every record; a release that suppresses records, or is no partition, may lose less.
    """
    from fedanon.anonymizers.bounds.bound import lower_bound

    if objective not in ("auto", "ncp", "sse"):
        raise ConfigError(f"--objective is auto, ncp or sse. Got {objective!r} instead.")
    if k is None:
        raise ConfigError("Give --k, the minimum number of records in a class.")
    table = source.load()
    with search_progress("proving", "bound"):
        proved = lower_bound(
            table,
            k,
            objective=None if objective == "auto" else objective,  # type: ignore[arg-type]
            seconds=seconds,
        )
    gap = None if loss is None else proved.gap(loss)
    if as_json:
        print_json(proved.to_dict() | ({} if loss is None else {"loss": loss, "gap": gap}))
        return
    rows: list[tuple[str, Any]] = [("lower bound", show_loss(proved, proved.bound)), ("seconds", proved.seconds)]
    if gap is not None and loss is not None:
        rows += [("loss given", show_loss(proved, loss)), ("gap", f"{gap:.2%}")]
    print_table(f"{proved.n:,} records, k = {k}", ["", "value"], rows)
    for line in bound_lines(proved, loss):
        console().print(line)


def show_loss(proved: Bound, loss: float) -> str:
    """A loss with its name and enough digits."""
    return f"IL {loss:.5g} %" if proved.objective == "sse" else f"NCP {loss:.5g}"


def bound_lines(proved: Bound, loss: float | None) -> list[str]:
    """What a bound says, in sentences."""
    what = "means" if proved.objective == "sse" else "cells"
    lines = [
        f"Proved: no partition of the records into classes of at least {proved.k} that publishes {what} of every record"
        f" loses less than {show_loss(proved, proved.bound)}."
    ]
    if loss is not None:
        reached = show_loss(proved, loss)
        if proved.gap(loss) < -1e-9:
            lines.append(f"A loss of {reached} lies below that: it is not the loss of such a partition.")
        elif proved.bound > 0:
            lines.append(f"Of a loss of {reached} at most {max(0.0, 1 - proved.bound / loss):.2%} could be saved.")
    if not proved.ended:
        lines.append("More time may raise the bound.")
    return lines


def with_bound(
    release: Release, table: Table, anonymizer: Anonymizer, result: dict[str, Any], seconds: float
) -> tuple[Release, dict[str, Any]]:
    """A release that notes how far its loss is from what was proved to be the least, and what is reported of it."""
    from dataclasses import replace

    from fedanon.anonymizers.anneal.problem import choose_objective
    from fedanon.anonymizers.bounds.bound import lower_bound
    from fedanon.release.gate import verify

    k = getattr(anonymizer, "k", None)
    if release.claim is None or k is None:
        raise ConfigError(f"--bound is about classes of k records; {anonymizer.name} promises none.")
    means = not anonymizer.for_table(table).truthful and choose_objective(table) == "sse"
    with search_progress("proving", "bound"):
        proved = lower_bound(table, k, objective="sse" if means else "ncp", seconds=seconds)
    loss = float(result["il" if means else "ncp"])
    lines = bound_lines(proved, None if result["suppressed"] else loss)
    provenance = release.provenance
    noted = replace(release, provenance=replace(provenance, notes=(*provenance.notes, " ".join(lines))))
    facts: dict[str, Any] = {"bound": proved.bound, "notes": list(noted.provenance.notes)}
    if not result["suppressed"]:
        facts["gap"] = proved.gap(loss)
    return verify(noted, table), facts
