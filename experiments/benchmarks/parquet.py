"""Memory of anonymising a wide Parquet file: the quasi-identifiers alone against all columns at once.

One million rows of jittered Adult (8 quasi-identifiers) with 20 more columns, half numbers, half texts. Each way runs
Mondrian, writes the release and reports the peak memory of its own process::

    python experiments/benchmarks/parquet.py [--rows 1000000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

K = 5
WIDE = 20


def make(path: Path, n: int) -> None:
    """Write the data, and their schema beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from speed import jittered_adult

    from fedanon.data.schema import FreeText, Role
    from fedanon.data.schema_toml import schema_toml

    table = jittered_adult(n)
    rng = np.random.default_rng(1)
    frame = table.frame.assign(age=table.frame["age"].astype(np.int64))
    words = np.array([f"remark number {i} of a patient's record" for i in range(n // 10 or 1)], dtype=object)
    for i in range(WIDE):
        frame[f"other_{i}"] = rng.normal(size=n) if i % 2 else words[rng.integers(len(words), size=n)]
    others = tuple(FreeText(f"other_{i}", Role.INSENSITIVE) for i in range(WIDE))
    schema = replace(table.schema, attributes=table.schema.attributes + others)
    path.with_suffix(".toml").write_text(schema_toml(schema), encoding="utf-8")
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)


def by_columns(source: Path, _n: int) -> None:
    """Only what the method needs is held."""
    from fedanon.anonymizers.mondrian.method import Mondrian
    from fedanon.data.schema import Schema
    from fedanon.io.parquet_source import ParquetSource
    from fedanon.io.release_file import write_release

    opened = ParquetSource.open(source, Schema.read(source.with_suffix(".toml")))
    table = opened.table()
    out, release = source.with_name("released.parquet"), Mondrian(k=K).anonymize(table, rng=0)
    write_release(release, table, out, source=opened, overwrite=True)


def everything(source: Path, _n: int) -> None:
    """All columns are read, and the release is written from memory."""
    from fedanon.anonymizers.mondrian.method import Mondrian
    from fedanon.data.schema import Schema
    from fedanon.data.table import Table
    from fedanon.io.parquet import read_frame
    from fedanon.io.release_file import write_release

    table = Table.from_frame(read_frame(source), Schema.read(source.with_suffix(".toml")))
    write_release(Mondrian(k=K).anonymize(table, rng=0), table, source.with_name("released.parquet"), overwrite=True)


def nothing(_source: Path, _n: int) -> None:
    """The interpreter with what it imports, and the compiled kernels: what no way can save."""
    from fedanon.anonymizers.mondrian.method import Mondrian
    from fedanon.datasets import load

    Mondrian(k=K).anonymize(load("adult").select_rows(np.arange(1000)), rng=0)


WAYS = {"make": make, "nothing": nothing, "by_columns": by_columns, "everything": everything}


def measured(way: str, source: Path, n: int) -> dict[str, Any]:
    """Seconds and peak memory of one way, in a process of its own, whose parent stays small: a child inherits peaks."""
    command = [sys.executable, __file__, "--way", way, "--source", str(source), "--rows", str(n)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def compare(n: int) -> None:
    """Print what each way needs."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "big.parquet")
        results = {way: measured(way, source, n) for way in WAYS}
        print(f"{n:,} rows, {source.stat().st_size / 2**20:,.0f} MB of Parquet, Mondrian k={K}")
    for way in ("nothing", "by_columns", "everything"):
        print(f"{way:>12}: peak {results[way]['peak_mb']:7,.0f} MB, {results[way]['seconds']:6.1f} s")
    ratio = results["everything"]["peak_mb"] / results["by_columns"]["peak_mb"]
    print(f"Reading everything needs {ratio:.1f} times the memory.")


def main() -> None:
    """Compare the ways, or run one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--way", choices=sorted(WAYS))
    parser.add_argument("--source", type=Path)
    given = parser.parse_args()
    if given.way is None:
        compare(given.rows)
        return
    start = time.perf_counter()
    WAYS[given.way](given.source, given.rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": time.perf_counter() - start, "peak_mb": peak}))


if __name__ == "__main__":
    main()
