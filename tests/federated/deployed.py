"""A federation of real processes on this machine: folders, tables, processes that always end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.deployment.folders import write_private
from fedanon.federated.deployment.node import KEY, PEERS, NodeFolder
from fedanon.federated.deployment.server import Server

SCHEMA = """
name = "ward"
target = "ill"
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
[attributes.bmi]
role = "quasi_identifying"
type = "numeric"
range = [10, 50]
[attributes.sex]
role = "quasi_identifying"
type = "categorical"
values = ["F", "M"]
[attributes.ill]
role = "sensitive"
type = "categorical"
values = ["no", "yes"]
"""


#: a node that leaves to the run what only the run's seed makes comparable with the local engine; no example to follow
STUDY: dict[str, Any] = {
    "methods": "mondrian, identity, federated_mondrian, federated_reference",
    "max_releases": 100,
    "split": "run",
    "min_test": 1,
    "scores": "raw",
    "digits": 20,
    "counts": "plain, threshold, secure, dp, secure_dp",
    "min_peers": 0,
}
#: how long anything may take on a machine that is busy with other things; a process that ends is noticed at once
PATIENCE = 600


def free_port() -> int:
    """A port nobody has, of those the system does not give to outgoing connections while the server starts."""
    for port in np.random.default_rng().permutation(np.arange(20_000, 32_000)).tolist():
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return int(port)
    raise AssertionError("all ports are taken")


def write_tables(folder: Path, nodes: int, rows: int, first: int = 0) -> list[Path]:
    """A table per node, from number ``first`` on; numbers with six places, no two alike: canaries."""
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    paths = []
    for number in range(first, first + nodes):
        rng = np.random.default_rng(number)
        age, bmi, sex = rng.uniform(18, 90, rows), rng.uniform(15, 45, rows), rng.choice(["F", "M"], rows)
        ill = np.where(age / 90 + bmi / 45 + rng.normal(0, 0.3, rows) > 1.2, "yes", "no")
        lines = [f"{a:.6f},{b:.6f},{s},{i}" for a, b, s, i in zip(age, bmi, sex, ill, strict=True)]
        paths.append(folder / f"data{number}.csv")
        paths[-1].write_text("\n".join(["age,bmi,sex,ill", *lines]) + "\n", encoding="utf-8")
    return paths


@dataclass
class Deployed:
    """Folders of a server and its nodes, and the processes started in them."""

    folder: Path
    server: Server
    nodes: list[NodeFolder]
    tables: list[Path]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def table(self, number: int) -> Table:
        return read_table(self.tables[number], Schema.read(self.folder / "schema.toml"))

    def start(self, *command: str | Path, log: str, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start `fedanon ...` as the leader of a process group; ``prefix`` is a command that becomes it."""
        with (self.folder / log).open("ab") as file:
            arguments = [*prefix, sys.executable, "-m", "fedanon.cli", *map(str, command)]
            process = subprocess.Popen(arguments, stdout=file, stderr=file, start_new_session=True)
        self.processes.append(process)
        return process

    def start_node(self, number: int, *more: str, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        return self.start("node", "run", self.nodes[number].folder, *more, log=f"node{number}.log", prefix=prefix)

    def start_server(self, *more: str, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        return self.start("server", "run", self.server.folder, *more, log="server.log", prefix=prefix)

    def said(self, log: str) -> str:
        return (self.folder / log).read_text(encoding="utf-8", errors="replace")

    def finish(self, server: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Wait for the end of the run, and return its result."""
        assert server.wait(PATIENCE) == 0, self.said("server.log")
        [path] = (self.server.folder / "results").iterdir()
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return result


@contextlib.contextmanager
def deployed(
    folder: Path,
    run: str,
    *,
    nodes: int = 3,
    rows: int = 60,
    min_k: int = 2,
    through: int | None = None,
    signed: bool = False,
) -> Iterator[Deployed]:
    """Make the folders; at the end, end all processes.

    ``run`` is the run's part of server.toml; ``through`` is the port of a proxy the nodes use; ``signed`` nodes know
    each other's public keys, and ask for signatures.
    """
    port = free_port()
    server = Server.init(folder / "server", host="127.0.0.1", port=port, nodes=nodes, days=2)
    path = server.folder / "server.toml"
    head = path.read_text(encoding="utf-8").split("[run]")[0]
    path.write_text(head + "[run]\n" + run, encoding="utf-8")
    tables = write_tables(folder, nodes, rows)
    found = Deployed(folder, Server(server.folder), [], tables)
    for number, table in enumerate(tables):
        found.nodes.append(new_node(found, number, table, min_k=min_k, port=through or port, signed=signed))
        found.server.register(found.nodes[-1].folder / "node.pub", f"hospital-{number}")
    if signed:
        for node in found.nodes:
            shutil.copytree(found.server.folder / "nodes", node.folder / PEERS, dirs_exist_ok=True)
    try:
        yield found
    finally:
        for process in reversed(found.processes):
            end_group(process)


def new_node(
    found: Deployed,
    number: int,
    table: Path,
    *,
    port: int,
    min_k: int = 2,
    ca: Path | None = None,
    signed: bool = False,
) -> NodeFolder:
    config = NodeConfig(
        server=f"127.0.0.1:{port}",
        data=str(table),
        schema=str(found.folder / "schema.toml"),
        number=number,
        min_k=min_k,
        identity_key=KEY if signed else "",
        peer_keys=PEERS if signed else "",
        **STUDY,
    )
    return NodeFolder.init(found.folder / f"node{number}", config, ca or found.server.folder / "ca.crt")


def allow(folder: Path, **policy: Any) -> None:
    """Change the policy of a node that was made."""
    write_private(folder / "node.toml", replace(NodeConfig.read(folder), **policy).to_toml())


def end_group(process: subprocess.Popen[bytes], *, kill: bool = False) -> None:
    """End a process and its group, gently unless ``kill``."""
    if process.poll() is None and not kill:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(true: Callable[[], bool], what: str, *, alive: subprocess.Popen[bytes] | None = None) -> None:
    """Wait for something that must come, for as long as ``alive`` lives."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert alive is None or alive.poll() is None, f"{what}: the process has ended"
        assert time.monotonic() < end, what
        time.sleep(0.1)
