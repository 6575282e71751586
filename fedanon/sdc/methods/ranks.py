"""Ranks: putting the values of one column into the order of another, and scores that only ranks decide."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.types import FloatArray, Rng


def order_with_ties_drawn(values: FloatArray, rng: Rng) -> NDArray[np.int64]:
    """Positions in ascending order of the values; equal ones in random order."""
    return np.asarray(np.lexsort((rng.random(len(values)), values)), dtype=np.int64)


def reverse_map(x: FloatArray, y: FloatArray, rng: Rng) -> FloatArray:
    """z_i = the value of ``x`` that has the rank of y_i (Muralidhar, Sarathy & Domingo-Ferrer 2014).

    Equal values of ``y`` are ranked at random: ranked by ``x``, groups that a method published alike would come apart
    into their originals.
    """
    z = np.empty_like(x)
    z[order_with_ties_drawn(y, rng)] = np.sort(x)
    return z


def replace_by_rank(x: FloatArray, values: FloatArray) -> FloatArray:
    """The i-th smallest of ``values`` in place of the i-th smallest of ``x``: the ranks of ``x`` stay."""
    y = np.empty_like(x)
    y[np.argsort(x, kind="stable")] = np.sort(values)
    return y


def average_ranks(x: FloatArray) -> FloatArray:
    """Ranks 1..n of every column; equal values share the mean of theirs."""
    return pd.DataFrame(x).rank().to_numpy(dtype=np.float64)


def normal_scores(ranks: FloatArray) -> FloatArray:
    r""":math:`\Phi^{-1}((r - 1/2) / n)` of average ranks."""
    n = len(ranks)
    inverse = NormalDist().inv_cdf
    # average ranks are multiples of 1/2: the score of every possible one is worked out once
    table = np.array([inverse((half / 2 + 0.5) / n) for half in range(2 * n - 1)])
    return np.asarray(table[(2 * ranks - 2).astype(np.int64)])
