"""The wire proof: what passes between nodes and server holds no value of a record. Raw training is the control."""

from __future__ import annotations

import json
import re
import socket
import threading
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message
from numpy.typing import NDArray

from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.federated import engines
from fedanon.federated.client import client_app
from fedanon.federated.server import FederatedRun
from fedanon.learning.settings import RunSettings
from fedanon.models.encoding import Encoding
from tests.federated.deployed import Deployed, deployed, write_tables

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
NODES = 2
RUNS = {
    "raw": ("xgb", "identity", {}),
    "lr": ("lr", "mondrian", {"k": 10}),
    "xgb": ("xgb", "mondrian", {"k": 10}),
}


def canaries(folder: Path) -> NDArray[np.float64]:
    """Every number of every record, as it stands in the table and as a feature."""
    schema = Schema.read(folder / "schema.toml")
    tables = [read_table(folder / f"data{i}.csv", schema) for i in range(NODES)]
    frames = [np.loadtxt(folder / f"data{i}.csv", delimiter=",", skiprows=1, usecols=(0, 1)) for i in range(NODES)]
    features = [Encoding.from_schema(schema).encode_table(table)[:, :2] for table in tables]
    return np.concatenate([np.ravel(part).astype(np.float64) for part in (*frames, *features)])


def sightings(captured: bytes, values: NDArray[np.float64]) -> int:
    """Canaries among the numbers written as text, equal as float32, and among the raw bytes."""
    written = {np.float32(float(token)) for token in NUMBER.findall(captured) if b"." in token and len(token) < 25}
    as_text = len(written & {np.float32(value) for value in values})
    patterns = {form(value).tobytes() for value in values for form in (np.float32, np.float64)}
    return as_text + sum(pattern in captured for pattern in patterns)


class RecordingGrid(engines.LocalGrid):
    """Keeps the bytes of all replies."""

    captured = b""

    def _deliver(self, message: Message) -> Message:
        reply = super()._deliver(message)
        assert not reply.has_error()
        for arrays in reply.content.array_records.values():
            self.captured += b"".join(array.data for array in arrays.values())
        for numbers in (*reply.content.metric_records.values(), *reply.content.config_records.values()):
            self.captured += json.dumps(dict(numbers)).encode()
            self.captured += b"".join(np.float64(v).tobytes() for v in numbers.values() if isinstance(v, float))
        return reply


def settings(name: str) -> RunSettings:
    model, method, more = RUNS[name]
    return RunSettings(model=model, method=method, method_settings=more, rounds=5)


@pytest.mark.parametrize("name", RUNS)
def test_no_message_holds_a_value_of_a_record(tmp_path, monkeypatch, name):
    tables = write_tables(tmp_path, NODES, 300)
    schema = Schema.read(tmp_path / "schema.toml")
    monkeypatch.setattr(engines, "n_parts", lambda _: NODES)
    app = client_app(lambda context, _: (read_table(tables[n := int(context.node_config["partition-id"])], schema), n))
    grid = RecordingGrid(app, settings(name))
    FederatedRun(grid, settings(name)).run()
    found = sightings(grid.captured, canaries(tmp_path))
    print(f"{name}: {len(grid.captured)} bytes, {found} canaries seen")
    assert len(grid.captured) > 1_000
    assert found > 0 if name == "raw" else found == 0


# ---- the same over TCP ------------------------------------------------------------------------------


class Proxy:
    """Forwards connections to a port, and keeps what goes up."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.target = 0
        self._streams: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def captured(self) -> bytes:
        return b"\n".join(bytes(stream) for stream in self._streams)

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()  # the server is not up yet
                continue
            self._streams.append(bytearray())
            threading.Thread(target=_pump, args=(client, server, self._streams[-1]), daemon=True).start()
            threading.Thread(target=_pump, args=(server, client, bytearray()), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, kept: bytearray) -> None:
    try:
        while data := source.recv(65536):
            kept += data
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the other side is gone


def run_through(proxy: Proxy, found: Deployed) -> None:
    proxy.target = found.server.config.port
    server = found.start_server("--insecure")
    for number in range(NODES):
        found.start_node(number, "--insecure")
    assert found.finish(server)["security"] == "none"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", RUNS)
def test_no_byte_on_the_network_is_a_value_of_a_record(tmp_path, name):
    model, method, more = RUNS[name]
    nested = ", ".join(f"{key} = {value}" for key, value in more.items())
    run = f'model = "{model}"\nmethod = "{method}"\nmethod_settings = {{ {nested} }}\nrounds = 3\nevaluate_every = 3\n'
    proxy = Proxy()
    try:
        with deployed(tmp_path, run, nodes=NODES, rows=300, min_k=1, through=proxy.port) as found:
            run_through(proxy, found)
        sighted = sightings(proxy.captured, canaries(tmp_path))
    finally:
        proxy.close()
    print(f"{name}: {len(proxy.captured)} bytes up, {sighted} canaries seen")
    assert len(proxy.captured) > 10_000
    assert sighted > 0 if name == "raw" else sighted == 0
