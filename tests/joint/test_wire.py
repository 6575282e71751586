"""The wire proof for queries and answers: integers only, and no value of a record among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.federated import engines, wire
from fedanon.federated.client import client_app
from fedanon.federated.server import FederatedRun
from fedanon.joint import JOINT_METHODS
from fedanon.learning.settings import RunSettings
from tests.federated.deployed import write_tables
from tests.federated.test_wire import NODES, RecordingGrid, canaries, sightings


class WatchingGrid(RecordingGrid):
    """Also keeps the replies to queries.

    Masked counts are not searched: among so many random bytes some four equal some value by chance. They are judged by
    their randomness instead.
    """

    def __init__(self, *args: Any, masked: bool) -> None:
        super().__init__(*args)
        self.answers: list[Message] = []
        self._masked = masked

    def _deliver(self, message: Message) -> Message:
        random = self._masked and message.metadata.message_type == wire.COUNT
        reply = engines.LocalGrid._deliver(self, message) if random else super()._deliver(message)
        if message.metadata.message_type in (wire.JOIN, wire.COUNT):
            self.answers.append(reply)
        return reply


METHODS = [(name, counts) for name in JOINT_METHODS for counts in ("plain", "threshold", "secure", "secure_dp")]


@pytest.mark.parametrize(("method", "counts"), METHODS)
def test_no_message_holds_a_value_of_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, counts: str
) -> None:
    tables = write_tables(tmp_path, NODES, 300)
    schema = Schema.read(tmp_path / "schema.toml")
    monkeypatch.setattr(engines, "n_parts", lambda _: NODES)
    app = client_app(lambda context, _: (read_table(tables[n := int(context.node_config["partition-id"])], schema), n))
    chosen_method = {"k": 10, "counts": counts, "epsilon": 8.0}
    chosen = RunSettings(model="lr", method=method, method_settings=chosen_method, rounds=1)
    masked = counts.startswith("secure")
    grid = WatchingGrid(app, chosen, masked=masked)
    FederatedRun(grid, chosen).run()
    assert sightings(grid.captured, canaries(tmp_path)) == 0
    asked = [reply for reply in grid.answers if reply.metadata.message_type == wire.COUNT]
    assert len(asked) >= 3 * NODES
    for reply in asked:
        assert list(reply.content) == [wire.ARRAYS], "an answer is counts and nothing else"
        [array] = reply.content.array_records[wire.ARRAYS].values()
        found = array.numpy()
        assert found.dtype in (np.uint8, np.int32)
        if counts in ("plain", "threshold"):
            assert found.sum() <= 3 * 300, "no more than a count of every row for every column or pair of columns"
        if counts == "threshold":
            assert not ((found > 0) & (found < 5)).any()
    if masked:
        arrays = [next(iter(reply.content.array_records[wire.ARRAYS].values())).numpy() for reply in asked]
        assert_looks_random(np.concatenate([array for array in arrays if array.dtype == np.int32]))


def assert_looks_random(masked: np.ndarray) -> None:
    """Behind masks small counts are spread over all 32 bits: no bit is set much more or less often than in a half."""
    bits = np.unpackbits(masked.view(np.uint8).reshape(len(masked), 4), axis=1).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 6 * 0.5 / np.sqrt(len(masked))


def test_what_joins_says_no_more_than_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers to a greeting of two nodes with different rows differ in their number alone."""
    tables = write_tables(tmp_path, NODES, 40)
    schema = Schema.read(tmp_path / "schema.toml")
    monkeypatch.setattr(engines, "n_parts", lambda _: NODES)
    app = client_app(lambda context, _: (read_table(tables[n := int(context.node_config["partition-id"])], schema), n))
    chosen = RunSettings(method="federated_mondrian", method_settings={"k": 2})
    grid = engines.LocalGrid(app, chosen)
    content = wire.request_content(0, wire.pack_arrays([]))
    replies = grid.send_and_receive([wire.request(node, wire.JOIN, 0, content) for node in (1, 2)])
    (one, first, no_key, axes, unsigned), (two, second, _, others, _) = (wire.read_join(reply) for reply in replies)
    assert (one, two, no_key, unsigned) == (0, 1, b"", b"")
    assert first == second
    assert all(np.array_equal(a, b) for a, b in zip(axes, others, strict=True))
