"""What each extra installs: megabytes per distribution, import time, and whether there are wheels for aarch64.

`python experiments/benchmarks/install_size.py` prints the tables of docs/how-to/edge.md; with `--aarch64` it also asks
the package index for binary wheels of the installed versions, and prints the platform of each. All extras must be
installed (`make .venv/installed`): a distribution that is missing would make its extra look smaller, so it is an error.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
#: extras in the order of the table, each with a module that those who install it load; '' is fedanon without extras
EXTRAS = {
    "": "fedanon.anonymizers.base",
    "stream": "fedanon.streams.gateway",
    "harness": "fedanon.harness.runner",
    "edge": "fedanon.federated.client",
    "edge-dp": "fedanon.federated.client",
    "federated": "fedanon.federated.simulation",
    "app": "fedanon.app.server",
    "all": "fedanon.cli.app",
}
#: those of small machines, whose wheels for aarch64 are looked up
NODES = ("stream", "edge", "edge-dp")
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")
LARGE_MB = 8.0
SHOWN = 6


def needed(extra: str) -> dict[str, Distribution]:
    """The distributions of an extra and all they need, by their normalized names."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = [Requirement(text) for text in _texts(project, extra)]
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        name = _normal(requirement.name)
        for part in ("", *requirement.extras):
            if (name, part) in seen:
                continue
            seen.add((name, part))
            found[name] = distribution(name)
            for text in found[name].requires or []:
                inner = Requirement(text)
                if inner.marker is None or inner.marker.evaluate({"extra": part}):
                    waiting.append(inner)
    return found


def _texts(project: dict[str, list[str]], extra: str) -> list[str]:
    """Requirements of an extra, those that name other extras of this project written out."""
    texts = list(project["dependencies"])
    for text in project["optional-dependencies"][extra] if extra else []:  # type: ignore[call-overload]
        own = re.fullmatch(r"fedanon\[(.+)\]", text)
        texts += [t for part in own.group(1).split(",") for t in _texts(project, part)] if own else [text]
    return texts


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def megabytes(found: Distribution) -> float:
    """As its wheel was unpacked, without compiled Python: xgboost and xgboost-cpu overwrite each other's files here."""
    return sum(file.size or 0 for file in found.files or [] if file.suffix != ".pyc") / 2**20


def import_seconds(module: str, runs: int = 5) -> float:
    """CPU seconds that a new process spends on importing a module: the least of several runs."""
    return max(_cpu(f"import {module}", runs) - _cpu("pass", runs), 0.0)


def _cpu(code: str, runs: int) -> float:
    spent = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def aarch64_platform(found: Distribution) -> str:
    """The platform of a wheel of this version for aarch64, "any" if it is for every machine; '' if there is none."""
    if "-any" in (found.read_text("WHEEL") or ""):
        return "any"
    platforms = [option for platform in PLATFORMS for option in ("--platform", platform)]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", *platforms]
        wanted = f"{found.metadata['Name']}=={found.version}"
        subprocess.run([*command, "-d", folder, wanted], capture_output=True, check=False)
        wheels = [path.stem for path in Path(folder).glob("*.whl")]
    return wheels[0].rpartition("-")[2] if wheels else ""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aarch64", action="store_true")
    asked = parser.parse_args()
    print("| extra | distributions | MB | import, CPU s | largest |\n|---|---:|---:|---:|---|")
    on_nodes: dict[str, Distribution] = {}
    for extra, module in EXTRAS.items():
        found = needed(extra)
        if extra in NODES:
            on_nodes |= found
        sizes = {name: megabytes(each) for name, each in found.items()}
        large = sorted((n for n in sizes if sizes[n] > LARGE_MB), key=lambda n: -sizes[n])[:SHOWN]
        shown = ", ".join(f"{name} {sizes[name]:.0f}" for name in large)
        total = f"{len(sizes)} | {sum(sizes.values()):.0f} | {import_seconds(module):.2f}"
        print(f"| {extra or '(none)'} | {total} | {shown} |", flush=True)
    if asked.aarch64:
        print("\n| distribution | version | wheel for aarch64 |\n|---|---|---|")
        for name, each in sorted(on_nodes.items()):
            print(f"| {name} | {each.version} | {aarch64_platform(each) or 'NONE'} |", flush=True)


if __name__ == "__main__":
    main()
