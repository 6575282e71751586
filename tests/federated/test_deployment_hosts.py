"""A server and three hospitals on hosts of their own, by the commands people type, with TLS and keys of nodes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.deployment.server import Server
from tests.federated.deployed import PATIENCE, STUDY, Deployed, allow, end_group, wait_until, write_tables
from tests.federated.hosts import Host, NoNamespacesError, hosts
from tests.federated.test_deployment import RUN, assert_same, deployed_result, local_result

PORT = 9443
ASK = """
import http.client, ssl, sys
ca, host = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
connection = http.client.HTTPSConnection(host, 9443, context=context, timeout=30)
connection.request("POST", "/v1/control/list-runs")
print(connection.getresponse().status)
"""
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture
def machines() -> Iterator[list[Host]]:
    """The server's host, then three of hospitals."""
    try:
        with hosts(4) as made:
            yield made
    except NoNamespacesError as reason:
        pytest.skip(f"no network namespaces here: {reason}")


def on(host: Host, *command: str | Path) -> str:
    """What `fedanon ...` says on a host."""
    full = host.inside(sys.executable, "-m", "fedanon.cli", *map(str, command))
    return subprocess.run(full, check=True, capture_output=True, text=True, timeout=PATIENCE).stdout


def control_api(host: Host, ca: Path, server: str) -> int:
    """The status of the control API's answer to a host."""
    done = subprocess.run(
        host.inside(sys.executable, "-c", ASK, str(ca), server), check=True, capture_output=True, timeout=PATIENCE
    )
    return int(done.stdout)


def listening(host: Host) -> set[str]:
    """The addresses that accept connections on a host, from its kernel: hexadecimal, bytes reversed."""
    show = host.inside("cat", "/proc/net/tcp", "/proc/net/tcp6")
    table = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    sockets = [line.split() for line in table.splitlines()]
    bound = [local.split(":")[0] for _, local, _, state, *_ in sockets if state == "0A"]
    return {".".join(str(byte) for byte in reversed(bytes.fromhex(address))) for address in bound}


def set_up(folder: Path, center: Host, hospitals: list[Host]) -> Deployed:
    """The folders, each made on its host."""
    server, address = folder / "server", center.address
    tables = write_tables(folder, len(hospitals), 60)
    nodes = ("--nodes", str(len(hospitals)))
    on(center, "server", "init", server, "--host", address, "--listen", address, "--port", str(PORT), *nodes)
    path = server / "server.toml"
    path.write_text(path.read_text(encoding="utf-8").split("[run]")[0] + "[run]\n" + RUN.format(rounds=3), "utf-8")
    made = []
    for number, (host, table) in enumerate(zip(hospitals, tables, strict=True)):
        made.append(folder / f"node{number}")
        where = ("--server", f"{address}:{PORT}", "--ca", server / "ca.crt")
        what = ("--data", table, "--schema", folder / "schema.toml", "--number", str(number))
        on(host, "node", "init", made[-1], *where, *what)
        allow(made[-1], min_k=2, **STUDY)
        on(center, "server", "register", server, made[-1] / "node.pub", "--name", f"hospital-{number}")
    return Deployed(folder, Server(server), [NodeFolder(each) for each in made], tables)


def test_hosts_of_their_own_reach_the_model_of_the_local_engine(tmp_path, monkeypatch, machines):
    center, *hospitals = machines
    found = set_up(tmp_path, center, hospitals)
    try:
        server = found.start_server(prefix=center.inside())
        wait_until(lambda: "Successfully started run" in found.said("server.log"), "no run", alive=server)
        assert listening(center) == {center.address}
        ca = found.nodes[0].folder / "ca.crt"
        assert control_api(center, ca, center.address) != 403
        assert control_api(hospitals[0], ca, center.address) == 403
        for number, host in enumerate(hospitals):
            found.start_node(number, prefix=host.inside())
        result = found.finish(server)
        assert result["security"] == "tls"
        assert result["rejected"] == result["unresponsive"] == []
        assert sorted(result["facts"]) == ["0", "1", "2"]
        assert_same(deployed_result(found), local_result(found, monkeypatch))
        assert "stopped" in on(center, "federation", "status", found.server.folder)
        log = (found.server.folder / "superlink.log").read_text(encoding="utf-8", errors="replace")
        assert all(f"{host.address}:" in log for host in hospitals), "every hospital came from its own address"
    finally:
        for process in reversed(found.processes):
            end_group(process)
