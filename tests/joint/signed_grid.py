"""Nodes with settings of their own behind a server that may lie: what tests of a node's conditions are played on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from flwr.app import Message

from fedanon.federated import wire
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.joint.axes import make_axes
from fedanon.joint.masks import pack_keys
from fedanon.joint.queries import RegionQuery, read_counts
from fedanon.joint.regions import GrowingRegions
from tests.federated.conftest import first_rows, settings

NODES = 5
SECURE = {"method": "federated_mondrian", "method_settings": {"k": 10, "counts": "secure"}}

Keys = dict[int, bytes]
Config = dict[str, str]


def histograms() -> RegionQuery:
    """A query for the histograms of all rows."""
    grown = GrowingRegions([axis.n_bins for axis in make_axes(first_rows().schema)])
    root = np.zeros(1, dtype=np.int32)
    low, high = grown.boxes(root)
    return RegionQuery(grown.router, root, low, high, np.full_like(low, 4))


def counts_in(reply: Message) -> np.ndarray:
    return read_counts(wire.read_counts(reply), histograms().layout(make_axes(first_rows().schema)).total)


class SignedGrid(LocalGrid):
    """Nodes with settings of their own; requests and replies pass through a server that may change them."""

    def __init__(self, configs: Mapping[int, Mapping[str, Any]], **more: Any) -> None:
        super().__init__(client_app(), settings("lr", rounds=1, **(SECURE | more)))
        self.asked: Callable[[Message], None] = lambda _: None
        self.answered: Callable[[Message], None] = lambda _: None
        self.reasons: list[str] = []
        for number, config in configs.items():
            self._contexts[number + 1].node_config.update(config)

    def _deliver(self, message: Message) -> Message:
        self.asked(message)
        reply = super()._deliver(message)
        if reply.has_error():
            self.reasons.append(reply.error.reason)
        else:
            self.answered(reply)
        return reply

    def join(self) -> tuple[Keys, Keys]:
        """Keys and signatures of all."""
        content = wire.request_content(0, wire.pack_arrays([]))
        replies = self.send_and_receive([wire.request(n + 1, wire.JOIN, 0, content) for n in range(NODES)])
        joined = [wire.read_join(reply) for reply in replies]
        return {each[0]: each[2] for each in joined}, {each[0]: each[4] for each in joined}

    def count(self, step: int, keys: Keys | None, signatures: Keys | None = None) -> Message:
        """What node 0 answers to a query with these keys."""
        arrays = [*histograms().to_arrays(), *(pack_keys(keys, signatures or {}) if keys else [])]
        content = wire.request_content(step, wire.pack_arrays(arrays))
        [reply] = self.send_and_receive([wire.request(1, wire.COUNT, step, content)])
        return reply
