"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from fedanon._version import __version__
from fedanon.cli import (
    anonymize,
    attack,
    audit,
    bound,
    check,
    compare,
    experiment,
    federation,
    keys,
    listing,
    node,
    predict,
    report,
    schema,
    sdc,
    server,
    simulate,
    steward,
    stream,
    tour,
    verify,
)
from fedanon.cli.options import ListingCommand

app = typer.Typer(
    name="fedanon",
    help="Anonymize tabular health data where they are stored, verify the result, and compare methods.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: also list what is installed, for bug reports.")
    ] = False,
) -> None:
    if version:
        from fedanon.cli.about import describe_installation

        typer.echo("\n".join(describe_installation()) if verbose else __version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")


app.command("anonymize")(anonymize.anonymize)
app.command("bound")(bound.bound)
app.command("check")(check.check)
app.command("verify")(verify.verify)
app.command("attack")(attack.attack)
app.command("compare")(compare.compare)
app.command("simulate", cls=ListingCommand)(simulate.simulate)
app.command("predict")(predict.predict)
app.command("export")(predict.export)
app.command("tour")(tour.tour)
app.command("app")(steward.app)
app.command("methods")(listing.methods)
app.add_typer(experiment.app, name="experiment")
app.command("report")(report.report)
app.add_typer(audit.app, name="audit")
app.add_typer(listing.app, name="data")
app.add_typer(schema.app, name="schema")
app.add_typer(sdc.app, name="sdc")
app.add_typer(stream.app, name="stream")
app.add_typer(server.app, name="server")
app.add_typer(node.app, name="node")
app.add_typer(federation.app, name="federation")
app.add_typer(keys.app, name="keys")
