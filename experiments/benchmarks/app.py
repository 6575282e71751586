"""Speed and memory of `fedanon app`: first page, a table of 100,000 rows shown, a preview of a slider, memory.

Run it with `python experiments/benchmarks/app.py`; it prints one JSON object. Every time is given twice: on the wall,
where a machine that is busy with other work makes it longer, and in CPU seconds of all processes of the app.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np

ROWS = 100_000
READ = re.compile(r'name="csrf" value="(\w+)"')


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = write_table(Path(folder) / "table.csv")
        begun = time.perf_counter()
        words = [sys.executable, "-m", "fedanon.cli", "app", f"{folder}/project", "--no-browser"]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        address = re.findall(r"http\S+", server.stdout.readline())[0]
        try:
            print(json.dumps(measure(server.pid, address, table, begun), indent=2))
        finally:
            server.terminate()
            server.wait()


def write_table(path: Path) -> Path:
    """Ages, sexes, postal codes, dates of admission, diagnoses and more of people that do not exist."""
    rng = np.random.default_rng(0)
    codes = np.array(["E11", "I10", "J18", "C50", "N39", "K35", "F32", "S72"])
    days = np.datetime64("2024-01-01") + rng.integers(0, 365, ROWS)
    columns = [
        rng.integers(0, 95, ROWS).astype(str),
        np.array(["F", "M"])[rng.integers(0, 2, ROWS)],
        (10_000 + rng.integers(0, 400, ROWS) * 100).astype(str),
        days.astype(str),
        codes[rng.integers(0, 8, ROWS)],
        *(rng.normal(100, 15, ROWS).round(1).astype(str) for _ in range(7)),
    ]
    head = "age,sex,postal_code,admitted,diagnosis,pulse,weight,height,glucose,sodium,creatinine,bilirubin"
    path.write_text("\n".join([head, *map(",".join, zip(*columns, strict=True))]) + "\n", encoding="utf-8")
    return path


def measure(pid: int, address: str, table: Path, begun: float) -> dict[str, object]:
    base = address.split("/start")[0]
    found: dict[str, object] = {"load": os.getloadavg()[0]}
    with httpx.Client(base_url=base, timeout=600, headers={"Origin": base}) as client:
        client.get(address)
        csrf = READ.findall(client.get("/open").text)[0]
        found["first_page"] = {"wall": time.perf_counter() - begun, "cpu": cpu_seconds(pid)}
        client.get("/open/examples")  # the helper process is warm

        def post(path: str, **form: str) -> httpx.Response:
            answer = client.post(path, data={"csrf": csrf, **form})
            assert answer.status_code < 400, re.findall(r'role="alert".*?</div>', answer.text, re.DOTALL)
            return answer

        with timed(pid, found, "table_shown"):
            post("/open/place", place=str(table))
            client.get("/open").raise_for_status()
        with timed(pid, found, "columns"):
            post("/columns/propose")
            client.get("/columns").raise_for_status()
        roles = ["quasi_identifying"] * 4 + ["sensitive"] + ["insensitive"] * 7
        with timed(pid, found, "roles_saved"):
            post("/columns", next="1", **{f"role_{i}": role for i, role in enumerate(roles)})
        for k in range(4, 11):
            with timed(pid, found, f"preview_k{k}"):
                assert "tiles" in post("/protect/preview", method="mondrian", k=str(k)).text
        found["idle_megabytes"] = most = tree_megabytes(pid)
        with timed(pid, found, "release"):
            post("/protect", method="mondrian", k="5")
            while client.get("/result").headers["location"] == "/protect":
                most = max(most, tree_megabytes(pid))
                time.sleep(0.1)
        found["peak_megabytes"] = max(most, tree_megabytes(pid))
    return found


@contextmanager
def timed(pid: int, found: dict[str, object], name: str) -> Iterator[None]:
    """Note how long the block takes, on the wall and in CPU seconds of the app."""
    wall, cpu = time.perf_counter(), tree_cpu_seconds(pid)
    yield
    found[name] = {"wall": time.perf_counter() - wall, "cpu": tree_cpu_seconds(pid) - cpu}


def tree_megabytes(pid: int) -> float:
    """Proportional memory of the server and all it started: pages that are shared count once."""
    total = 0
    for one in [pid, *children(pid)]:
        try:
            text = Path(f"/proc/{one}/smaps_rollup").read_text(encoding="utf-8")
        except OSError:
            continue
        total += int(re.findall(r"^Pss:\s+(\d+)", text, re.MULTILINE)[0])
    return total / 1024


def children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += [int(one) for one in (task / "children").read_text(encoding="utf-8").split()]
        except OSError:
            continue
    return [*found, *(below for one in found for below in children(one))]


def cpu_seconds(pid: int, fields: slice = slice(11, 13)) -> float:
    """CPU seconds of one process; with four fields also of what it had started and has ended."""
    found = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, found[fields])) / os.sysconf("SC_CLK_TCK")


def tree_cpu_seconds(pid: int) -> float:
    """CPU seconds of the server and all it started."""
    return sum(cpu_seconds(one, slice(11, 15)) for one in [pid, *children(pid)])


if __name__ == "__main__":
    main()
