"""Speed and memory of `fedanon app`: first page, a table of 100,000 rows shown, a preview of a slider, memory.

Run it with `python experiments/benchmarks/app.py`; it prints one JSON object. Times are of the wall, so a machine that
is busy with other work makes them longer; the CPU seconds of the server until its first page are given beside them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
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
        first = client.get("/open")
        found["first_page_seconds"] = time.perf_counter() - begun
        found["first_page_cpu_seconds"] = cpu_seconds(pid)
        csrf = READ.findall(first.text)[0]
        client.get("/open/examples")  # the helper process is warm
        before = time.perf_counter()
        client.post("/open/place", data={"csrf": csrf, "place": str(table)}, follow_redirects=True).raise_for_status()
        found["table_shown_seconds"] = time.perf_counter() - before
        before = time.perf_counter()
        client.post("/columns/propose", data={"csrf": csrf}, follow_redirects=True).raise_for_status()
        found["columns_seconds"] = time.perf_counter() - before
        roles = ["quasi_identifying"] * 4 + ["sensitive"] + ["insensitive"] * 7
        form = {f"role_{i}": role for i, role in enumerate(roles)}
        answer = client.post("/columns", data={"csrf": csrf, "next": "1", **form})
        assert answer.status_code == 303, re.findall(r'<p lang="en">(.*?)</p>', answer.text)
        found["preview_seconds"] = [preview(client, csrf, k) for k in (4, 5, 6, 7, 8, 9, 10)]
        found["idle_megabytes"] = tree_megabytes(pid)
        found["release_seconds"], found["peak_megabytes"] = release(client, csrf, pid)
    return found


def preview(client: httpx.Client, csrf: str, k: int) -> float:
    """Seconds between a slider and its numbers."""
    before = time.perf_counter()
    text = client.post("/protect/preview", data={"csrf": csrf, "method": "mondrian", "k": str(k)}).text
    assert "tiles" in text, text
    return time.perf_counter() - before


def release(client: httpx.Client, csrf: str, pid: int) -> tuple[float, float]:
    """Seconds of a whole release, and the most memory that all processes had together meanwhile."""
    before, most = time.perf_counter(), 0.0
    assert client.post("/protect", data={"csrf": csrf, "method": "mondrian", "k": "5"}).status_code == 303
    while client.get("/result").headers["location"] == "/protect":
        most = max(most, tree_megabytes(pid))
        time.sleep(0.1)
    return time.perf_counter() - before, max(most, tree_megabytes(pid))


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


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
