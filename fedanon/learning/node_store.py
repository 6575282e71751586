"""A node's private store: its table is anonymized once, though Flower starts a process for every message.

What is kept is a prepared node: its release, features and facts, not its raw table. The entry's name is a hash of all
it depends on, so a changed table or setting never meets an old entry; one that is damaged or open to others is
made again. The training state is not kept: an empty one is always right.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import stat
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from fedanon._version import __version__
from fedanon.data.cells import Cells
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.io.atomic import atomic_write
from fedanon.io.manifest import file_sha256
from fedanon.io.sql import is_database
from fedanon.learning.node import Node
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.release.release import Release
from fedanon.types import IntArray

DIGEST_BYTES = 32


class NodeStore:
    """Prepared nodes in a folder that only its owner can open.

    Parameters
    ----------
    folder : of the store.
    data : what identifies the node's table.
    schema : file of its schema.
    more : other settings of the node its preparation depends on.
    seeded : whether it depends on the run's seed; not, where the node has a secret of its own.
    """

    def __init__(self, folder: Path, data: str, schema: Path, more: Mapping[str, Any], *, seeded: bool = True) -> None:
        self._folder = folder
        self._data = data
        self._schema = schema
        self._more = dict(more)
        self._seeded = seeded

    @classmethod
    def of(cls, config: Mapping[str, Any], *, seeded: bool = True, **others: Any) -> NodeStore | None:
        """The store a node config names, if it names one; ``others`` are more the preparation depends on."""
        if not config.get("store") or "data" not in config:
            return None
        more = {name: config.get(name) for name in ("number", "missing")} | others
        folder, schema = (Path(str(config[name])) for name in ("store", "schema"))
        return cls(folder, identify_data(config), schema, more, seeded=seeded)

    def node(self, settings: RunSettings, make: Callable[[], Node]) -> Node:
        """The prepared node, from the store or made now and kept."""
        path = self._folder / self._name(settings)
        node = _read(path)
        if node is None:
            node = make()
            self._keep(path, node)
        # rounds and strategy may be others: the preparation does not depend on them, the model's proximal term does
        node.settings, node.model = settings, make_model(settings, node.outcome)
        return node

    def _keep(self, path: Path, node: Node) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        buffer = io.BytesIO()
        _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(node)
        content = buffer.getvalue()
        atomic_write(path, hashlib.sha256(content).digest() + content, mode=0o600)

    def _name(self, settings: RunSettings) -> str:
        depends = {
            "data": self._data,
            "schema": Schema.read(self._schema).sha256,
            "settings": settings.tagged(prepares=True) | ({} if self._seeded else {"seed": 0}),
            "node": self._more,
            "version": __version__,
        }
        return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:32] + ".node"


def identify_data(config: Mapping[str, Any]) -> str:
    """What the releases of a node are counted by: the content of its file, or a database's address and query.

    The rows of a database may change between two runs without anybody's doing, so that releases of all its states
    count together; a file counts anew once somebody has replaced it.
    """
    place = str(config["data"])
    if not is_database(place):
        return file_sha256(Path(place))
    return hashlib.sha256(f"{place}\0{config.get('query', '')}".encode()).hexdigest()


class NoRecoding:
    """The recoding of a stored release: its test rows are recoded already, and a recoding may hold raw rows."""

    columnwise: ClassVar[bool] = False

    def apply(self, release: Release, table: Table) -> tuple[IntArray, Mapping[str, Cells]]:
        """Not possible any more."""
        raise InfeasibleError("A stored release cannot recode new rows.")


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Releases lose their recoding; everything else is kept as it is."""
        if isinstance(value, Release) and not isinstance(value.recoding, NoRecoding):
            return _same, (replace(value, recoding=NoRecoding()),)
        return NotImplemented


def _same(value: Any) -> Any:
    return value


def _read(path: Path) -> Node | None:
    """The entry, or None where there is none that can be trusted."""
    try:
        if not (_is_private(path.parent) and _is_private(path)):
            return None
        data = path.read_bytes()
        digest, content = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
        if hashlib.sha256(content).digest() != digest:
            return None
        node = pickle.loads(content)
    except Exception:  # a file of another version can fail in any way
        return None
    return node if isinstance(node, Node) else None


def _is_private(path: Path) -> bool:
    """Owned by this user and closed to others: loading an entry of someone else's would run their code."""
    if os.name == "nt":
        return True
    found = path.stat()
    return found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
