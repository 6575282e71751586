"""AUC lost by guided k-member and by IBM's ai-privacy-toolkit, which also builds classes by what a model needs.

    pip install ai-privacy-toolkit adversarial-robustness-toolbox six     # for this comparison alone
    python experiments/benchmarks/ai_privacy_toolkit.py [--seeds 2] [--data adult,nhanes,diabetes_130,heart] [--show]

Every node anonymizes its own training rows: k-member with guide="target", whose cells trees read by
cell_values="release", or the toolkit, whose decision tree is fitted to the predictions of the federation's model of raw
rows and which publishes a representative of every leaf. The same models are then trained on either, and tested on the
fifth of the rows that no node has. Prints a table in Markdown, with 95 % intervals of the mean difference over seeds
(t; the splits of two seeds overlap, so they are too narrow rather than too wide), and puts it in place of what
experiments/results/ai_privacy_toolkit.json holds of the same data and model; --show prints it alone.

The toolkit counts rows, so only the first row of every person is taken where people have several.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student_t

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
#: how cells are read; as in experiments/guided.toml and guided_trees.toml
READING = {"lr": "uniform", "xgb": "release"}


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
    model = MODELS[name](cell_values=READING[name])

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


def show(found: list[dict[str, Any]]) -> None:
    """Print the means, and how far guided k-member is ahead."""
    print("| data | model | seeds | raw | k | guided k-member | ai-privacy-toolkit | ahead by |")
    print("|---|---|---|---|---|---|---|---|")
    intervals = []
    for dataset, name in sorted({(one["dataset"], one["model"]) for one in found}):
        runs = [one for one in found if (one["dataset"], one["model"]) == (dataset, name)]
        raw = np.mean([one["auc"] for one in runs if one["way"] == "raw"])
        for k in sorted({one["k"] for one in runs} - {1}):
            ours, theirs = (
                {one["seed"]: one["auc"] for one in runs if (one["k"], one["way"]) == (k, way)}
                for way in ("guided k-member", "ai-privacy-toolkit")
            )
            ahead = np.array([ours[seed] - theirs[seed] for seed in ours])
            half = student_t.ppf(0.975, len(ahead) - 1) * ahead.std(ddof=1) / np.sqrt(len(ahead))
            means = f"{np.mean([*ours.values()]):.4f} | {np.mean([*theirs.values()]):.4f}"
            intervals.append((ahead.mean() - half, ahead.mean(), ahead.mean() + half))
            by = f"{ahead.mean():+.4f} ± {half:.4f}"
            line = f"| {dataset} | {name} | {len(ahead)} | {raw:.4f} | {k} | {means} | {by} |"
            print(line.replace("| 0.", "| .").replace("+0.", "+.").replace("-0.", "-.").replace("± 0.", "± ."))
    low, mean, high = np.transpose(intervals)
    ahead_in, surely = (mean > 0).sum(), (low > 0).sum()
    behind_in, surely_behind = (mean < 0).sum(), (high < 0).sum()
    print(f"\nGuided k-member is ahead in {ahead_in} of {len(mean)} cases, in {surely} by more than the interval.")
    print(f"It is behind in {behind_in}, in {surely_behind} by more than the interval.")


def main() -> None:
    """Compare, write and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data", default="adult,nhanes,diabetes_130,heart")
    parser.add_argument("--models", default="lr,xgb")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--show", action="store_true", help="print what is stored, compute nothing")
    given = parser.parse_args()
    found = json.loads(given.output.read_text(encoding="utf-8")) if given.output.exists() else []
    for dataset in [] if given.show else given.data.split(","):
        for name in given.models.split(","):
            runs = [one for seed in range(given.seeds) for one in compare(dataset, name, seed)]
            found = [one for one in found if (one["dataset"], one["model"]) != (dataset, name)] + runs
            given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    show(found)


if __name__ == "__main__":
    main()
