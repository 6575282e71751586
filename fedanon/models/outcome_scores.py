"""Scores of any kind of target by name: of two classes, of several, and of a number.

Of several classes, the AUC is that of each class against the rest, over the classes that occur and are not alone: their
plain mean (``auc``), or weighted by their rows (``auc_weighted``). Of a number, nodes report what pools exactly over
rows they do not share: means of absolute and squared errors, and the mean and variance of the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from fedanon.models.outcome import Outcome, OutcomeKind
from fedanon.models.scores import accuracy, auc, classification_scores, f1
from fedanon.types import AnyArray, FloatArray

#: what a node reports of an evaluation, by the kind of target
NODE_SCORES: dict[OutcomeKind, tuple[str, ...]] = {
    "binary": ("accuracy", "precision", "recall", "f1", "auc", "log_loss", "brier"),
    "multiclass": ("accuracy", "f1_macro", "auc", "auc_weighted", "log_loss"),
    "regression": ("mae", "mse", "target_mean", "target_variance"),
}


def node_scores(outcome: Outcome, truth: AnyArray, predicted: FloatArray, unit: float = 1.0) -> dict[str, float]:
    """The scores a node reports, and for two classes some more; see :data:`NODE_SCORES`.

    Parameters
    ----------
    outcome : the kind of target.
    truth : classes, or scaled numbers.
    predicted : what :meth:`fedanon.models.base.Model.predict_proba` gives.
    unit : of a number, the length of its range: errors are reported in units of the column.
    """
    if outcome.kind == "binary":
        return classification_scores(truth, (predicted >= 0.5).astype(np.int8), predicted)
    if outcome.kind == "multiclass":
        return multiclass_scores(truth, predicted)
    error = (predicted - truth) * unit
    return {
        "mae": float(np.abs(error).mean()),
        "mse": float(np.square(error).mean()),
        "target_mean": float(truth.mean() * unit),
        "target_variance": float(truth.var() * unit**2),
    }


def all_scores(outcome: Outcome, truth: AnyArray, predicted: FloatArray, unit: float = 1.0) -> dict[str, float]:
    """The scores of rows that are all at hand, as a reader wants them."""
    return summed_up([(node_scores(outcome, truth, predicted, unit), len(truth))])


def multiclass_scores(truth: AnyArray, probability: FloatArray) -> dict[str, float]:
    """Scores of one of several classes, by the probability of each."""
    labels = probability.argmax(axis=1)
    areas, sizes = _areas(truth, probability)
    clear = np.finfo(np.float64).eps
    likely = np.clip(probability[np.arange(len(truth)), truth.astype(np.int64)], clear, 1.0)
    return {
        "accuracy": accuracy(truth, labels),
        "f1_macro": float(np.mean([f1(truth == c, labels == c) for c in np.union1d(truth, labels)])),
        "auc": float(np.mean(areas)) if areas else math.nan,
        "auc_weighted": float(np.average(areas, weights=sizes)) if areas else math.nan,
        "log_loss": float(-np.log(likely).mean()),
    }


def _areas(truth: AnyArray, probability: FloatArray) -> tuple[list[float], list[int]]:
    """The AUC of every class against the rest that has one, and its number of rows."""
    inside = [truth == c for c in range(probability.shape[1])]
    known = [c for c, rows in enumerate(inside) if 0 < rows.sum() < len(truth)]
    return [auc(inside[c], probability[:, c]) for c in known], [int(inside[c].sum()) for c in known]


# ---- over nodes ----------------------------------------------------------------------------------

#: the ends of names, by what was scored
ROWS = ("", "_recoded", "_released")


def weighted_means(scores: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, float]:
    """The mean of every score over those that have it, weighted by their rows."""
    means: dict[str, float] = {}
    for name in sorted({name for found, _ in scores for name in found}):
        values = [found[name] for found, _ in scores if name in found]
        weights = [float(rows) for found, rows in scores if name in found]
        means[name] = float(np.average(values, weights=weights))
    return means


def summed_up(scores: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, float]:
    """Means over nodes, weighted by their rows; of a number MAE, RMSE and R2 of all rows together.

    The variance of all rows is the mean of the nodes' variances and the variance of their means.
    """
    squares = [
        ({f"square{end}": _square(found[f"target_mean{end}"]) for end in ROWS if f"target_mean{end}" in found}, rows)
        for found, rows in scores
    ]
    means, square = weighted_means(scores), weighted_means(squares)
    for end in ROWS:
        if f"mse{end}" not in means:
            continue
        mse, center = means.pop(f"mse{end}"), means.pop(f"target_mean{end}")
        variance = means.pop(f"target_variance{end}") + square[f"square{end}"] - _square(center)
        means[f"rmse{end}"] = math.sqrt(max(mse, 0.0))
        if variance > 0:
            means[f"r2{end}"] = 1 - mse / variance
    return means


def _square(value: float) -> float:
    return value * value  # a power raises where a product is infinite
