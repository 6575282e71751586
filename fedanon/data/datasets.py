"""Data sets by name: load one, list what is known, fetch what may be downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fedanon.data.catalog import DATASETS, Dataset
from fedanon.data.catalog.files import FOLDER_VARIABLE, download, find
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set before it is loaded."""

    name: str
    title: str
    rows: int
    licence: str
    bundled: bool
    available: bool
    files: tuple[str, ...]


def load(name: str, *, client: int | None = None) -> Table:
    """Load a data set.

    Parameters
    ----------
    name : one of :func:`describe`.
    client : for a data set that is divided by nature, the number of a client; by default all are put together.

    Raises
    ------
    DataError
        If a file is not at hand or damaged; the message says what to do.
    """
    dataset = DATASETS[name]
    if client is None:
        return dataset.read()
    if dataset.read_client is None or not 0 <= client < dataset.clients:
        kinds = f"clients 0 to {dataset.clients - 1}" if dataset.clients else "no clients of its own"
        raise ConfigError(f"The data set {name!r} has {kinds}. Got client={client}.")
    return dataset.read_client(client)


def describe() -> list[DatasetInfo]:
    """All data sets, sorted by name, and whether their files are at hand."""
    return [
        DatasetInfo(name, d.title, d.rows, d.licence, d.bundled, d.bundled or _at_hand(d), d.files)
        for name, d in DATASETS.items()
    ]


def fetch(name: str) -> list[Path]:
    """Download the files of a data set into the user's cache; each is checked against its pinned SHA-256."""
    dataset = DATASETS[name]
    if dataset.bundled:
        return []
    if not dataset.sources:
        raise DataError(
            f"The data set {name!r} cannot be downloaded by fedanon. "
            f"Set the environment variable {FOLDER_VARIABLE} to a folder that holds: {', '.join(dataset.files)}."
        )
    return [download(file, source) for file, source in dataset.sources.items()]


def _at_hand(dataset: Dataset) -> bool:
    """Whether the files, or those that can be downloaded in their place, are there."""
    ways = [dataset.files, tuple(dataset.sources)]
    return any(way and all(find(file) is not None for file in way) for way in ways)
