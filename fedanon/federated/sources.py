"""Where a node's table comes from: its own file, or its part of a data set in a simulation."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedanon.data.partition import parse_partition
from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.learning.settings import RunSettings

if TYPE_CHECKING:
    from flwr.app import Context

#: a data set that comes in parts keeps them
STORED = "stored"


def load_node_table(context: Context, settings: RunSettings) -> tuple[Table, int]:
    """A node's own file (node config `data` and `schema`), or a part of the run's data set (`partition-id`)."""
    config = context.node_config
    if "data" in config:
        schema = Schema.read(Path(str(config["schema"])))
        missing = str(config.get("missing", "error"))
        table = read_table(Path(str(config["data"])), schema, missing=missing)  # type: ignore[arg-type]
        return table, int(config.get("number", 0))
    if "partition-id" not in config:
        raise ConfigError("The node config names neither `data` and `schema` nor a `partition-id`.")
    number = int(config["partition-id"])
    return node_table(settings, number), number


def node_table(settings: RunSettings, number: int) -> Table:
    """The rows of one node of a simulation."""
    if number >= n_parts(settings):
        raise ConfigError(f"The data set has {n_parts(settings)} parts; there is no part {number}.")
    if settings.partition == STORED:
        return load(settings.dataset, node=number)
    rows = partition_rows(settings.dataset, settings.partition, settings.nodes, settings.seed)[number]
    return whole_table(settings.dataset).select_rows(rows)


def n_parts(settings: RunSettings) -> int:
    """Number of nodes a simulation has."""
    if settings.partition == STORED:
        return settings.nodes
    return len(partition_rows(settings.dataset, settings.partition, settings.nodes, settings.seed))


@lru_cache(maxsize=8)
def whole_table(dataset: str) -> Table:
    """A data set, loaded once per process."""
    return load(dataset)


@lru_cache(maxsize=16)
def partition_rows(dataset: str, partition: str, nodes: int, seed: int) -> tuple[NDArray[np.int64], ...]:
    """The rows of every node; the same in every process."""
    rng = np.random.default_rng([seed, *b"partition"])
    # a partition by a column has as many nodes as the column has values
    wanted = None if partition.startswith("by:") else nodes
    return tuple(parse_partition(partition)(whole_table(dataset), wanted, rng))
