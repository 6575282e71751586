"""`fedanon node`: a node's side of a real federation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table
from fedanon.cli.server import Insecure
from fedanon.errors import ConfigError

app = typer.Typer(help="A node of a federation of real machines.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The node's folder.")]


@app.command()
def init(
    folder: Folder,
    server: Annotated[str, typer.Option(help="HOST:PORT of the server.")],
    schema: Annotated[Path, typer.Option(help="Schema of the table (TOML).")],
    data: Annotated[
        str | None, typer.Option(help="The table, a file or the address of a database; it stays where it is.")
    ] = None,
    query: Annotated[str, typer.Option(help="For a database: the SELECT that gives the table.")] = "",
    stream: Annotated[Path | None, typer.Option(help="Or the folder of a gateway's windows.")] = None,
    ca: Annotated[Path | None, typer.Option(help="The server's ca.crt.")] = None,
    number: Annotated[int, typer.Option(help="Number of this node, different at every node.", min=0)] = 0,
    missing: Annotated[str, typer.Option(help="Missing quasi-identifiers: error, category, wildcard.")] = "error",
    min_k: Annotated[int, typer.Option(help="Reject runs whose release has a smaller k.", min=1)] = 5,
    least_k: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
) -> None:
    """Make a node's folder: a key pair and a node.toml."""
    from fedanon.datasets.source import locate
    from fedanon.federated.deployment.config import NodeConfig
    from fedanon.federated.deployment.node import KEY, PEERS, NodeFolder

    if (data is None) == (stream is None):
        raise ConfigError("Give either --data FILE or --stream FOLDER.")
    if least_k is not None:
        console(stderr=True).print("warning: --least-k is now called --min-k.")
    config = NodeConfig(
        server=server,
        data=locate(data, Path().resolve()) if data else "",
        query=query,
        stream=str(stream.resolve()) if stream else "",
        schema=str(schema.resolve()),
        number=number,
        missing=missing,
        min_k=least_k or min_k,
        identity_key=KEY,
        peer_keys=PEERS,
    )
    node = NodeFolder.init(folder, config, ca)
    typer.echo(node.public_key)
    out = console(stderr=True)
    out.print("Above is this node's public key (node.pub). Give it to the server's people, who register it with")
    out.print("  fedanon server register SERVER node.pub --name NAME")
    out.print("What a server may ask of this node stands in node.toml; the defaults release one k-anonymous table.")
    out.print("For runs with secure sums give it to the other nodes too, and put theirs, named NAME.pub, into")
    out.print(f"  {folder / PEERS}")
    if ca is None:
        out.print(f"Copy the server's ca.crt into {folder}.")
    out.print(f"Then: fedanon node run {folder}")


@app.command()
def run(
    folder: Folder,
    insecure: Insecure = False,
    tries: Annotated[int, typer.Option(help="Give up after this many failed starts; 0 means never.", min=0)] = 0,
) -> None:
    """Connect to the server and take part in its runs, until ended."""
    from fedanon.federated.deployment.node import NodeFolder

    NodeFolder(folder).run(insecure=insecure, tries=tries)


@app.command()
def egress(folder: Folder, as_json: options.Json = False) -> None:
    """List per run what has left this node, in words and bytes, and what was refused."""
    from fedanon.federated.deployment.egress_log import read_egress, what_is_left

    runs, used = read_egress(folder), what_is_left(folder)
    if as_json:
        print_json({"runs": [asdict(run) for run in runs], "used": used})
        return
    for run in runs:
        releases = "; ".join(f"{name}: {made}" for name, made in run.releases.items()) or "none"
        title = f"Run {run.run}, {run.first} to {run.last}; releases seen: {releases}"
        rows: list[tuple[Any, ...]] = [(what, times, run.bytes[what]) for what, times in run.answers.items()]
        rows += [(f"refused: {kind}", times, 0) for kind, times in run.refusals.items()]
        print_table(title, ["what left", "times", "bytes"], rows)
    total = sum(sum(run.bytes.values()) for run in runs)
    console().print(
        f"{len(runs)} run{'s' * (len(runs) != 1)}, {total} bytes in all. "
        + ", ".join(f"{k}: {v}" for k, v in used.items())
        + "."
    )


# ---- apps of other people ------------------------------------------------------------------------


@app.command()
def allow(
    folder: Folder,
    bundle: Annotated[Path, typer.Argument(help="The app's bundle (.fab), as `flwr build` makes it.")],
    limits: Annotated[Path, typer.Option(help="What the app may reply (TOML); see foreign apps in the docs.")],
) -> None:
    """Allow an app of other people to run on the release of this node, behind its gate; say what that allows."""
    from fedanon.federated.deployment.node import NodeFolder
    from fedanon.federated.gate.limits import AppLimits

    node = NodeFolder(folder)
    wanted = AppLimits.from_toml(_content(limits).decode("utf-8", "replace"))
    node.config.check_run(wanted.settings)
    allowed = node.apps.allow(_content(bundle), wanted)
    out = console()
    out.print(f"Allowed: {allowed.name}, sha256 {allowed.sha256}", soft_wrap=True, markup=False)
    for sentence in allowed.limits.describe():
        out.print(f"- {sentence}", soft_wrap=True, markup=False)
    out.print("Whatever it answers is made from that release: read its code if its numbers must mean something.")


@app.command()
def disallow(
    folder: Folder,
    sha256: Annotated[str, typer.Argument(help="Hash of its bundle, as `fedanon node status` lists it.")],
) -> None:
    """Revoke the permission of an app."""
    from fedanon.federated.deployment.node import NodeFolder

    NodeFolder(folder).apps.remove(sha256)


@app.command()
def status(folder: Folder, as_json: options.Json = False) -> None:
    """Show which apps of other people this node runs, and which walls would stand around them here, as tried now."""
    from fedanon.federated.deployment.node import NodeFolder
    from fedanon.federated.gate.runner import try_walls

    node, standing = NodeFolder(folder), try_walls()
    apps = [found for sha256 in node.apps.names() if (found := node.apps.find(sha256))]
    if as_json:
        told = [{"sha256": found.sha256, "name": found.name, "allows": found.limits.describe()} for found in apps]
        print_json({"apps": told, "walls": standing.to_dict() | {"enough": standing.enough}})
        return
    out = console()
    out.print(f"Walls: {standing.describe()}.", soft_wrap=True, markup=False)
    if not standing.enough:
        refused = node.config.app_walls == "required"
        out.print("That is not enough for apps of other people: " + ("they are refused." if refused else "RUN ANYWAY."))
    for found in apps:
        out.print(f"{found.name}, sha256 {found.sha256}", soft_wrap=True, markup=False)
        for sentence in found.limits.describe():
            out.print(f"- {sentence}", soft_wrap=True, markup=False)
    if not apps:
        out.print("No app of other people is allowed; `fedanon node allow` allows one.")


def _content(path: Path) -> bytes:
    from fedanon.errors import DataError

    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path.name} cannot be read: {error.strerror}.") from None
