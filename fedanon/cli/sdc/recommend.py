"""`fedanon sdc recommend`: a method for each of three goals, by comparing risk and loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.cli.sdc.compare import (
    Columns,
    Complete,
    LossMetric,
    Methods,
    Plot,
    Restricted,
    ReverseMap,
    RiskMetric,
    Sample,
    Sweeps,
    chosen_table,
    draw_comparison,
    plan,
    print_failures,
    refuse_unknown,
    run,
)
from fedanon.errors import ConfigError, InfeasibleError

if TYPE_CHECKING:
    import pandas as pd


From = Annotated[
    Path | None, typer.Option("--from", metavar="FILE", help="A comparison of `sdc compare -o`, CSV or JSON.")
]
Limit = Annotated[float, typer.Option(help="Highest acceptable risk for least loss and best compromise.", min=0)]


@options.takes_table_source
def recommend(
    source: options.TableSource,
    columns: Columns = None,
    origin: From = None,
    methods: Methods = None,
    sweeps: Sweeps = None,
    reverse_map: ReverseMap = False,
    restricted: Restricted = False,
    complete: Complete = False,
    sample: Sample = 0,
    risk: RiskMetric = "dld",
    loss: LossMetric = "il2",
    limit: Limit = 0.5,
    seed: options.Seed = 0,
    plot: Plot = None,
    as_json: options.Json = False,
) -> None:
    """Run a comparison, or read one with --from, and name a method for each of three goals.

    Only methods that no other beats in both risk and loss are named (the Pareto front). The best compromise comes
    closest to the least risk and the least loss at once, with both axes scaled to the span of the front.
    """
    refuse_unknown(risk, loss)
    failures: dict[str, str] = {}
    if origin is not None:
        if source.file is not None or source.dataset is not None:
            raise ConfigError("Give either --from FILE or a table, not both.")
        rows = _read(origin, risk, loss)
    else:
        table = source.load()
        table = chosen_table(table, columns, complete=complete, sample=sample)
        maskings = plan(table, methods, sweeps, reverse_map=reverse_map, restricted=restricted)
        rows, failures = run(table, maskings, list(dict.fromkeys([risk, loss])), seed)
    result = {"risk": risk, "loss": loss, "limit": limit, **_chosen(rows, risk, loss, limit), "failures": failures}
    if plot is not None:
        draw_comparison(rows, risk, loss, plot, limit=limit)
    if as_json:
        print_json(result)
    else:
        _report_choice(result, plot)


def _read(path: Path, risk: str, loss: str) -> pd.DataFrame:
    from fedanon.sdc.masking import PLACE, read_comparison

    rows = read_comparison(path)
    absent = [name for name in (risk, loss) if name not in rows]
    if absent:
        known = ", ".join(name for name in rows.columns if name not in (*PLACE, "seconds"))
        raise ConfigError(f"The comparison has no {', '.join(absent)}. It has: {known}.")
    return rows


def _chosen(rows: pd.DataFrame, risk: str, loss: str, limit: float) -> dict[str, Any]:
    from fedanon.sdc.masking import PLACE
    from fedanon.sdc.pareto import choose, pareto_front

    on_front = rows[pareto_front(rows[risk], rows[loss])].sort_values([risk, loss])
    choices = choose(rows[risk], rows[loss], limit=limit)
    if not choices:
        raise InfeasibleError(f"None of {len(rows)} maskings has both {risk} and {loss}, so none can be recommended.")
    place = list(PLACE)
    return {
        "compared": len(rows),
        "front": on_front[[*place, risk, loss]].to_dict("records"),
        "recommended": [
            {"goal": c.goal, **rows.iloc[c.index][place].to_dict(), risk: c.risk, loss: c.loss, "why": c.why}
            for c in choices
        ],
    }


def _report_choice(result: dict[str, Any], plot: Path | None) -> None:
    from fedanon.metrics import METRICS
    from fedanon.sdc.masking import PLACE, described

    axes = [result["risk"], result["loss"]]
    titles = [METRICS[name].title for name in axes]
    rows = [[entry[name] for name in ("goal", *PLACE, *axes)] for entry in result["recommended"]]
    print_table(f"Recommended, of {result['compared']} maskings", ["goal", *PLACE, *titles], rows)
    out = console()
    for entry in result["recommended"]:
        out.print(f"{entry['goal']}: {described(entry)}. {entry['why']}")
    front = [[entry[name] for name in (*PLACE, *axes)] for entry in result["front"]]
    print_table("Beaten by no other in both risk and loss", [*PLACE, *titles], front)
    if len(result["recommended"]) == 1:
        out.print(f"No masking has a risk of at most {result['limit']:g}; --limit sets another.")
    print_failures(result["failures"])
    if plot is not None:
        out.print(f"Written: {plot}")
