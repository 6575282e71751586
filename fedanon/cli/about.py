"""`fedanon --version --verbose`: what is installed, for a report of a bug. No path, no user, no host."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, distribution, version

from fedanon._version import __version__


def describe_installation() -> list[str]:
    """Lines to paste into a report: versions, the machine, which extras are complete, which variables are set."""
    there, absent = _extras()
    variables = sorted(name for name in os.environ if name.startswith("FEDANON_"))
    return [
        f"fedanon {__version__}",
        f"Python {platform.python_version()} ({platform.python_implementation()})",
        f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        "extras: " + (", ".join(there) or "none"),
        "not complete: " + (", ".join(absent) or "none"),
        "packages: " + ", ".join(f"{name} {found}" for name, found in _packages().items()),
        "variables: " + (", ".join(variables) or "none"),
    ]


def _requirements() -> list[tuple[str, str]]:
    """Name of every required package and the extra that asks for it; '' for what is always needed."""
    found = []
    for line in distribution("fedanon").requires or []:
        named, _, condition = line.partition(";")
        name = named.split("[")[0].strip()
        for sign in "<>=!~ (":
            name = name.split(sign)[0]
        extra = condition.partition("extra ==")[2].strip().strip("'\"") if "extra" in condition else ""
        found.append((name, extra))
    return found


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _extras() -> tuple[list[str], list[str]]:
    """The extras whose packages are all there, and the others; those for working on fedanon are left out."""
    needed: dict[str, list[str]] = {}
    for name, extra in _requirements():
        if extra and extra not in ("dev", "docs", "bench") and name != "fedanon":
            needed.setdefault(extra, []).append(name)
    complete = {extra: all(map(_installed, names)) for extra, names in needed.items()}
    return sorted(e for e, whole in complete.items() if whole), sorted(e for e, whole in complete.items() if not whole)


def _packages() -> dict[str, str]:
    names = dict.fromkeys(name for name, extra in sorted(_requirements()) if extra not in ("dev", "docs", "bench"))
    return {name: found for name in names if name != "fedanon" and (found := _installed(name))}
