"""What somebody else's app is given of a node's table: the verified release, encoded by the schema, and nothing else.

In the app::

    from fedanon.federated.gate import load_release

    release = load_release()
    x, y = release.train.features, release.train.target
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fedanon.errors import ConfigError
from fedanon.types import AnyArray, FeatureArray

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.learning.node import Node
    from fedanon.release.release import Release

_handed: ContextVar[Released] = ContextVar("released")
_NAMES = "names"


@dataclass(frozen=True, eq=False)
class ReleasedPart:
    """The training people, or the tested ones; rows are in an order that says nothing.

    Parameters
    ----------
    features : what the schema's encoding makes of the released cells: all numbers between 0 and 1.
    target : classes 0, 1, ..., or a number scaled to its declared range.
    columns : names of the columns that features and target are made of.
    texts : their released cells as they are published, as JSON: :attr:`frame` reads them.
    """

    features: FeatureArray
    target: AnyArray
    columns: list[str]
    texts: bytes

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The released cells as they are published, and the target."""
        import pandas as pd  # as long again as all the rest, and few apps look at texts

        return pd.DataFrame(json.loads(self.texts), columns=self.columns)

    def __len__(self) -> int:
        return len(self.target)

    def to_torch(self, *names: str) -> Any:
        """A `TensorDataset` of features and target; or rows that are dicts with these two names, as those of Flower's
        own data sets are.
        """
        import torch
        from torch.utils.data import TensorDataset

        whole = np.issubdtype(self.target.dtype, np.integer)
        target = torch.tensor(self.target, dtype=torch.int64 if whole else torch.float32)
        rows = TensorDataset(torch.tensor(self.features), target)
        return [dict(zip(names, row, strict=True)) for row in zip(*rows.tensors, strict=True)] if names else rows

    def to_sklearn(self, names: list[str]) -> Any:
        """A `Bunch` as scikit-learn's own data sets are."""
        from sklearn.utils import Bunch

        return Bunch(data=self.features, target=self.target, frame=self.frame, feature_names=names)


@dataclass(frozen=True, eq=False)
class Released:
    """The release of one node.

    Parameters
    ----------
    train : the training people.
    test : a k-anonymous release of the tested people; empty where the node's policy has none.
    feature_names : of the columns of `features`, the same at every node with the same schema.
    classes : the values of the target that 0, 1, ... stand for; none for a number.
    """

    train: ReleasedPart
    test: ReleasedPart
    feature_names: list[str]
    classes: list[str]

    @classmethod
    def of_node(cls, node: Node) -> Released:
        """The release of a node; the tested people as a release of their own, where its rules score on one."""
        from fedanon.models.target import class_values

        train = _part(node, node.release, "hand over")
        test = _part(node, node.test_release, "hand over test") if node.rules.scores == "release" else _none_of(train)
        return cls(train, test, list(node.encoding.names), list(class_values(node.schema)))

    def to_bytes(self) -> bytes:
        """For another process: numbers and texts, nothing that is executed on reading."""
        names = {"features": self.feature_names, "classes": self.classes, "columns": self.train.columns}
        stored = {_NAMES: _as_array(json.dumps(names).encode())}
        for name, part in (("train", self.train), ("test", self.test)):
            stored |= {f"{name}_features": part.features, f"{name}_target": part.target}
            stored[f"{name}_texts"] = _as_array(part.texts)
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **stored)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Released:
        """As it was stored."""
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            names = json.loads(stored[_NAMES].tobytes())
            parts = (
                ReleasedPart(
                    stored[f"{name}_features"],
                    stored[f"{name}_target"],
                    names["columns"],
                    stored[f"{name}_texts"].tobytes(),
                )
                for name in ("train", "test")
            )
            train, test = parts
            return cls(train, test, names["features"], names["classes"])


def load_release() -> Released:
    """The release this app is given by the gate it runs behind.

    Raises
    ------
    ConfigError
        If it runs behind none.
    """
    try:
        return _handed.get()
    except LookupError:
        raise ConfigError(
            "There is no release here: the app runs behind no gate. Have the node's people allow it "
            "(`fedanon node allow`), or put fedanon_gate(...) among the mods of its ClientApp."
        ) from None


@contextmanager
def handed_over(release: Released) -> Iterator[None]:
    """Inside, :func:`load_release` returns it."""
    token = _handed.set(release)
    try:
        yield
    finally:
        _handed.reset(token)


def _part(node: Node, release: Release, purpose: str) -> ReleasedPart:
    """Rows that are not suppressed, shuffled: the order of a hospital's file may say who is who."""
    from fedanon.models.target import target

    kept = np.flatnonzero(~release.suppressed)
    order = node.draw_order(purpose, len(kept))
    shown = [attribute.name for attribute in node.encoding.attributes]
    shown += [name for name in (node.schema.target,) if name and name not in shown]
    frame = replace(release, in_group_order=False).to_frame()[shown].iloc[kept[order]]
    texts = json.dumps(frame.astype(str).to_numpy().tolist()).encode()
    return ReleasedPart(
        node.encoding.encode_release(release)[order], target(release, release.schema)[order], shown, texts
    )


def _none_of(part: ReleasedPart) -> ReleasedPart:
    return ReleasedPart(part.features[:0], part.target[:0], part.columns, b"[]")


def _as_array(data: bytes) -> AnyArray:
    return np.frombuffer(data, dtype=np.uint8)
