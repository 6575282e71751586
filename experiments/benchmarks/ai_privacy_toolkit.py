"""AUC lost by guided k-member and by IBM's ai-privacy-toolkit, which also builds classes by what a model needs.

    pip install ai-privacy-toolkit adversarial-robustness-toolbox six     # for this comparison alone
    python experiments/benchmarks/ai_privacy_toolkit.py [--seeds 2] [--data adult,nhanes,diabetes_130,heart]

Every node anonymizes its own training rows: k-member with guide="target", whose cells our models read by
cell_values="release", or the toolkit, whose decision tree is fitted to the predictions of the federation's model of raw
rows and which publishes a representative of every leaf. The same models are then trained on either, and tested on the
fifth of the rows that no node has. Prints a table in Markdown and writes experiments/results/ai_privacy_toolkit.json.

The toolkit counts rows, so only the first row of every person is taken where people have several.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.anonymizers import Identity, KMember
from fedanon.attacks.gradient_inversion import Batch, places_of
from fedanon.data.partition import iid
from fedanon.data.table import Table
from fedanon.federated.sources import whole_table
from fedanon.learning.rounds import train_in_process
from fedanon.learning.strategies import STRATEGIES
from fedanon.models import MODELS
from fedanon.models.base import LocalState, Model, TrainingData
from fedanon.models.encoding import Encoding
from fedanon.models.scores import auc
from fedanon.models.target import binary_target
from fedanon.types import FeatureArray, TargetArray

RESULTS = Path(__file__).parent.parent / "results" / "ai_privacy_toolkit.json"
#: nodes of every table, so that each has some hundred rows
NODES = {"adult": 10, "nhanes": 3, "diabetes_130": 10, "heart": 1}
SIZES = (10, 20, 100)
#: of a longer table so many rows are drawn
MOST_ROWS = 20_000
ROUNDS = 50


def parts_of(dataset: str, seed: int) -> tuple[list[Table], Table]:
    """The training rows of every node, and the test rows."""
    table, rng = whole_table(dataset), np.random.default_rng([seed, *dataset.encode()])
    first = np.unique(table.person_of_row, return_index=True)[1]
    order = rng.permutation(first)[:MOST_ROWS]
    cut = len(order) * 4 // 5
    train, test = table.select_rows(np.sort(order[:cut])), table.select_rows(np.sort(order[cut:]))
    return [train.select_rows(rows) for rows in iid(train, NODES[dataset], rng)], test


def fit(model: Model, data: list[TrainingData], width: int, seed: int) -> Any:
    """The parameters after all rounds."""
    rng, states = np.random.default_rng(seed), [LocalState() for _ in data]
    return train_in_process(model, data, width, STRATEGIES["fedavg"](), rounds=ROUNDS, rng=rng, states=states)


def by_toolkit(rows: FeatureArray, predicted: TargetArray, encoding: Encoding, k: int) -> FeatureArray:
    """The rows as the toolkit publishes them."""
    from apt.anonymization import Anonymize
    from apt.utils.datasets import ArrayDataset

    slices = [list(range(place.start, place.stop)) for place in places_of(encoding) if place.stop - place.start > 1]
    anonymizer = Anonymize(k, list(range(rows.shape[1])), quasi_identifer_slices=slices)
    return np.asarray(anonymizer.anonymize(ArrayDataset(rows.astype(np.float64), predicted)), dtype=np.float32)


def compare(dataset: str, name: str, seed: int) -> Iterator[dict[str, Any]]:
    """The AUC of raw rows, then of either way for every k."""
    tables, test = parts_of(dataset, seed)
    encoding = Encoding.from_schema(test.schema)
    features, truth = encoding.encode_table(test), binary_target(test, test.schema)
    labels = [binary_target(table, table.schema) for table in tables]
    raw = [encoding.encode_table(table) for table in tables]
    model = MODELS[name](cell_values="release")

    def scored(data: list[TrainingData]) -> float:
        return auc(truth, model.predict_proba(fit(model, data, encoding.width, seed), features))

    exact: list[TrainingData] = [model.training_data(Identity().anonymize(one, rng=0), encoding, 0) for one in tables]
    original = fit(model, exact, encoding.width, seed)
    told = {"dataset": dataset, "model": name, "seed": seed}
    yield told | {"k": 1, "way": "raw", "auc": auc(truth, model.predict_proba(original, features))}
    # of a rare outcome no probability is above a half, and a tree of one label would be a single leaf
    odds = [model.predict_proba(original, rows) for rows in raw]
    usual = float(np.quantile(np.concatenate(odds), 1 - np.concatenate(labels).mean()))
    for k in SIZES:
        if min(map(len, tables)) < 2 * k:
            continue
        releases = [KMember(k=k, guide="target").anonymize(one, rng=seed) for one in tables]
        ours = [model.training_data(release, encoding, seed + i) for i, release in enumerate(releases)]
        theirs: list[TrainingData] = [
            Batch(by_toolkit(rows, (odd > usual).astype(np.int64), encoding, k), label)
            for rows, odd, label in zip(raw, odds, labels, strict=True)
        ]
        yield told | {"k": k, "way": "guided k-member", "auc": scored(ours)}
        yield told | {"k": k, "way": "ai-privacy-toolkit", "auc": scored(theirs)}


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data", default="adult,nhanes,diabetes_130,heart")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    found = []
    for dataset in given.data.split(","):
        for name in ("lr", "xgb"):
            runs = [one for seed in range(given.seeds) for one in compare(dataset, name, seed)]
            found += runs
            for k in sorted({one["k"] for one in runs}):
                means = {
                    way: np.mean([one["auc"] for one in runs if (one["k"], one["way"]) == (k, way)])
                    for way in sorted({one["way"] for one in runs if one["k"] == k})
                }
                print(
                    f"| {dataset} | {name} | {k} |",
                    " | ".join(f"{w} {v:.4f}" for w, v in means.items()),
                    "|",
                    flush=True,
                )
            given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
