"""How deep trees and how large steps lose least: on splits of adult.data alone, adult.test is never read.

    python experiments/benchmarks/tree_steps.py [--seeds 11,12]

Four fifths of adult.data are dealt to ten nodes, each of which anonymizes its rows by k-member with guide="target";
trees learn from original rows or from likely values of the releases and are scored on the last fifth. The splits are
not those of the experiments. `experiments/guided_fast_trees.toml` takes the pair with the highest mean AUC from
anonymized rows to four digits, and of equal ones that of shallower trees. Prints a table in Markdown and writes
experiments/results/tree_steps.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.anonymizers import Identity, KMember
from fedanon.data.partition import iid
from fedanon.federated.sources import whole_table
from fedanon.learning.rounds import train_in_process
from fedanon.learning.strategies import STRATEGIES
from fedanon.models import BoostedTrees
from fedanon.models.base import LocalState
from fedanon.models.encoding import Encoding
from fedanon.models.scores import auc
from fedanon.models.target import binary_target

RESULTS = Path(__file__).parent.parent / "results" / "tree_steps.json"
NODES, ROUNDS, SIZES = 10, 50, (10, 20)
#: learning rate and depth; the first pair is the default
STEPS = ((0.1, 5), (0.2, 5), (0.3, 5), (0.3, 4), (0.3, 3))


def compare(seed: int) -> list[dict[str, Any]]:
    """The AUC of every pair from original rows (k = 1) and from releases of every size, on one split."""
    table, rng = whole_table("adult"), np.random.default_rng([seed, 77])
    order = rng.permutation(len(table))
    cut = len(order) * 4 // 5
    train, test = table.select_rows(np.sort(order[:cut])), table.select_rows(np.sort(order[cut:]))
    nodes = [train.select_rows(rows) for rows in iid(train, NODES, rng)]
    encoding = Encoding.from_schema(test.schema)
    features, truth = encoding.encode_table(test), binary_target(test, test.schema)
    methods = {1: Identity(), **{k: KMember(k=k, guide="target") for k in SIZES}}
    found = []
    for k, method in methods.items():
        releases = [method.anonymize(node, rng=seed) for node in nodes]
        for eta, depth in STEPS:
            model = BoostedTrees(cell_values="release", eta=eta, max_depth=depth)
            data = [model.training_data(one, encoding, seed * 100 + i) for i, one in enumerate(releases)]
            learned = train_in_process(
                model,
                data,
                encoding.width,
                STRATEGIES["fedavg"](),
                rounds=ROUNDS,
                rng=np.random.default_rng(seed),
                states=[LocalState() for _ in data],
            )
            score = auc(truth, model.predict_proba(learned, features))
            found.append({"seed": seed, "k": k, "eta": eta, "max_depth": depth, "auc": score})
    return found


def main() -> None:
    """Compare, print means over the splits, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="11,12")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    found = [one for seed in given.seeds.split(",") for one in compare(int(seed))]
    given.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print("| eta | max_depth | original | " + " | ".join(f"k = {k} | lost" for k in SIZES) + " | mean anonymized |")
    print("|---" * (4 + 2 * len(SIZES)) + "|")
    for pair in STEPS:
        means = {
            k: float(np.mean([one["auc"] for one in found if (one["eta"], one["max_depth"], one["k"]) == (*pair, k)]))
            for k in (1, *SIZES)
        }
        sizes = " | ".join(f"{means[k]:.4f} | {means[1] - means[k]:.4f}" for k in SIZES)
        print(f"| {pair[0]} | {pair[1]} | {means[1]:.4f} | {sizes} | {np.mean([means[k] for k in SIZES]):.4f} |")


if __name__ == "__main__":
    main()
