"""How many bins private scores should have: errors of the AUC on tables that no error is stated for, then on Adult.

`python experiments/benchmarks/score_bins.py`: ten nodes, epsilon 2; predictions of logistic regression and XGBoost for
raw test people, drawn anew to 6,000 (with a little noise where there are fewer), and made-up ones. Bins are halved in
between those of whole noise. The error of a number of bins is the median over tables of what 95 % of evaluations keep.
"""

from __future__ import annotations

import numpy as np

from fedanon.datasets import load
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.federated.shared_scores import enough
from fedanon.joint.node import make_node
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.private_scores import EDGES, count_predictions, curve_area
from fedanon.learning.settings import RunSettings
from fedanon.models.scores import classification_scores
from fedanon.types import AnyArray, FloatArray

NODES, EPSILON, PEOPLE, REPEATS = 10, 2.0, 6000, 100
OTHERS = ("nhanes", "randhie", "diabetes_130", "eicu", "heart")
#: mean and spread of made-up log odds, and how steep the truth is in them
MADE_UP = ((-1.0, 2.0, 1.0), (-2.0, 1.5, 1.0), (0.0, 1.0, 1.0), (-1.0, 3.0, 0.6), (-3.0, 1.0, 1.2))
Predictions = tuple[AnyArray, FloatArray]


def predictions(dataset: str, model: str) -> Predictions:
    """Truth and predictions for the test people of ten nodes (five where there are few)."""
    whole, rounds = load(dataset), 20 if model == "lr" else 30
    nodes = NODES if len(whole) > PEOPLE else NODES // 2
    settings = RunSettings(
        method="mondrian", method_settings={"k": 5}, model=model, rounds=rounds, nodes=nodes, evaluate_every=rounds
    )
    parts = np.array_split(np.random.default_rng(0).permutation(len(whole)), nodes)
    rules = NodeRules(secret=b"0" * 32, scores="private")
    made = [make_node(whole.select_rows(rows), settings, number, rules) for number, rows in enumerate(parts)]
    model_ = FederatedRun(LocalGrid(client_app(prepared=made), settings, nodes), settings).run().parameters
    found = [(node.test_people[1], node.model.predict_proba(model_, node.test_people[0])) for node in made]
    truth, probability = (np.concatenate(each) for each in zip(*found, strict=True))
    return truth, np.clip(probability.astype(np.float64), 1e-6, 1 - 1e-6)


def resized(truth: AnyArray, probability: FloatArray, seed: int) -> Predictions:
    """A sample of the wanted size."""
    rng, spread = np.random.default_rng(seed), 0.0 if len(truth) > PEOPLE else 0.15 if len(truth) > 1000 else 0.3
    rows = rng.choice(len(truth), PEOPLE, replace=len(truth) < PEOPLE)
    odds = np.log(probability[rows] / (1 - probability[rows])) + rng.normal(0, 1, PEOPLE) * spread
    return truth[rows], 1 / (1 + np.exp(-odds))


def made_up(mean: float, spread: float, slope: float, seed: int) -> Predictions:
    """Predictions, and a truth that follows from them."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(mean, spread, PEOPLE)
    return (rng.random(PEOPLE) < 1 / (1 + np.exp(-slope * odds))).astype(np.int64), 1 / (1 + np.exp(-odds))


def halved(edges: FloatArray) -> FloatArray:
    """Twice as many bins."""
    ends = np.concatenate([[0.005], edges, [0.99]])
    odds = np.log(ends / (1 - ends))
    return np.sort(np.concatenate([edges, 1 / (1 + np.exp(-(odds[1:] + odds[:-1]) / 2))]))


def error(found: Predictions, edges: FloatArray, draws: float) -> float:
    """What 95 % of evaluations keep, where the sum has so many draws of noise."""
    truth, probability = found
    exact = classification_scores(truth, (probability >= 0.5).astype(np.int8), probability)["auc"]
    counts, rng, p = count_predictions(truth, probability, edges), np.random.default_rng(0), np.exp(-EPSILON)
    errors = []
    for _ in range(REPEATS):
        noise = [rng.negative_binomial(draws, 1 - p, counts.shape) for _ in range(2)]
        errors.append(abs(curve_area(counts + noise[0] - noise[1], len(truth)) - exact))
    return float(np.quantile(errors, 0.95))


def main() -> None:
    """Print a line per number of bins."""
    tables = [
        resized(*predictions(name, model), seed) for name in OTHERS for model in ("lr", "xgb") for seed in range(3)
    ]
    tables += [made_up(*each, seed) for each in MADE_UP for seed in range(3)]
    adult = {model: predictions("adult", model) for model in ("lr", "xgb")}
    print(f"{len(tables)} other tables; 95 % of {REPEATS} evaluations keep, by the median of tables, and on Adult:")
    for noise, draws in (("own", float(NODES)), ("shared", NODES / enough(NODES))):
        edges = EDGES
        for _ in range(4):
            others = np.median([error(found, edges, draws) for found in tables])
            here = ", ".join(f"{model} {error(found, edges, draws):.4f}" for model, found in adult.items())
            print(f"{noise} noise, {len(edges) + 1:2} bins: {others:.4f}; Adult {here}", flush=True)
            edges = halved(edges)


if __name__ == "__main__":
    main()
