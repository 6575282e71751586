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
    Given,
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
    usual_metrics,
)
from fedanon.errors import ConfigError, InfeasibleError

if TYPE_CHECKING:
    import pandas as pd


From = Annotated[
    Path | None, typer.Option("--from", metavar="FILE", help="A comparison of `sdc compare -o`, CSV or JSON.")
]
Limit = Annotated[
    float,
    typer.Option(help="Highest acceptable risk for least loss and best compromise; the literature uses 0.5.", min=0),
]
#: one record in ten; Morais 2022 accepts 0.5, at which every other record may be found
DEFAULT_LIMIT = 0.1
NOT_PROMISED = (
    "A measured risk is no promise: it holds for this table, this draw and an attacker who compares these numbers. "
    "Only where a promise is named does a method guarantee anything."
)


@options.takes_table_source
def recommend(
    source: options.TableSource,
    columns: Columns = None,
    origin: From = None,
    methods: Methods = None,
    sweeps: Sweeps = None,
    given: Given = None,
    reverse_map: ReverseMap = False,
    restricted: Restricted = False,
    complete: Complete = False,
    sample: Sample = 0,
    risk: RiskMetric = None,
    loss: LossMetric = None,
    limit: Limit = DEFAULT_LIMIT,
    seed: options.Seed = 0,
    plot: Plot = None,
    as_json: options.Json = False,
) -> None:
    """Run a comparison, or read one with --from, and name a method for each of three goals.

    Only methods that no other beats in both risk and loss are named (the Pareto front). The best compromise comes
    closest to the least risk and the least loss at once, with both axes scaled to the span of the front.
    """
    refuse_unknown(*(name for name in (risk, loss) if name is not None))
    failures: dict[str, str] = {}
    if origin is not None:
        if source.is_given:
            raise ConfigError("Give either --from FILE or a table, not both.")
        risk, loss, rows = _read(origin, risk, loss)
    else:
        table = source.load()
        table = chosen_table(table, columns, complete=complete, sample=sample)
        usual = usual_metrics(table)
        risk, loss = risk or usual[0], loss or usual[1]
        maskings = plan(table, methods, sweeps, given, reverse_map=reverse_map, restricted=restricted)
        rows, failures = run(table, maskings, list(dict.fromkeys([risk, loss])), seed)
    result = {"risk": risk, "loss": loss, "limit": limit, **_chosen(rows, risk, loss, limit), "failures": failures}
    if plot is not None:
        draw_comparison(rows, risk, loss, plot, limit=limit)
    if as_json:
        print_json(result)
    else:
        _report_choice(result, plot)


def _read(path: Path, risk: str | None, loss: str | None) -> tuple[str, str, pd.DataFrame]:
    from fedanon.sdc.masking import CATEGORY_METRICS, DEFAULT_METRICS, PLACE, read_comparison

    rows = read_comparison(path)
    usual = CATEGORY_METRICS if CATEGORY_METRICS[0] in rows and "dld" not in rows else DEFAULT_METRICS
    risk, loss = risk or usual[0], loss or usual[1]
    absent = [name for name in (risk, loss) if name not in rows]
    if absent:
        known = ", ".join(name for name in rows.columns if name not in (*PLACE, "seconds"))
        raise ConfigError(f"The comparison has no {', '.join(absent)}. It has: {known}.")
    return risk, loss, rows


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
            {
                "goal": c.goal,
                **rows.iloc[c.index][place].to_dict(),
                risk: c.risk,
                loss: c.loss,
                "promise": _promise(rows.iloc[c.index]),
                "why": c.why,
            }
            for c in choices
        ],
    }


def _promise(row: pd.Series[Any]) -> str | None:
    """Return what the method of a row claims of its release by itself; None if nothing."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.errors import FedanonError
    from fedanon.fields import build

    pairs = [part.partition("=") for part in str(row["parameters"]).split(", ") if part]
    try:
        claim = build(ANONYMIZERS[str(row["method"])], {name: value for name, _, value in pairs}).claim()
    except FedanonError:
        return None
    # mapped back to original values, a release keeps no promise of its method
    return None if claim is None or "reverse" in str(row["variant"]) else claim.describe("records")


def _report_choice(result: dict[str, Any], plot: Path | None) -> None:
    from fedanon.metrics import METRICS
    from fedanon.sdc.masking import PLACE, described

    axes = [result["risk"], result["loss"]]
    titles = [METRICS[name].title for name in axes]
    rows = [
        [*(entry[name] for name in ("goal", *PLACE, *axes)), entry["promise"] or "nothing"]
        for entry in result["recommended"]
    ]
    print_table(f"Recommended, of {result['compared']} maskings", ["goal", *PLACE, *titles, "promises"], rows)
    out = console()
    for entry in result["recommended"]:
        out.print(f"{entry['goal']}: {described(entry)}. {entry['why']}")
    front = [[entry[name] for name in (*PLACE, *axes)] for entry in result["front"]]
    print_table("Beaten by no other in both risk and loss", [*PLACE, *titles], front)
    if len(result["recommended"]) == 1:
        out.print(f"No masking has a risk of at most {result['limit']:g}; --limit sets another.")
    out.print(NOT_PROMISED)
    print_failures(result["failures"])
    if plot is not None:
        out.print(f"Written: {plot}")
