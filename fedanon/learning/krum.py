"""Krum: which of many vectors stand closest together."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def krum_scores(vectors: NDArray[np.float64], n_hostile: int) -> NDArray[np.float64]:
    r"""The sum of squared distances of each vector to its nearest neighbours.

    .. math:: s_i = \sum_{j \to i} |v_i - v_j|^2

    over the :math:`n - f - 2` vectors nearest to :math:`v_i`, at least one (Blanchard, El Mhamdi, Guerraoui and Stainer
    2017). With fewer than three vectors there is nobody to compare with and all scores are 0.
    """
    count = len(vectors)
    if count < 3:
        return np.zeros(count)
    distances = np.square(vectors[:, None, :] - vectors[None, :, :]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)  # a vector is not its own neighbour
    nearest = np.sort(distances, axis=1)[:, : max(1, count - n_hostile - 2)]
    return np.asarray(nearest.sum(axis=1))


def closest_together(vectors: NDArray[np.float64], *, hostile_share: float, kept_share: float) -> list[int]:
    """Places of the vectors with the lowest scores (Multi-Krum), at least one, in order.

    Parameters
    ----------
    vectors : one a row.
    hostile_share : share of them that may be false.
    kept_share : share of them that is kept.
    """
    count = len(vectors)
    scores = krum_scores(vectors, math.floor(hostile_share * count))
    kept = np.argsort(scores, kind="stable")[: max(1, math.ceil(kept_share * count))]
    return sorted(int(place) for place in kept)
