"""The data sets fedanon knows by name; each module registers some. Use them through :mod:`fedanon.data.datasets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fedanon.data.table import Table
from fedanon.registry import Registry


@dataclass(frozen=True)
class Source:
    """A file that can be downloaded."""

    url: str
    sha256: str


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
    clients : number of clients it is divided into by nature; 0 if it is not.
    read_client : makes the table of one client.
    sources : download address of each file that :func:`fedanon.data.datasets.fetch` may get.
    """

    title: str
    rows: int
    licence: str
    read: Callable[[], Table]
    files: tuple[str, ...]
    bundled: bool = False
    clients: int = 0
    read_client: Callable[[int], Table] | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)


DATASETS: Registry[Dataset] = Registry("data set", __name__, group="fedanon.datasets")
