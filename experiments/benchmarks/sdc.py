"""Speed of the masking methods for numeric columns: 25,000 and 100,000 rows of ten columns.

    python experiments/benchmarks/sdc.py [method ...]

Five columns are changed given the other five, where a method takes given columns; else all ten. The times are those of
a whole release, verification included, after a small one has compiled what there is to compile. Growth is the time of
four times as many rows; linear growth is 4.
"""

from __future__ import annotations

import sys
import time
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable

SIZES = (25_000, 100_000)
COLUMNS = [f"c{i}" for i in range(10)]
SETTINGS: dict[str, dict[str, Any]] = {
    "distortion": {"significance": 0.0},
    "longitudinal_reverse_mapping": {"periods": ",".join(COLUMNS)},
}


def drawn_table(n: int, seed: int = 0) -> Any:
    """Ten correlated, skewed, positive columns."""
    from fedanon.data.infer import numeric_schema
    from fedanon.data.table import Table

    rng = np.random.default_rng([seed, 2024])
    values = np.exp(rng.standard_normal((n, 10)) @ rng.standard_normal((10, 10)) / 6)
    frame = pd.DataFrame(100 * values, columns=COLUMNS)
    return Table.from_frame(frame, numeric_schema(frame, "all", name="drawn"))


def numeric_methods() -> dict[str, Any]:
    """The registered methods for numeric columns with settings that suit the table, and microaggregation by blocks."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.sdc.methods.longitudinal import LongitudinalReverseMapping
    from fedanon.sdc.methods.numeric import NumericPerturbation
    from fedanon.sdc.methods.rank_methods import ReverseMapping

    kinds = (NumericPerturbation, ReverseMapping, LongitudinalReverseMapping)
    found = {name: _make(name, method) for name, method in ANONYMIZERS.items() if issubclass(method, kinds)}
    return found | {"blocks": ANONYMIZERS["blocks"](k=5, method="mdav", block_size=2_000)}  # type: ignore[call-arg]


def _make(name: str, method: Any) -> Any:
    conditional = "given" in {entry.name for entry in fields(method)}
    return method(**SETTINGS.get(name, {}), **({"columns": ",".join(COLUMNS[:5])} if conditional else {}))


def seconds(method: Any, table: Any) -> float:
    """Time of a release, the best of three: other processes only ever add to it."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        method.anonymize(table, rng=0)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure the methods named on the command line, or all."""
    chosen = {name: m for name, m in numeric_methods().items() if name in sys.argv[1:] or len(sys.argv) == 1}
    tables = [drawn_table(n) for n in SIZES]
    for table in tables:
        table.sha256  # noqa: B018  worked out once a table, whatever the method
    result = RichTable(title="Masking of numbers, ten columns", title_justify="left")
    for title in ("method", *(f"{n:,} rows, s" for n in SIZES), "growth"):
        result.add_column(title, justify="right")
    for name, method in chosen.items():
        method.anonymize(tables[0].select_rows(np.arange(500)), rng=0)  # compiles
        small, large = (seconds(method, table) for table in tables)
        result.add_row(name, f"{small:.2f}", f"{large:.2f}", f"{large / small:.1f}")
    Console(width=100).print(result)


if __name__ == "__main__":
    main()
