"""`fedanon sdc`: statistical disclosure control."""

from __future__ import annotations

import typer

from fedanon.cli.sdc.apply import apply
from fedanon.cli.sdc.compare import compare
from fedanon.cli.sdc.impute import impute
from fedanon.cli.sdc.recommend import recommend
from fedanon.cli.sdc.risk import risk

app = typer.Typer(
    help="Statistical disclosure control: assess the risk, compare methods, change values step by step.",
    no_args_is_help=True,
)

app.command("apply")(apply)
app.command("risk")(risk)
app.command("compare")(compare)
app.command("recommend")(recommend)
app.command("impute")(impute)
