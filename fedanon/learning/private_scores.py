"""Scores of raw test rows that hide every person: counts of predictions in a few bins, with noise, pooled by sums.

A node counts its test people by class and predicted probability. One person is in one bin, so discrete Laplace noise of
scale 1 / epsilon on every count is differentially private with epsilon, whatever model a server sends: a person may be
there or add nothing; how many people are tested is public. Sums over nodes give the scores; noise is paid for whether
anyone reads it or not, so a node answers until its budget is spent.

Fewer bins have less noise in all, but show less of the curve; where all nodes share the noise of one, there are twice
as many. They were chosen on predictions for other tables than the one the errors are stated for, and on made-up ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedanon.errors import UpdateRejectedError
from fedanon.privacy.accounting.noise import Noise
from fedanon.types import AnyArray, CountArray, FloatArray

#: inner ends of the bins of probability; 0.5 parts the predicted classes
EDGES = np.array([0.02, 0.06, 0.12, 0.2, 0.3, 0.41, 0.5, 0.68, 0.82, 0.93])
N_BINS = len(EDGES) + 1
#: of the finer bins for noise that nodes share; every other one is one of those
FINE_EDGES = np.sort(np.append(EDGES, [0.01, 0.035, 0.085, 0.156, 0.247, 0.353, 0.455, 0.593, 0.757, 0.886, 0.973]))
#: under which the counts of a node travel: those of class 0, then those of class 1; behind masks, or with whole noise
HISTOGRAM, MASKED = "histogram", "masked_histogram"
#: noise and rounding aside, no count is larger
MAX_COUNT = 10**8


def count_predictions(truth: AnyArray, probability: AnyArray, edges: FloatArray = EDGES) -> CountArray:
    """How many rows of each class (first axis) have a probability in each bin."""
    n = len(edges) + 1
    bins = np.searchsorted(edges, np.nan_to_num(np.asarray(probability, dtype=np.float64)), side="right")
    return np.bincount(np.asarray(truth, dtype=np.int64) * n + bins, minlength=2 * n).reshape(2, n)


def add_noise(counts: CountArray, epsilon: float, noise: Noise) -> CountArray:
    """Counts with noise; some may be negative."""
    return np.clip(noise.discrete_laplace(counts, 1.0 / epsilon), -MAX_COUNT, MAX_COUNT)


def read_histogram(values: Any, edges: FloatArray = EDGES, bound: int = MAX_COUNT) -> CountArray:
    """The counts a node sent, checked."""
    n = len(edges) + 1
    if not isinstance(values, Sequence) or len(values) != 2 * n or any(type(v) is not int for v in values):
        raise UpdateRejectedError("its histogram is not the agreed number of counts")
    if max(abs(value) for value in values) > bound:
        raise UpdateRejectedError("its histogram is out of bounds")
    return np.array(values, dtype=np.int64).reshape(2, n)


def coarsened(histogram: CountArray) -> CountArray:
    """Counts in the bins of :data:`EDGES`, from those or the finer ones."""
    if histogram.shape[1] == N_BINS:
        return histogram
    starts = np.append(0, 1 + np.searchsorted(FINE_EDGES, EDGES))
    return np.asarray(np.add.reduceat(histogram, starts, axis=1))


def pooled_scores(histograms: Sequence[CountArray], people: int) -> dict[str, float]:
    """Scores of the sum of all histograms, named apart from those of single rows; none without both classes.

    Rows count as lying in the middle of their bin. ``calibration_private`` is the mean distance between the predicted
    and the observed share of positives.

    Parameters
    ----------
    histograms : of the nodes; finer ones are made coarse, unless all are fine.
    people : how many are counted in all; what noise adds to that is taken off again, the same from every count.
    """
    if not histograms:
        return {}
    if any(histogram.shape[1] == N_BINS for histogram in histograms):
        histograms = [coarsened(histogram) for histogram in histograms]
    total = _of_all(np.sum(histograms, axis=0), people)
    negatives, positives = total
    n_negative, n_positive = negatives.sum(), positives.sum()
    if n_negative <= 0 or n_positive <= 0:
        return {}
    n, middle = n_negative + n_positive, _middles(EDGES if total.shape[1] == N_BINS else FINE_EDGES)
    true_positive, labeled = positives[middle > 0.5].sum(), total[:, middle > 0.5].sum()
    right = true_positive + negatives[middle < 0.5].sum()
    scores = {
        "accuracy": right / n,
        "precision": true_positive / labeled if labeled > 0 else 0.0,
        "recall": true_positive / n_positive,
        "auc": _area(negatives, positives),
        "log_loss": -(positives @ np.log(middle) + negatives @ np.log1p(-middle)) / n,
        "brier": (positives @ (1 - middle) ** 2 + negatives @ middle**2) / n,
        "calibration": float(np.abs(total.sum(axis=0) * middle - positives).sum() / n),
    }
    bounded = {name: float(value if name == "log_loss" else np.clip(value, 0, 1)) for name, value in scores.items()}
    return {f"{name}_private": value for name, value in bounded.items()}


def curve_area(histogram: CountArray, people: int) -> float:
    """The area under the ROC curve of a noisy histogram of so many people, in any bins."""
    return _area(*_of_all(histogram, people))


def _of_all(histogram: CountArray, people: int) -> FloatArray:
    """Counts of so many people in all."""
    total = histogram.astype(np.float64)
    return np.asarray(total + (people - total.sum()) / total.size)


def _middles(edges: FloatArray) -> FloatArray:
    ends = np.concatenate([[0.0], edges, [1.0]])
    return np.asarray((ends[:-1] + ends[1:]) / 2)


def _area(negatives: FloatArray, positives: FloatArray) -> float:
    """The area under a monotone cubic through the points of the ROC curve that the bins give (Fritsch & Carlson 1980).

    A few chords lie well below a concave curve; the cubic follows it.
    """
    x, y = (np.append(0.0, np.cumsum(np.maximum(part, 0)[::-1])) for part in (negatives, positives))
    last = np.append(np.diff(x) > 0, True)  # of points above each other the highest
    x, y = x[last] / x[-1], y[last] / y[-1]
    if len(x) < 3:
        return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2))
    h = np.diff(x)
    secants = np.diff(y) / h
    left, right = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    rising = (secants[:-1] > 0) & (secants[1:] > 0)
    safe = np.where(rising, secants[:-1], 1.0), np.where(rising, secants[1:], 1.0)
    inner = np.where(rising, (left + right) / (left / safe[0] + right / safe[1]), 0.0)
    slopes = np.concatenate([[_end(h[0], h[1], *secants[:2])], inner, [_end(h[-1], h[-2], *secants[:-3:-1])]])
    return float(np.sum(h * (y[1:] + y[:-1]) / 2 + h**2 * (slopes[:-1] - slopes[1:]) / 12))


def _end(near: float, far: float, secant: float, following: float) -> float:
    """The slope at an end: that of a parabola through three points, where it keeps the curve monotone."""
    slope = ((2 * near + far) * secant - near * following) / (near + far)
    return float(np.clip(slope, 0.0, 3 * max(secant, 0.0)))
