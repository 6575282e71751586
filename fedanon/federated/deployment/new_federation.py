"""A whole federation made at once: a folder for the server and for every node, which know each other already.

For trials on one machine, and for people who hand the folders out: the private keys of all nodes are made here.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedanon.data.schema import Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.folders import new_private_folder, write_private
from fedanon.federated.deployment.node import KEY, PEERS, PUBLIC_KEY, NodeFolder
from fedanon.federated.deployment.server import Server
from fedanon.federated.deployment.server_folder import AUTHORITY

SERVER, NODE = "server", "hospital-{number}"
DATA, SCHEMA = "data.csv", "schema.toml"


@dataclass(frozen=True)
class Federation:
    """The folders of a new federation."""

    server: Server
    nodes: list[NodeFolder]


def new_federation(
    folder: Path,
    *,
    nodes: int,
    host: str = "127.0.0.1",
    port: int = 9443,
    days: int = 365,
    dataset: str | None = None,
    seed: int = 0,
) -> Federation:
    """Make the folders; nodes are registered and know each other's keys.

    Parameters
    ----------
    folder : must not hold anything yet.
    nodes : how many.
    host, port : where nodes find the server.
    days : how long its certificate is in force.
    dataset : a data set by name, of which every node gets a part; by default nodes bring data.csv and schema.toml.
    seed : of the parts.
    """
    parts = _parts(dataset, nodes, seed) if dataset else []
    new_private_folder(folder)
    server = Server.init(folder / SERVER, host=host, port=port, nodes=nodes, days=days)
    made = []
    for number in range(nodes):
        name = NODE.format(number=number)
        config = NodeConfig(
            server=f"{host}:{port}", data=DATA, schema=SCHEMA, number=number, identity_key=KEY, peer_keys=PEERS
        )
        made.append(NodeFolder.init(folder / name, config, server.folder / AUTHORITY))
        server.roster.add(made[-1].folder / PUBLIC_KEY, name)
        if parts:
            write_private(folder / name / SCHEMA, schema_toml(_schema(parts[number])))
            write_private(folder / name / DATA, parts[number].frame.to_csv(index=False))
    if parts:
        write_private(server.folder / server.config.schema, schema_toml(_schema(parts[0])))
    for node in made:
        shutil.copytree(server.folder / "nodes", node.folder / PEERS, dirs_exist_ok=True)
    return Federation(server, made)


def _parts(dataset: str, nodes: int, seed: int) -> list[Table]:
    """The rows of a data set, dealt out at random."""
    table = load(dataset)
    if table.persons is not None:
        raise ConfigError(f"The data set {dataset!r} has several rows of a person, which one node must hold.")
    order = np.random.default_rng(seed).permutation(len(table))
    return [table.select_rows(np.sort(rows)) for rows in np.array_split(order, nodes)]


def _schema(table: Table) -> Schema:
    """Without identifying columns, which do not come past the border of a table."""
    return replace(table.schema, attributes=tuple(a for a in table.schema.attributes if a.name in table.frame))
