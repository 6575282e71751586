"""AUC lost by joint anonymization, plain and guided by the federation's own model.

    python experiments/benchmarks/guided_joint.py [--seeds 2] [--test validation]

Adult dealt to ten nodes that anonymize jointly (federated Mondrian, exact counts). A logistic regression learned from
these releases gives the weights of the columns, and the nodes agree on classes a second time. Scored on the fifth of
adult.data that nodes keep, on which everything was chosen, or on adult.test (`--test adult_holdout`). Prints a table in
Markdown and writes experiments/results/guided_joint.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.anonymizers import Identity
from fedanon.federated.sources import node_table, whole_table
from fedanon.joint.guide import weigh_by_model
from fedanon.joint.node import JointNode
from fedanon.joint.protocol import agree
from fedanon.learning.rounds import train_in_process
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import STRATEGIES
from fedanon.models import MODELS
from fedanon.models.base import Parameters
from fedanon.models.scores import auc
from fedanon.models.target import binary_target
from fedanon.release.release import Release
from fedanon.types import FeatureArray, TargetArray

RESULTS = Path(__file__).parent.parent / "results" / "guided_joint.json"
NODES, ROUNDS, SIZES = 10, 50, (10, 20)


def nodes_of(seed: int, k: int, weights: str) -> list[JointNode]:
    """The nodes, which have agreed on their classes."""
    chosen = RunSettings(
        dataset="adult",
        nodes=NODES,
        seed=seed,
        method="federated_mondrian",
        method_settings={"k": k, "counts": "plain", "weights": weights},
    )
    nodes = [JointNode(node_table(chosen, number), chosen, number) for number in range(NODES)]
    plan = agree([node.participant for node in nodes]).plan
    for node in nodes:
        node.adopt(plan)
    return nodes


def fit(name: str, releases: Sequence[Release], node: JointNode, seed: int) -> Parameters:
    """The parameters of a model after all rounds."""
    model, rng = MODELS[name](cell_values="release" if name == "xgb" else "uniform"), np.random.default_rng(seed)
    data = [model.training_data(release, node.encoding, seed + i) for i, release in enumerate(releases)]
    return train_in_process(model, data, node.width, STRATEGIES["fedavg"](), rounds=ROUNDS, rng=rng)


def tested_on(nodes: Sequence[JointNode], test: str) -> tuple[FeatureArray, TargetArray]:
    """Features and target of the test rows."""
    if test == "validation":
        return np.concatenate([node.test[0] for node in nodes]), np.concatenate([node.test[1] for node in nodes])
    table = whole_table(test)
    return nodes[0].encoding.encode_table(table), binary_target(table, table.schema)


def compare(seed: int, test: str) -> Iterator[dict[str, Any]]:
    """Raw rows, then for every k the plain and the guided classes."""
    for k in SIZES:
        nodes = nodes_of(seed, k, "")
        features, truth = tested_on(nodes, test)
        ways: dict[str, tuple[list[Release], float]] = {}
        if k == SIZES[0]:
            ways["raw"] = [Identity().anonymize(node.training_table, rng=0) for node in nodes], 0.0
        ways["joint"] = [node.release for node in nodes], _ncp(nodes)
        weights = weigh_by_model(fit("lr", ways["joint"][0], nodes[0], seed), nodes[0].encoding)
        guided = nodes_of(seed, k, weights)
        ways["joint, guided"] = [node.release for node in guided], _ncp(guided)
        for way, (releases, ncp) in ways.items():
            for name in ("lr", "xgb"):
                predicted = MODELS[name]().predict_proba(fit(name, releases, nodes[0], seed), features)
                found = {"way": way, "k": 1 if way == "raw" else k, "model": name, "seed": seed}
                yield found | {"auc": auc(truth, predicted), "ncp": ncp, "weights": weights if "guided" in way else ""}


def _ncp(nodes: Sequence[JointNode]) -> float:
    return float(np.mean([node.facts.measures["ncp"] for node in nodes]))


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--test", choices=["adult_holdout", "validation"], default="validation")
    parser.add_argument("--output", type=Path, default=RESULTS)
    given = parser.parse_args()
    found = [one for seed in range(given.seeds) for one in compare(seed, given.test)]
    given.output.write_text(json.dumps({"test": given.test, "runs": found}, indent=1) + "\n", encoding="utf-8")
    print("| model | k | raw | lost jointly | lost jointly, guided | NCP | NCP guided |\n|---|---|---|---|---|---|---|")
    for name in ("lr", "xgb"):
        raw = _mean(found, "auc", name, "raw", 1)
        for k in SIZES:
            lost = [f"{raw - _mean(found, 'auc', name, way, k):.4f}" for way in ("joint", "joint, guided")]
            ncp = [f"{_mean(found, 'ncp', name, way, k):.3f}" for way in ("joint", "joint, guided")]
            print(f"| {name} | {k} | {raw:.4f} | {' | '.join(lost + ncp)} |")


def _mean(found: list[dict[str, Any]], what: str, model: str, way: str, k: int) -> float:
    return float(np.mean([r[what] for r in found if (r["model"], r["way"], r["k"]) == (model, way, k)]))


if __name__ == "__main__":
    main()
