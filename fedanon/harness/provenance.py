"""Where numbers come from: versions, code, data and machine, for the manifest of a result set."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import fedanon

#: packages whose version may change a number
PACKAGES = ("numpy", "numba", "pandas", "scipy", "scikit-learn", "xgboost", "xgboost-cpu", "torch", "flwr", "ray")
#: parts of fedanon that compute numbers
COMPUTING = (
    "data",
    "datasets",
    "privacy",
    "release",
    "anonymizers",
    "metrics",
    "sdc",
    "models",
    "learning",
    "joint",
    "federated",
    "harness/tasks",
)


@lru_cache(maxsize=1)
def code_hash() -> str:
    """SHA-256 over the sources that compute numbers."""
    root = Path(fedanon.__file__).parent
    digest = hashlib.sha256()
    for part in COMPUTING:
        for file in sorted((root / part).rglob("*.py")):
            digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """Versions of Python, fedanon and what it computes with."""
    found = {"python": platform.python_version(), "fedanon": fedanon.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, Any]:
    """The kind of machine, without its name."""
    return {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()}
