"""Transition matrices of the post-randomisation method (PRAM): building, checking, drawing."""

from __future__ import annotations

import numpy as np

from fedanon.data.hierarchy import FloatArray, IntArray
from fedanon.errors import ConfigError

#: how far a row may be from summing to one: the rounding of a written matrix, no more
ROW_TOLERANCE = 1e-9


def even_transition(diagonal: FloatArray) -> FloatArray:
    """Category i stays with probability ``diagonal[i]``; what is left is spread evenly over the others."""
    size = len(diagonal)
    if size == 1:
        return np.ones((1, 1))
    spread = np.repeat(((1 - diagonal) / (size - 1))[:, None], size, axis=1)
    np.fill_diagonal(spread, diagonal)
    return spread


def invariant_transition(shares: FloatArray, diagonal: FloatArray, alpha: float) -> FloatArray:
    r"""A matrix that keeps the expected counts of the categories.

    P has the given diagonal (:func:`even_transition`); Q is its inversion by Bayes' rule; R = PQ leaves the shares
    :math:`\pi` as they are, and so does its mixture with the identity (Gouweleeuw et al. 1998; two-stage PRAM):

    .. math:: q_{ij} = \frac{\pi_j p_{ji}}{\sum_l \pi_l p_{li}}, \qquad \alpha P Q + (1 - \alpha) I

    Parameters
    ----------
    shares : of the categories, all above 0.
    diagonal : of P.
    alpha : 0 changes nothing, 1 is R itself.
    """
    forth = even_transition(diagonal)
    joint = shares[:, None] * forth
    back = (joint / joint.sum(axis=0)).T
    return np.asarray(alpha * (forth @ back) + (1 - alpha) * np.eye(len(shares)))


def refuse_no_transition(matrix: FloatArray) -> None:
    """Raise ConfigError unless ``matrix`` is square, holds probabilities, and its rows sum to one."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ConfigError("A transition matrix needs as many rows as columns.")
    outside = int((~((matrix >= 0) & (matrix <= 1))).sum())
    if outside:
        raise ConfigError(f"The transition matrix has {outside} entries that are no probability from 0 to 1.")
    off = int((np.abs(matrix.sum(axis=1) - 1) > ROW_TOLERANCE).sum())
    if off:
        raise ConfigError(f"The transition matrix has {off} rows that do not sum to one.")


def draw(states: IntArray, matrix: FloatArray, rng: np.random.Generator) -> IntArray:
    """A new state for every state, by the probabilities of its row."""
    steps = matrix.cumsum(axis=1)
    # divided by its end, so that rounding never reaches a state of probability 0
    steps /= steps[:, -1:]
    chance = rng.random(len(states))
    drawn = np.empty(len(states), dtype=np.int32)
    for state in np.unique(states):
        rows = states == state
        drawn[rows] = np.searchsorted(steps[state], chance[rows], side="right")
    return drawn
