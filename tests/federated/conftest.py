"""A small federation: five clients of a slice of Adult."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from flwr.clientapp import ClientApp

from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.federated import sources
from fedanon.federated.client import client_app
from fedanon.joint.node import make_node
from fedanon.learning.node import Node
from fedanon.learning.settings import RunSettings

ROWS = 1_500


@lru_cache
def first_rows() -> Table:
    return load("adult").select_rows(np.arange(ROWS))


@pytest.fixture(autouse=True)
def small_adult(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The data set 'adult' is its first rows here, so that a run takes a second."""
    table = first_rows()
    monkeypatch.setattr(sources, "load", lambda name, **more: table if name == "adult" else load(name, **more))
    sources.whole_table.cache_clear()
    sources.partition_rows.cache_clear()
    yield
    sources.whole_table.cache_clear()
    sources.partition_rows.cache_clear()


def settings(model: str = "lr", **more: Any) -> RunSettings:
    return RunSettings(**({"model": model, "nodes": 5, "rounds": 4} | more))


def prepared_app(chosen: RunSettings) -> ClientApp:
    """An app for tests of the rounds: its nodes have released and encoded their rows, and have learned nothing."""
    return client_app(prepared=[copy(node) for node in _prepared_nodes(chosen)])


@lru_cache
def _prepared_nodes(chosen: RunSettings) -> list[Node]:
    return [make_node(sources.node_table(chosen, number), chosen, number) for number in range(chosen.nodes)]
