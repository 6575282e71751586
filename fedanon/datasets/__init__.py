"""Data sets by name: load one, list what is known, fetch what may be downloaded. Each module here registers some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fedanon.data.table import Table
from fedanon.datasets.files import FOLDER_VARIABLE, Source, download, find
from fedanon.errors import ConfigError, DataError
from fedanon.registry import Registry


@dataclass(frozen=True)
class Dataset:
    """A table by name.

    Parameters
    ----------
    title : one line about it.
    rows : number of rows of the loaded table.
    licence : under which it may be used.
    read : makes the table.
    files : what it is read from, inside the package or the data folder.
    bundled : whether the files come with the package.
    nodes : number of nodes it is divided among by nature; 0 if it is not.
    read_node : makes the table of one node.
    sources : download address of each file that :func:`fetch` may get.
    """

    title: str
    rows: int
    licence: str
    read: Callable[[], Table]
    files: tuple[str, ...]
    bundled: bool = False
    nodes: int = 0
    read_node: Callable[[int], Table] | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)

    @property
    def available(self) -> bool:
        """Whether its files are at hand: bundled, or found as they are or as their downloads."""
        ways = [self.files, tuple(self.sources)]
        return self.bundled or any(way and all(find(file) is not None for file in way) for way in ways)


DATASETS: Registry[Dataset] = Registry("data set", __name__, group="fedanon.datasets")


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


def load(name: str, *, node: int | None = None) -> Table:
    """Load a data set.

    Parameters
    ----------
    name : one of :func:`describe`.
    node : for a data set that is divided by nature, the number of a node; by default all are put together.

    Raises
    ------
    DataError
        If a file is not at hand or damaged; the message says what to do.
    """
    dataset = DATASETS[name]
    if node is None:
        return dataset.read()
    if dataset.read_node is None or not 0 <= node < dataset.nodes:
        kinds = f"nodes 0 to {dataset.nodes - 1}" if dataset.nodes else "no nodes of its own"
        raise ConfigError(f"The data set {name!r} has {kinds}. Got node={node}.")
    return dataset.read_node(node)


def describe() -> list[DatasetInfo]:
    """All data sets, sorted by name, and whether their files are at hand."""
    return [
        DatasetInfo(name, d.title, d.rows, d.licence, d.bundled, d.available, d.files) for name, d in DATASETS.items()
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
