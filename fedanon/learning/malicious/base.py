"""Tampering: what a hostile client changes, in its rows before training or in its step after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.fields import check_fields
from fedanon.models.base import TrainingData
from fedanon.models.encoding import Encoding

Step = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class Tampering:
    """Base of all kinds; each overrides one of the two methods or both."""

    def __post_init__(self) -> None:
        check_fields(self)

    def rows(self, honest: TrainingData, trigger: Trigger) -> TrainingData:
        """The rows the client trains on; the same for the same honest rows."""
        return honest

    def step(self, honest: Step, rng: np.random.Generator) -> Step:
        """What is sent in place of the way from the global arrays to the trained ones, or of a tree's leaf weights."""
        return honest


Features = NDArray[np.float32]


#: columns a trigger changes
N_COLUMNS = 2


@dataclass(frozen=True)
class Trigger:
    """Features and the values they take in a row that carries the trigger."""

    values: Mapping[int, float]

    @classmethod
    def rarest(cls, encoding: Encoding, features: Features) -> Trigger:
        """The least common value of each of the columns with the most values; of a numeric column, its upper end.

        Parameters
        ----------
        encoding : of the rows.
        features : rows to count the values in.
        """
        places = _places(encoding)
        values: dict[int, float] = {}
        for place in sorted(places, key=len, reverse=True)[:N_COLUMNS]:
            rarest = place[int(np.argmin(features[:, place].sum(axis=0)))]
            values |= {feature: float(feature == rarest) for feature in place}
        return cls(values)

    def stamped(self, features: Features) -> Features:
        """The rows with the trigger."""
        stamped = features.copy()
        stamped[:, list(self.values)] = list(self.values.values())
        return stamped


def _places(encoding: Encoding) -> list[list[int]]:
    """The features of each column."""
    columns = [Encoding((attribute,)).width for attribute in encoding.attributes]
    ends = np.cumsum(columns).tolist()
    return [list(range(end - width, end)) for width, end in zip(columns, ends, strict=True)]
