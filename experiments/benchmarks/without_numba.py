"""What a node would cost without numba: kernels compiled now, compiled before, and as the Python they are written in.

For every method that the policy of `fedanon node init` allows, a process of its own anonymizes a part of Adult and
works out what a node reports. `python experiments/benchmarks/without_numba.py` prints CPU seconds and peak memory.
Without numba means: its module is replaced by one whose decorators do nothing, so that it is neither loaded nor used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

METHODS = ("mondrian", "gfkmc", "wkmca", "k_member", "tdg", "full_domain")
STUB = {
    "__init__.py": "def njit(f=None, **_):\n    return f if f is not None else lambda g: g\n",
    "extending.py": "def overload(*_, **__):\n    return lambda f: f\n",
}
TASK = """
import resource, sys, time
import numpy as np
from fedanon.datasets import load
from fedanon.learning.node import Node
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.settings import RunSettings
whole, rows = load("adult"), int(sys.argv[2])
table = whole.select_rows(np.sort(np.random.default_rng(0).permutation(len(whole))[:rows]))
rules = NodeRules(secret=b"0" * 32, scores="release", test_k=5, min_test=50)
node = Node(table, RunSettings(method=sys.argv[1], method_settings={"k": 5}, model="lr"), 0, rules)
begin = time.process_time()
node.release, node.data, node.released_test, node.facts
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{time.process_time() - begin:.1f} CPU s, {peak:.0f} MB")
"""


def measure(method: str, rows: int, seconds: float, environment: dict[str, str]) -> str:
    """What a process that prepares a node says."""
    command = [sys.executable, "-c", TASK, method, str(rows)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"more than {seconds:g} s"
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


def main() -> None:
    """Measure every method and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=7_500)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        stub = Path(name) / "stub" / "numba"
        stub.mkdir(parents=True)
        for file, text in STUB.items():
            (stub / file).write_text(text, encoding="utf-8")
        base = {**os.environ, "NUMBA_CACHE_DIR": f"{name}/cache"}
        path = os.pathsep.join(filter(None, [str(stub.parent), os.environ.get("PYTHONPATH")]))
        for method in chosen.methods:
            for how, environment in (
                ("compiled now", base),
                ("compiled before", base),
                ("plain Python", {**base, "PYTHONPATH": path}),
            ):
                print(f"{method}, {how}: {measure(method, chosen.rows, chosen.seconds, environment)}", flush=True)


if __name__ == "__main__":
    main()
