"""The wire proof for questions and answers: integers only, and no value of a record among them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from fedanon.data.csv_file import read_table
from fedanon.data.schema import Schema
from fedanon.federated import engine_local, wire
from fedanon.federated.client import client_app
from fedanon.federated.server import Federation
from fedanon.federated.settings import RunSettings
from tests.federated.deployed import write_tables
from tests.federated.test_wire import NODES, RecordingGrid, canaries, sightings


class WatchingGrid(RecordingGrid):
    """Also keeps the replies to questions."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.answers: list[Message] = []

    def _deliver(self, message: Message) -> Message:
        reply = super()._deliver(message)
        if message.metadata.message_type in (wire.JOIN, wire.COUNT):
            self.answers.append(reply)
        return reply


@pytest.mark.parametrize("counts", ["plain", "threshold"])
def test_no_message_holds_a_value_of_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: str) -> None:
    tables = write_tables(tmp_path, NODES, 300)
    schema = Schema.read(tmp_path / "schema.toml")
    monkeypatch.setattr(engine_local, "n_parts", lambda _: NODES)
    app = client_app(lambda context, _: (read_table(tables[n := int(context.node_config["partition-id"])], schema), n))
    method = json.dumps({"k": 10, "counts": counts})
    chosen = RunSettings(model="xgb", method="federated_mondrian", method_settings=method, rounds=3)
    grid = WatchingGrid(app, chosen)
    Federation(grid, chosen).run()
    assert sightings(grid.captured, canaries(tmp_path)) == 0
    asked = [reply for reply in grid.answers if reply.metadata.message_type == wire.COUNT]
    assert len(asked) > 2 * NODES
    for reply in asked:
        assert list(reply.content) == [wire.ARRAYS], "an answer is counts and nothing else"
        [array] = reply.content.array_records[wire.ARRAYS].values()
        found = array.numpy()
        assert found.dtype in (np.uint8, np.int32)
        assert found.sum() <= 3 * 300, "no more than a count of every row for every column"
        if counts == "threshold":
            assert not ((found > 0) & (found < 5)).any()


def test_what_joins_says_no_more_than_the_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers to a greeting of two hospitals with different rows differ in their number alone."""
    tables = write_tables(tmp_path, NODES, 40)
    schema = Schema.read(tmp_path / "schema.toml")
    monkeypatch.setattr(engine_local, "n_parts", lambda _: NODES)
    app = client_app(lambda context, _: (read_table(tables[n := int(context.node_config["partition-id"])], schema), n))
    chosen = RunSettings(method="federated_mondrian", method_settings='{"k": 2}')
    grid = engine_local.LocalGrid(app, chosen)
    content = wire.request_content(0, wire.pack_arrays([]))
    replies = grid.send_and_receive([wire.request(node, wire.JOIN, 0, content) for node in (1, 2)])
    (one, first, axes), (two, second, others) = (wire.read_join(reply) for reply in replies)
    assert (one, two) == (0, 1)
    assert first == second
    assert all(np.array_equal(a, b) for a, b in zip(axes, others, strict=True))
