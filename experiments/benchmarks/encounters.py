"""From a hospital's file to a report: Diabetes 130, 101,766 encounters, through the commands a steward uses.

The original file is written to a temporary folder; `schema infer` proposes a schema, the few roles it leaves undecided
become insensitive, `anonymize` runs anneal for ten seconds, `report --privacy` attacks the release. Each command is a
process of its own; its seconds, CPU seconds and peak memory are printed and stored in experiments/results/.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from speed import show

from fedanon.datasets.diabetes import FILE
from fedanon.datasets.files import bundled_bytes

RESULTS = Path(__file__).parents[1] / "results" / "encounters_speed.json"
COMMANDS = {
    "infer": "schema infer encounters.csv -o proposed.toml",
    "anonymize": "anonymize encounters.csv --schema schema.toml --method anneal --set seconds=10 --k 10 "
    "--missing category -o released.csv --row-key rows.json",
    "report": "report --privacy released.csv --original encounters.csv --row-key rows.json -o report.html",
}


def measured(command: str, folder: Path) -> dict[str, float]:
    """Run one command; what it took is the difference in what finished children took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "fedanon.cli", *command.split()], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # the largest child so far: it grows from command to command or stays
    return {"seconds": time.perf_counter() - start, "cpu_seconds": cpu, "peak_mb": after.ru_maxrss / 1024}


def main() -> None:
    """Measure the three commands one after the other."""
    runs: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "encounters.csv").write_bytes(bundled_bytes(FILE))
        for what, command in COMMANDS.items():
            runs[what] = measured(command, folder)
            if what == "infer":
                proposed = (folder / "proposed.toml").read_text(encoding="utf-8")
                (folder / "schema.toml").write_text(proposed.replace('"undecided"', '"insensitive"'), encoding="utf-8")
    total = {
        "seconds": sum(run["seconds"] for run in runs.values()),
        "cpu_seconds": sum(run["cpu_seconds"] for run in runs.values()),
        "peak_mb": max(run["peak_mb"] for run in runs.values()),
    }
    rows = [[what, *run.values()] for what, run in (runs | {"all": total}).items()]
    show("Diabetes 130, 101,766 encounters", ["command", "seconds", "CPU seconds", "peak MB so far"], rows)
    machine = {"processor": platform.machine(), "cores": os.cpu_count()}
    RESULTS.write_text(json.dumps({"machine": machine, "commands": runs, "all": total}, indent=1) + "\n")


if __name__ == "__main__":
    main()
