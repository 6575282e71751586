"""Trigger: a rare combination of values that a backdoor teaches the model to answer with the positive class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.models.encoding import Encoding

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
