"""`fedanon server`: the server of a real federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedanon.cli.output import console

app = typer.Typer(help="The server of a federation of real machines.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The server's folder.")]
Days = Annotated[int, typer.Option(help="Days for which the server's certificate is valid.", min=1)]
CaKey = Annotated[Path | None, typer.Option(help="Path of the authority's key; by default ca.key in the folder.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="No TLS and no keys, for trials on one machine; the result says so.")
]


@app.command()
def init(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Name or address by which nodes find the server.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port.", min=1, max=65535)] = 9443,
    nodes: Annotated[int, typer.Option(help="Nodes to wait for before the first round.", min=1)] = 2,
    days: Days = 365,
    listen: Annotated[
        str | None, typer.Option(help="Address to listen on; by default all, or the loopback if that is the host.")
    ] = None,
    ca_key: CaKey = None,
) -> None:
    """Make a server's folder: an authority, a certificate, and a server.toml to edit.

    Nodes know the server by its authority (ca.crt, ten years), which signs the
    server's certificate (server.crt). The authority's key stays in the folder
    as ca.key, readable by its owner alone, so that `fedanon server renew` can
    issue the next certificate and nodes keep their ca.crt. Whoever has that key
    can pose as the server: --ca-key puts it elsewhere, such as on a disk kept
    in a safe, and then `renew` asks for it.
    """
    from fedanon.federated.deployment.server import Server

    Server.init(folder, host=host, port=port, nodes=nodes, days=days, listen=listen, ca_key=ca_key)
    out = console()
    out.print(f"Made {folder}: edit server.toml, and give ca.crt to every node.")
    out.print(f"Next, at every node: fedanon node init NODE --server {host}:{port} --ca ca.crt --data D --schema S")


@app.command()
def renew(folder: Folder, days: Days = 365, ca_key: CaKey = None) -> None:
    """Issue a new key and certificate for the server; nodes need nothing new.

    The same authority signs it, for the host and the address that stand in
    server.toml now. A running server goes on with the old one until it is
    started again.
    """
    from fedanon.federated.deployment.server import Server

    server = Server(folder)
    server.renew(days=days, ca_key=ca_key)
    console().print(f"The certificate is in force for {server.days_left()['server.crt']} days, from the next start on.")


@app.command()
def register(
    folder: Folder,
    key: Annotated[Path, typer.Argument(help="The node's public key (node.pub).")],
    name: Annotated[str, typer.Option(help="A name for the node.")],
) -> None:
    """Allow a node to take part."""
    from fedanon.federated.deployment.server import Server

    known = Server(folder).register(key, name)
    when = "now" if known else "from the next `fedanon server run` on"
    console().print(f"The node {name} may take part {when}.")


@app.command()
def remove(folder: Folder, name: Annotated[str, typer.Argument(help="The name it was registered under.")]) -> None:
    """Remove a node for good: its key cannot be registered again.

    A running server refuses it at once, also in the middle of a round, which
    goes on with the others.
    """
    from fedanon.federated.deployment.server import Server

    server = Server(folder)
    when = "now" if server.remove(name) else "from the next `fedanon server run` on; none is running"
    console().print(f"The node {name} is refused {when}.")
    left = len(server.roster.names())
    if left < server.config.nodes:
        console().print(f"Left are {left} nodes, and a run waits for {server.config.nodes}: see nodes in server.toml.")


@app.command()
def run(
    folder: Folder,
    insecure: Insecure = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue after the last checkpoint.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Start over and discard a run that stopped.")] = False,
) -> None:
    """Serve one run: wait for the nodes, train, and write the result."""
    from fedanon.federated.deployment.server import Server
    from fedanon.federated.deployment.serving import MODELS
    from fedanon.learning.saved_model import SCHEMA

    path = Server(folder).run(insecure=insecure, resume=resume, restart=restart)
    out, model = console(), folder / MODELS / path.stem
    out.print(f"Finished: results/{path.name}, and the model with its card in {model}", soft_wrap=True)
    needed = "" if (model / SCHEMA).exists() else " --schema SCHEMA"
    out.print(f"Next: fedanon predict {model} INPUT{needed} -o OUTPUT", soft_wrap=True)


@app.command()
def serve(folder: Folder, insecure: Insecure = False) -> None:
    """Serve runs that `flwr run` starts, until ended.

    Flower's commands find this server under the name fedanon, with
    FLWR_HOME=FOLDER/flower: `flwr run APP fedanon`, `flwr list fedanon`,
    `flwr log RUN fedanon`, `flwr stop RUN fedanon`.
    """
    from fedanon.federated.deployment.server import Server

    server = Server(folder)
    console().print(f"Serving on {server.config.here}:{server.config.port}; end it with Ctrl-C.")
    server.serve(insecure=insecure)
