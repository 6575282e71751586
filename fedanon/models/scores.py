"""Scores of a classifier, with numpy alone: an edge node has no scikit-learn.

``truth`` holds 0 and 1, ``labels`` predicted 0 and 1, ``probability`` that of class 1. A ratio 0 / 0 counts as 0. For
targets of other kinds see :mod:`fedanon.models.outcome_scores`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from fedanon.types import AnyArray

Average = Literal["positive", "macro"]


def accuracy(truth: AnyArray, labels: AnyArray) -> float:
    """Share of correct labels."""
    return float(np.mean(truth == labels))


def precision(truth: AnyArray, labels: AnyArray, average: Average = "positive") -> float:
    """Share of true positives among the rows labeled positive; 'macro' is the mean over both classes."""
    return _averaged(lambda c: _ratio(c.true, c.labeled), truth, labels, average)


def recall(truth: AnyArray, labels: AnyArray, average: Average = "positive") -> float:
    """Share of the positives that are found; 'macro' is the mean over both classes."""
    return _averaged(lambda c: _ratio(c.true, c.actual), truth, labels, average)


def f1(truth: AnyArray, labels: AnyArray, average: Average = "positive") -> float:
    """Harmonic mean of precision and recall; 'macro' is the mean over both classes."""
    return _averaged(lambda c: _ratio(2 * c.true, c.labeled + c.actual), truth, labels, average)


def auc(truth: AnyArray, scores: AnyArray) -> float:
    """Area under the ROC curve: the probability that a positive scores above a negative, ties counting half.

    Mann-Whitney: (sum of the positives' ranks - p (p + 1) / 2) / (p n), ties at their mean rank; NaN with one class.
    """
    truth = np.asarray(truth, dtype=bool)
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if not positives or not negatives:
        return float("nan")
    _, group, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    total = float(mean_rank[group[truth]].sum())
    return (total - positives * (positives + 1) / 2) / (positives * negatives)


def log_loss(truth: AnyArray, probability: AnyArray) -> float:
    """Mean negative log-likelihood; probabilities are kept the float spacing away from 0 and 1."""
    clear = np.finfo(np.float64).eps
    p = np.clip(np.asarray(probability, dtype=np.float64), clear, 1 - clear)
    return float(-np.mean(np.where(np.asarray(truth) == 1, np.log(p), np.log1p(-p))))


def brier(truth: AnyArray, probability: AnyArray) -> float:
    """Mean squared distance of the probability from the truth."""
    return float(np.mean((np.asarray(probability, dtype=np.float64) - truth) ** 2))


def classification_scores(truth: AnyArray, labels: AnyArray, probability: AnyArray | None = None) -> dict[str, float]:
    """All scores by name; those that need probabilities only where there are some."""
    scores = {"accuracy": accuracy(truth, labels)}
    for name, score in (("precision", precision), ("recall", recall), ("f1", f1)):
        scores[name] = score(truth, labels)
        scores[f"{name}_macro"] = score(truth, labels, "macro")
    if probability is not None:
        scores |= {
            "auc": auc(truth, probability),
            "log_loss": log_loss(truth, probability),
            "brier": brier(truth, probability),
        }
    return scores


class _Counts(NamedTuple):
    """Of one class: its rows that are labeled so, all rows labeled so, all its rows."""

    true: int
    labeled: int
    actual: int


def _averaged(score: Callable[[_Counts], float], truth: AnyArray, labels: AnyArray, average: Average) -> float:
    classes = (1,) if average == "positive" else (0, 1)
    return float(np.mean([score(_counts(truth == c, labels == c)) for c in classes]))


def _counts(actual: AnyArray, labeled: AnyArray) -> _Counts:
    return _Counts(int((actual & labeled).sum()), int(labeled.sum()), int(actual.sum()))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
