"""`fedanon sdc compare`: risk against loss of methods for numbers, each at several values of its parameter."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options, sdc_sweep
from fedanon.cli.output import console, print_json, print_table


def compare(
    file: options.InputFile = None,
    dataset: options.Dataset = None,
    client: options.Client = None,
    schema: options.SchemaFile = None,
    quasi: options.Quasi = None,
    columns: sdc_sweep.Columns = None,
    methods: sdc_sweep.Methods = None,
    sweeps: sdc_sweep.Sweeps = None,
    reverse_map: sdc_sweep.ReverseMap = False,
    restricted: sdc_sweep.Restricted = False,
    complete: sdc_sweep.Complete = False,
    sample: sdc_sweep.Sample = 0,
    measures: Annotated[str | None, typer.Option(help="Metrics a,b,c instead of the usual ones.")] = None,
    risk: sdc_sweep.RiskMetric = "dld",
    loss: sdc_sweep.LossMetric = "il2",
    seed: options.Seed = 0,
    missing: options.Missing = None,
    encoding: options.Encoding = "utf-8",
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the rows (CSV or JSON).")] = None,
    plot: sdc_sweep.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Sweep the parameters of methods for numbers, such as --method additive_noise --sweep c=0.01,0.05,0.1,0.5.

    Without --method every perturbative method for numbers and microaggregation run at their usual values.
    --risk and --loss are the axes of the plot; `fedanon sdc recommend --from FILE` reads what -o wrote.
    """
    from fedanon.harness.masking_comparison import MEASURES, refuse_other_endings, write_comparison

    wanted = list(dict.fromkeys([risk, loss, *(measures.split(",") if measures else MEASURES)]))
    sdc_sweep.refuse_unknown(risk, loss)
    if output is not None:
        refuse_other_endings(output)
    table = options.load_table(
        file=file, dataset=dataset, client=client, schema=schema, quasi=quasi, missing=missing, encoding=encoding
    )
    table = sdc_sweep.chosen_table(table, columns, complete=complete, sample=sample)
    maskings = sdc_sweep.plan(table, methods, sweeps, reverse_map=reverse_map, restricted=restricted)
    rows, failures = sdc_sweep.run(table, maskings, wanted, seed)
    facts = {"n": len(table), "columns": [c.name for c in table.columns], "seed": seed, "failures": failures}
    if output is not None:
        write_comparison(output, rows, facts)
    if plot is not None:
        from fedanon.cli.sdc_plot import draw_comparison

        draw_comparison(rows, risk, loss, plot)
    if as_json:
        print_json({**facts, "rows": rows.to_dict("records")})
    else:
        _report(rows, facts, [path for path in (output, plot) if path is not None])


def _report(rows: Any, facts: dict[str, Any], written: list[Path]) -> None:
    from fedanon.metrics import METRICS

    titles = [METRICS[name].title if name in METRICS else name for name in rows.columns]
    title = f"{facts['n']:,} rows, {len(facts['columns'])} columns: {', '.join(facts['columns'])}"
    print_table(title, titles, rows.itertuples(index=False))
    sdc_sweep.tell_failures(facts["failures"])
    for path in written:
        console().print(f"Written: {path}")
