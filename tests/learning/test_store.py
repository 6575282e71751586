"""A node's store: prepared once, private, never stale, rebuilt when damaged."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.learning.node import Node
from fedanon.learning.node_store import NodeStore
from fedanon.learning.settings import RunSettings
from tests.federated.deployed import write_tables

SETTINGS = RunSettings(method="mondrian", method_settings={"k": 4}, model="xgb", rounds=3)


class Counted:
    """Makes the node, and counts how often."""

    def __init__(self, folder: Path) -> None:
        [self.data] = write_tables(folder, 1, 80)
        self.schema = folder / "schema.toml"
        self.store = folder / "store"
        self.made = 0

    def node(self, settings: RunSettings = SETTINGS) -> Node:
        def make() -> Node:
            self.made += 1
            return Node(read_table(self.data, Schema.read(self.schema)), settings, 0)

        config = {"store": str(self.store), "data": str(self.data), "schema": str(self.schema), "number": 0}
        store = NodeStore.of(config)
        assert store is not None
        return store.node(settings, make)

    @property
    def entry(self) -> Path:
        [path] = self.store.iterdir()
        return path


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    return Counted(tmp_path)


@pytest.mark.parametrize("method", ["mondrian", "identity", "das", "fixed_interval", "gfkmc"])
def test_a_stored_node_trains_and_scores_like_the_one_it_was_made_from(counted, method):
    settings = replace(SETTINGS, method=method, method_settings={"k": 4} if method in ("mondrian", "gfkmc") else {})
    made, stored = counted.node(settings), counted.node(settings)
    assert counted.made == 1
    assert "_table" not in vars(stored)
    start = made.model.initial(made.encoding.width)
    one, other = made.train(start, 1), stored.train(start, 1)
    np.testing.assert_array_equal(one.parameters[0], other.parameters[0])
    assert made.evaluate(start) == stored.evaluate(start)
    assert made.facts == stored.facts


def test_rounds_and_strategy_share_the_preparation_and_the_rest_does_not(counted):
    counted.node()
    assert counted.node(replace(SETTINGS, rounds=9, strategy="fedmedian")).settings.rounds == 9
    assert counted.made == 1
    counted.node(replace(SETTINGS, seed=1))
    counted.node(replace(SETTINGS, method_settings={"k": 5}))
    assert counted.made == 3


def test_a_stored_node_has_the_model_of_the_run_it_is_in(counted):
    averaged = replace(SETTINGS, model="lr")
    proximal = replace(averaged, strategy="fedprox", strategy_settings={"proximal_mu": 0.7})
    assert counted.node(averaged).model.mu == 0
    assert counted.node(proximal).model.mu == 0.7
    assert counted.node(averaged).model.mu == 0
    assert counted.made == 1


def test_a_changed_table_is_prepared_anew(counted):
    counted.node()
    counted.data.write_text(counted.data.read_text(encoding="utf-8") + "30.5,20.5,F,no\n", encoding="utf-8")
    counted.node()
    assert counted.made == 2


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 500])
def test_a_damaged_entry_is_made_again(counted, damage):
    counted.node()
    counted.entry.write_bytes(damage)
    counted.node()
    counted.node()
    assert counted.made == 2


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_an_entry_others_can_write_is_not_loaded(counted):
    counted.node()
    assert counted.entry.stat().st_mode & 0o777 == 0o600
    assert counted.store.stat().st_mode & 0o777 == 0o700
    counted.entry.chmod(0o666)
    counted.node()
    assert counted.made == 2
    assert counted.entry.stat().st_mode & 0o777 == 0o600
