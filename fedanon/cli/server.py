"""`fedanon server`: the server of a real federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedanon.cli.output import console

app = typer.Typer(help="The server of a federation of real machines.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The server's folder.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="No TLS and no keys, for trials on one machine; the result says so.")
]


@app.command()
def init(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Name or address by which nodes find the server.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port.", min=1, max=65535)] = 9443,
    nodes: Annotated[int, typer.Option(help="Nodes to wait for before the first round.", min=1)] = 2,
    days: Annotated[int, typer.Option(help="Days the certificates are in force.", min=1)] = 365,
) -> None:
    """Make a server's folder: an authority, a certificate, and a server.toml to edit."""
    from fedanon.federated.deployment.server import Server

    Server.init(folder, host=host, port=port, nodes=nodes, days=days)
    out = console()
    out.print(f"Made {folder}: edit server.toml, and give ca.crt to every node.")
    out.print(f"Next, at every node: fedanon node init NODE --server {host}:{port} --ca ca.crt --data D --schema S")


@app.command()
def register(
    folder: Folder,
    key: Annotated[Path, typer.Argument(help="The node's public key (node.pub).")],
    name: Annotated[str, typer.Option(help="A name for the node.")],
) -> None:
    """Allow a node to take part."""
    from fedanon.federated.deployment.server import Server

    told = Server(folder).register(key, name)
    when = "now" if told else "from the next `fedanon server run` on"
    console().print(f"The node {name} may take part {when}.")


@app.command()
def run(
    folder: Folder,
    insecure: Insecure = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last round that was kept.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin again, and forget a run that stopped.")] = False,
) -> None:
    """Serve one run: wait for the nodes, train, and write the result."""
    from fedanon.federated.deployment.server import Server

    path = Server(folder).run(insecure=insecure, resume=resume, restart=restart)
    console().print(f"Finished: results/{path.name}")
