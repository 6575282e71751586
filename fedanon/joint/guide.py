"""Guided joint anonymization: columns that the federation's model needs are generalized least.

A model that all nodes have learned says how much every column matters. As everyone who takes part has it already,
weights that follow from it give nothing away: unlike statistics of the target, they cost no query and no epsilon. Only
the choice of cuts is guided; the final count proves the claim as ever.
"""

from __future__ import annotations

import numpy as np

from fedanon.errors import ConfigError
from fedanon.models.base import Parameters
from fedanon.models.encoding import Encoding
from fedanon.types import FloatArray

#: the least weight, relative to the mean: among cuts as good for the model the one that loses less information wins
LEAST = 0.1
#: digits of a weight as it is stated in the settings of a run
DIGITS = 3


def read_weights(text: str) -> list[float]:
    """The weights of a setting; ConfigError unless they are positive numbers."""
    try:
        weights = [float(part) for part in text.split(",")] if text.strip() else []
    except ValueError:
        weights = [0.0]
    if not all(0 < weight < np.inf for weight in weights):
        raise ConfigError("weights takes positive numbers, one for every quasi-identifier, separated by commas.")
    return weights


def weigh_by_model(parameters: Parameters, encoding: Encoding) -> str:
    """The setting `weights` by a logistic regression ('lr'): how far the values of each column move its score.

    Of a number that is its coefficient, as features have the declared range as unit; of categories, how much the
    coefficients of two of them differ (root mean square).

    Parameters
    ----------
    parameters : of the model.
    encoding : by which it was trained, on quasi-identifiers alone.
    """
    slopes: FloatArray = np.atleast_2d(parameters[0])
    if slopes.shape[1] != encoding.width:
        raise ConfigError(
            f"The model has {slopes.shape[1]} coefficients, the quasi-identifiers {encoding.width} features."
        )
    ends = np.cumsum([len(names) for names in encoding.names_by_column])
    moved = np.array([_moved(part) for part in np.split(slopes, ends[:-1], axis=1)])
    relative = np.maximum(moved / max(float(moved.mean()), 1e-12), LEAST)
    return ",".join(f"{weight:.{DIGITS}f}" for weight in relative)


def _moved(slopes: FloatArray) -> float:
    """How far the score moves between two values, over all outputs."""
    each = np.abs(slopes[:, 0]) if slopes.shape[1] == 1 else np.sqrt(2 * slopes.var(axis=1))
    return float(np.sqrt(np.square(each).sum()))
