"""Memory of a deployed node: a server and a node on this machine, started by their own commands, read from /proc.

Flower starts a process for every message. The first one anonymises the table; those of the rounds find the result in
the node's store.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 3_750  # of which 3,000 are trained on
PATIENCE = 600.0


def measure() -> dict[str, Any]:
    """Largest resident memory, in MB, of a node's processes during ten rounds of LR on 3,000 rows."""
    with tempfile.TemporaryDirectory() as folder:
        _hide_pyarrow(Path(folder) / "hidden")
        server, node = _folders(Path(folder))
        with (Path(folder) / "log").open("wb") as log:
            serving = _start("server", "run", server, log=log)
            taking_part = _start("node", "run", node, log=log)
            try:
                peaks = _watch(taking_part, serving)
            finally:
                for process in (serving, taking_part):
                    process.terminate()
                    process.wait(30)
        if serving.returncode or len(peaks["workers"]) < 2:
            raise SystemExit((Path(folder) / "log").read_text(encoding="utf-8", errors="replace")[-2_000:])
    first, *others = peaks["workers"].values()
    return {
        "training_process_mb": max(others),
        "preparing_process_mb": first,
        "waiting_process_mb": peaks["node"],
        "supernode_mb": peaks["supernode"],
        "messages": len(peaks["workers"]),
    }


def _hide_pyarrow(folder: Path) -> None:
    """An edge node has no pyarrow; where it is installed, as for experiments, pandas loads its 60 MB."""
    folder.mkdir()
    (folder / "pyarrow.py").write_text("raise ImportError('not part of an edge node')\n", encoding="utf-8")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


def _folders(folder: Path) -> tuple[Path, Path]:
    import tomli_w

    from fedanon.datasets import load

    table = load("adult").select_rows(np.arange(ROWS))
    table.frame.to_csv(folder / "data.csv", index=False)
    schema = table.schema.to_dict()
    # identifying columns do not come past the border of a table
    schema["attributes"] = {name: how for name, how in schema["attributes"].items() if name in table.frame}
    (folder / "schema.toml").write_text(tomli_w.dumps(schema), encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server, node = folder / "server", folder / "node"
    _run("server", "init", server, "--port", port, "--nodes", 1)
    files = ("--data", folder / "data.csv", "--schema", folder / "schema.toml", "--ca", server / "ca.crt")
    _run("node", "init", node, "--server", f"127.0.0.1:{port}", *files)
    _run("server", "register", server, node / "node.pub", "--name", "edge")
    return server, node


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "fedanon.cli", *map(str, arguments)]


def _run(*arguments: object) -> None:
    subprocess.run(_command(*arguments), check=True, capture_output=True)


def _start(*arguments: object, log: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(_command(*arguments), stdout=log, stderr=log)


def _watch(taking_part: subprocess.Popen[bytes], serving: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Peaks of the node's process, of its SuperNode, and of its workers in the order they were seen."""
    node = taking_part.pid
    own = _read(node, "cmdline")
    workers: dict[int, float] = {}
    other: dict[str, float] = {"node": 0.0, "supernode": 0.0}
    end = time.monotonic() + PATIENCE
    while serving.poll() is None and taking_part.poll() is None and time.monotonic() < end:
        other["node"] = max(other["node"], _peak(node))
        for child in _read(node, f"task/{node}/children").split():
            pid, peak = int(child), _peak(int(child))
            if _read(pid, "cmdline") == own:
                workers[pid] = max(workers.get(pid, 0.0), peak)
            else:
                other["supernode"] = max(other["supernode"], peak)
        time.sleep(0.01)
    return {**other, "workers": workers}


def _peak(process: int) -> float:
    lines = [line for line in _read(process, "status").splitlines() if line.startswith("VmHWM")]
    return float(lines[0].split()[1]) / 1024 if lines else 0.0


def _read(process: int, file: str) -> str:
    try:
        return Path(f"/proc/{process}/{file}").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended
        return ""


if __name__ == "__main__":
    print(measure())
