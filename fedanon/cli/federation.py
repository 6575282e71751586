"""`fedanon federation`: what a real federation is doing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedanon.cli import options
from fedanon.cli.output import print_json, print_table
from fedanon.cli.server import Insecure

app = typer.Typer(help="A federation of real machines.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def status(
    folder: Annotated[Path, typer.Argument(help="The server's folder.")],
    insecure: Insecure = False,
    as_json: options.Json = False,
) -> None:
    """Show the nodes, the run, and the last round that was kept."""
    from fedanon.federated.deployment.status import status as look

    found = look(folder, insecure=insecure)
    if as_json:
        print_json(found)
        return
    shown = {
        "server": found["server"],
        "registered nodes": ", ".join(found["registered"]),
        "nodes online": sum(node.get("status") == "online" for node in found["nodes"]),
        "last run": found["runs"][0].get("status") if found["runs"] else None,
        "last checkpoint": f"round {found['checkpoint_round']} of {found['rounds']}",
        "finished": "yes" if found["finished"] else "no",
    }
    print_table("Federation", ["what", "now"], list(shown.items()))
