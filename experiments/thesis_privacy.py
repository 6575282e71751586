"""The thesis's privacy and loss numbers, published beside ours (figures 6.3 to 6.6, tables 6.1 to 6.4, section 6.1).

Needs FEDANON_DATA (the thesis's client partitions and trees). Usage: python experiments/thesis_privacy.py [SECTION ...]
with sections das, federated, central, mdav; all by default. Tables are written to experiments/results/.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table as RichTable

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.das import Das, elbow
from fedanon.data.datasets import load
from fedanon.data.table import Table
from fedanon.metrics import evaluate

RESULTS = Path(__file__).parent / "results"
SEEDS = range(12)

# stored results of the thesis's code: NCP % (its computation) and linked records, means over ten clients
FEDERATED = {
    "gfkmc": {3: (21.802, 823.2), 5: (21.708, 547.4), 10: (21.969, 287.4), 20: (21.938, 144.4)},
    "mondrian": {3: (15.666, 589.8), 5: (25.508, 316.9), 10: (39.031, 123.3), 20: (56.796, 48.9)},
    "cb": {3: (11.611, 593.0), 5: (19.013, 265.0), 10: (31.764, 86.3), 20: (47.501, 27.0)},
    "tdg": {3: (14.686, 442.9), 5: (22.503, 179.8), 10: (35.005, 50.8), 20: (49.132, 17.5)},
}
# the same for the whole of Adult; the thesis's two most-common rules have identical stored results
CENTRAL: dict[str, tuple[str, dict[str, Any], dict[int, tuple[float, int]]]] = {
    "gfkmc, centroid": (
        "gfkmc",
        {"profile": "thesis", "das": True},
        {2: (23.10, 1968), 20: (22.97, 647), 40: (22.82, 434), 60: (22.85, 333), 80: (22.53, 276), 100: (22.82, 236)},
    ),
    "gfkmc, most common value": (
        "gfkmc",
        {"profile": "thesis", "das": True, "publish": "most_common_value"},
        {2: (23.13, 1960), 20: (23.26, 549), 40: (23.27, 354), 60: (23.34, 267), 80: (23.35, 213), 100: (23.44, 192)},
    ),
    "mondrian": (
        "mondrian",
        {"profile": "thesis"},
        {2: (4.26, 6992), 20: (29.45, 770), 40: (42.24, 308), 60: (47.31, 116), 80: (49.19, 92), 100: (52.14, 75)},
    ),
    "cb": (
        "cb",
        {"profile": "thesis"},
        {2: (2.78, 8559), 20: (22.72, 426), 40: (33.20, 183), 60: (42.58, 99), 80: (44.88, 75), 100: (53.46, 48)},
    ),
    "tdg": (
        "tdg",
        {"profile": "thesis"},
        {2: (3.72, 7081), 20: (25.29, 202), 40: (35.50, 63), 60: (43.12, 25), 80: (47.89, 18), 100: (53.33, 10)},
    ),
}
MEASURES = ("ncp_published", "linkage_thesis", "ncp", "linkage_expected", "truthfulness")


def measured(table: Table, method: str, variant: Mapping[str, Any], k: int, seeds: range) -> pd.DataFrame:
    """One row a seed."""
    anonymizer = ANONYMIZERS[method](k=k, **variant)
    return pd.DataFrame([evaluate(table, anonymizer.anonymize(table, rng=seed), MEASURES) for seed in seeds])


def row(method: str, k: int, published: tuple[float, float], runs: pd.DataFrame) -> dict[str, Any]:
    """Published beside ours."""
    loss, linked = published
    mean = runs.mean()
    return {
        "method": method,
        "k": k,
        "NCP %, published": loss,
        "NCP %, ours": 100 * mean["ncp_published"],
        "NCP difference %": 100 * (100 * mean["ncp_published"] / loss - 1),
        "linked, published": linked,
        "linked, ours": mean["linkage_thesis"],
        "linked difference %": 100 * (mean["linkage_thesis"] / linked - 1),
        "NCP % from originals": 100 * mean["ncp"],
        "true cells %": 100 * mean["truthfulness"],
    }


def federated() -> pd.DataFrame:
    """Figures 6.4 and 6.6: ten clients; means over clients and seeds (Mondrian is deterministic)."""
    clients = [load("adult_thesis", client=i) for i in range(10)]
    rows = []
    for method, by_k in track(list(FEDERATED.items()), description="federated", transient=True):
        seeds = range(1) if method == "mondrian" else SEEDS
        for k, published in by_k.items():
            runs = pd.concat([measured(table, method, {"profile": "thesis"}, k, seeds) for table in clients])
            # the published number is one run's mean over clients: how much does such a mean vary with the seed?
            spread = runs.groupby(level=0)["linkage_thesis"].mean().std()
            rows.append({**row(method, k, published, runs), "linked, sd over seeds": spread})
    return pd.DataFrame(rows)


def central() -> pd.DataFrame:
    """Figures 6.3 and 6.5: the whole of Adult; means over seeds."""
    table = load("adult_thesis_central")
    rows = []
    for label, (method, variant, by_k) in track(list(CENTRAL.items()), description="central", transient=True):
        seeds = range(1) if method == "mondrian" else SEEDS
        rows += [row(label, k, published, measured(table, method, variant, k, seeds)) for k, published in by_k.items()]
    return pd.DataFrame(rows)


def das() -> pd.DataFrame:
    """Section 6.1: number of groups by the elbow, and loss by eq. 6.1."""
    rows = []
    for name, groups, loss, all_columns in (("adult_numeric", "8, 5, 9", 0.033, 15), ("wef", "4, 6, 6", 0.101, 5)):
        table = load(name)
        ours = evaluate(table, Das().anonymize(table, rng=0), ["ncp", "linkage_expected"])
        knees = [elbow(column.values) for column in table.columns if column.values is not None]
        rows.append(
            {
                "data": name,
                "groups, published": groups,
                "groups, ours": ", ".join(map(str, knees)),
                "NCP, published": loss,
                "NCP, ours by eq. 6.1": ours["ncp"],
                "NCP, ours over all columns": ours["ncp"] * len(table.columns) / all_columns,
                "linked, ours": ours["linkage_expected"],
            }
        )
    return pd.DataFrame(rows)


def mdav() -> pd.DataFrame:
    """Microaggregation: IL of MDAV on the three reference sets."""
    rows = []
    for name in ("tarragona", "census", "eia"):
        table = load(name)
        for k in (3, 4, 5, 10, 25):
            release = ANONYMIZERS["mdav"](k=k).anonymize(table, rng=0)  # type: ignore[call-arg]
            rows.append({"data": name, "k": k, **evaluate(table, release, ["il", "il2", "dld"])})
    return pd.DataFrame(rows)


SECTIONS: dict[str, Callable[[], pd.DataFrame]] = {"das": das, "federated": federated, "central": central, "mdav": mdav}


def show(title: str, frame: pd.DataFrame) -> None:
    """Print a table."""
    table = RichTable(title=title, title_justify="left")
    for column in frame.columns:
        table.add_column(column.strip(), justify="right")
    for values in frame.itertuples(index=False):
        table.add_row(*(f"{v:.3f}" if isinstance(v, (float, np.floating)) else str(v) for v in values))
    Console(width=150).print(table)


def main() -> None:
    """Run the sections and store their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=[])
    for name in parser.parse_args().sections or SECTIONS:
        start = time.perf_counter()
        frame = SECTIONS[name]()
        show(f"{name} ({time.perf_counter() - start:.0f} s)", frame)
        frame.rename(columns=str.strip).to_csv(RESULTS / f"thesis_{name}.csv", index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
