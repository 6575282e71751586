"""Naive Bayes over small numbers: how likely each kind is for a record, from records whose kind is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedanon.data.hierarchy import FloatArray, IntArray


def child_chances(
    evidence: Sequence[IntArray],
    known: NDArray[np.int64],
    kind: IntArray,
    asked: NDArray[np.int64],
    kinds: int,
) -> FloatArray:
    r"""Chance of every kind for the records ``asked``.

    .. math:: P(c \mid x) \propto (n_c + 1) \prod_j \frac{n_{c x_j} + 1}{n_c + D_j}

    with :math:`n_c` of the known records of kind c, :math:`n_{cx}` of them with value x in column j, which has
    :math:`D_j` values (Laplace's smoothing).

    Parameters
    ----------
    evidence : for every column the number of its value in each record.
    known, kind : records whose kind is known, and their kinds.
    asked : records whose kind is asked for.
    kinds : number of kinds.
    """
    counts = np.bincount(kind, minlength=kinds).astype(np.float64)
    score = np.tile(np.log(counts + 1), (len(asked), 1))
    for codes in evidence:
        size = int(codes.max()) + 1
        pairs = np.bincount(kind.astype(np.int64) * size + codes[known], minlength=kinds * size).reshape(kinds, size)
        likely = np.log(pairs + 1) - np.log(counts + size)[:, None]
        score += likely[:, codes[asked]].T
    score = np.exp(score - score.max(axis=1, keepdims=True))
    return np.asarray(score / score.sum(axis=1, keepdims=True))
