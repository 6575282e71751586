"""Compiling the kernels of record streams in a process of its own, whose memory is given back before a gateway starts.

The compiler takes more memory than a gateway and all that waits in it; a kernel that was compiled before is loaded from
numba's cache. A gateway whose kernels are not there has a child compile them. A wrong guess costs no more than that:
the child finds them and ends, or the gateway compiles by itself.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from fedanon.data.schema import Schema

log = logging.getLogger("fedanon.streams")

_HERE = Path(__file__).parent
_SOURCES = (_HERE / "_buffer.py", _HERE / "_deadlines.py", _HERE.parent / "kernels" / "spans.py")


def compile_apart() -> None:
    """Have a child compile the kernels, unless they are in the cache."""
    if _are_compiled():
        return
    log.info("Compiling kernels; that happens once, and takes a minute.")
    done = subprocess.run([sys.executable, "-m", __name__], check=False, capture_output=True)
    if done.returncode:
        log.warning("Kernels could not be compiled beforehand; the gateway compiles them, and takes more memory.")


def _are_compiled() -> bool:
    """Whether numba's cache holds kernels that are not older than their sources."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(chosen)] if chosen else [_HERE / "__pycache__", Path.home() / ".cache" / "numba"]
    changed = max(source.stat().st_mtime for source in _SOURCES)
    found = [file for folder in folders for file in folder.rglob("_deadlines.run-*.nbi")]
    return any(file.stat().st_mtime >= changed for file in found)


def compile_kernels() -> None:
    """Run a stream of a few records, so that everything is compiled and in the cache."""
    from fedanon.streams.base import NOBODY, Arrivals
    from fedanon.streams.methods.prospect import Prospect
    from fedanon.streams.space import coded_columns

    attributes = {
        "a": {"role": "quasi_identifying", "type": "numeric", "range": [0, 9]},
        "b": {"role": "quasi_identifying", "type": "categorical", "values": ["x", "y"]},
    }
    engine = Prospect(k=2, delay=4).start(coded_columns(Schema.from_dict({"attributes": attributes})))
    points = np.array([[float(i), float(i % 2)] for i in range(9)])
    engine.feed(Arrivals(points, np.full(9, NOBODY), np.zeros(9), {}))
    engine.finish()


if __name__ == "__main__":
    compile_kernels()
