"""Where a node's table comes from: its own file, or its part of a data set or an own table in a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, cast, get_args

import numpy as np
from numpy.typing import NDArray

from fedanon.data.partition import parse_partition, partition_column
from fedanon.data.table import MissingPolicy, Table
from fedanon.datasets import load
from fedanon.datasets.source import DataSource
from fedanon.errors import ConfigError
from fedanon.io.sql import is_database
from fedanon.learning.settings import RunSettings

if TYPE_CHECKING:
    from flwr.app import Context

#: a data set that comes in parts keeps them
STORED = "stored"


def load_node_table(context: Context, settings: RunSettings) -> tuple[Table, int]:
    """A node's own file (node config `data` and `schema`), or a part of the run's data set (`partition-id`)."""
    config = context.node_config
    if "data" in config:
        source = own_source(config)
        table = _read_once(source, context.run_id) if is_database(source.data[0]) else source.load()
        return table, int(config.get("number", 0))
    if "partition-id" not in config:
        raise ConfigError("The node config names neither `data` and `schema` nor a `partition-id`.")
    number = int(config["partition-id"])
    return node_table(settings, number), number


def own_source(config: Mapping[str, Any]) -> DataSource:
    """The file or database that a node config names."""
    missing = str(config.get("missing", "error"))
    if missing not in get_args(MissingPolicy):
        raise ConfigError(f"`missing` must be one of: {', '.join(get_args(MissingPolicy))}.")
    return DataSource(
        data=(str(config["data"]),),
        schema=str(config["schema"]),
        query=str(config.get("query", "")),
        missing=cast("MissingPolicy", missing),
    )


@lru_cache(maxsize=1)
def _read_once(source: DataSource, run: int) -> Table:  # noqa: ARG001  a run reads it once
    """The table of a database as a run first found it; if it changed meanwhile, counts and release would differ."""
    return source.load()


def node_table(settings: RunSettings, number: int) -> Table:
    """The rows of one node of a simulation."""
    if number >= n_parts(settings):
        raise ConfigError(f"The data set has {n_parts(settings)} parts; there is no part {number}.")
    data = data_of(settings)
    if settings.partition == STORED and isinstance(data, str):
        return load(data, node=number)
    rows = partition_rows(data, settings.partition, settings.nodes, settings.seed)[number]
    return whole_table(data).select_rows(rows)


def n_parts(settings: RunSettings) -> int:
    """Number of nodes a simulation has."""
    data = data_of(settings)
    if settings.partition == STORED and isinstance(data, str):
        return settings.nodes
    return len(partition_rows(data, settings.partition, settings.nodes, settings.seed))


class NamesData(Protocol):
    """Settings that say which table is meant: a data set by name, or an own source."""

    @property
    def dataset(self) -> str:
        """A name."""

    @property
    def source(self) -> Mapping[str, Any]:
        """Where an own table lies; empty for a data set."""


def data_of(settings: NamesData) -> str | DataSource:
    """The data set of a run by name, or the own table it is about."""
    return DataSource.from_settings(settings.source).as_found() if settings.source else settings.dataset


def default_partition(source: Mapping[str, Any]) -> str:
    """How rows are dealt out where nothing is said: a source in parts keeps them."""
    return STORED if source and DataSource.from_settings(source).has_parts else RunSettings.partition


@lru_cache(maxsize=8)
def whole_table(data: str | DataSource) -> Table:
    """A data set or an own table, loaded once per process and again if its files changed."""
    return load(data) if isinstance(data, str) else data.load()


@lru_cache(maxsize=16)
def partition_rows(data: str | DataSource, partition: str, nodes: int, seed: int) -> tuple[NDArray[np.int64], ...]:
    """The rows of every node; the same in every process."""
    if partition == STORED and not isinstance(data, str):
        return data.parts()
    rng = np.random.default_rng([seed, *b"partition"])
    # a partition by a column has as many nodes as the column has values
    wanted = None if partition.startswith("by:") else nodes
    return tuple(parse_partition(partition)(_dividable(data, partition), wanted, rng))


def _dividable(data: str | DataSource, partition: str) -> Table:
    """The table with the column it is divided by, also one that it drops; it is used for the partition alone."""
    table = whole_table(data)
    column = partition_column(partition)
    if isinstance(data, str) or column is None or column in table.frame:
        return table
    if column not in table.schema.names:
        raise ConfigError(f"The schema declares no column {column!r} to divide the rows by.")
    return replace(table, frame=table.frame.assign(**{column: data.column(column).to_numpy()}))


@lru_cache(maxsize=8)
def provenance(data: DataSource) -> Mapping[str, Any]:
    """Names and hashes of an own table, for the result of a run."""
    return data.provenance(whole_table(data))
