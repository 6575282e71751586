"""`fedanon sdc`: statistical disclosure control. Every command lives in a file of its own, `sdc_*.py`."""

from __future__ import annotations

import typer

from fedanon.cli import sdc_apply, sdc_compare, sdc_risk

app = typer.Typer(
    help="Statistical disclosure control: weigh the risk, compare methods, change values step by step.",
    no_args_is_help=True,
)


app.command("apply")(sdc_apply.apply)
app.command("risk")(sdc_risk.risk)
app.command("compare")(sdc_compare.compare)
app.command("recommend")(sdc_compare.recommend)
