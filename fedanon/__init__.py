"""fedanon: anonymise tabular health data where they are, then learn across hospitals."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedanon._version import __version__

if TYPE_CHECKING:
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.data.schema import Schema
    from fedanon.data.table import Table
    from fedanon.release.release import Release

#: public names and where they live; loaded on first use, so that `import fedanon` is instant
_LAZY = {
    "ANONYMIZERS": "fedanon.anonymizers",
    "Release": "fedanon.release.release",
    "Schema": "fedanon.data.schema",
    "Table": "fedanon.data.table",
}

__all__ = ["ANONYMIZERS", "Release", "Schema", "Table", "__version__"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'fedanon' has no attribute {name!r}")
