"""Where numbers come from: versions and machine, for the manifest of a result set."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import fedanon

#: packages whose version may change a number
PACKAGES = ("numpy", "numba", "pandas", "scipy", "scikit-learn", "xgboost", "xgboost-cpu", "torch", "flwr", "ray")


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
