"""Decoding: a row of features, perhaps blurred, read back as values of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedanon.data.schema import Numeric
from fedanon.models.columns import CategoricalColumn
from fedanon.models.encoding import Encoding

Features = NDArray[np.float32]
FloatArray = NDArray[np.float64]

#: a number that is not whole is right within this share of its declared range
CLOSE = 1e-3
#: categories whose weights differ less, relative to the largest, count as equally likely
LEVEL = 0.01


@dataclass(frozen=True, eq=False)
class Decoder:
    """Reads values off features; where several categories are as likely, the commonest of the table is guessed.

    Parameters
    ----------
    encoding : how columns became features.
    raw : features of the raw table, whose marginals the attacker knows.
    """

    encoding: Encoding
    raw: Features

    @cached_property
    def places(self) -> list[slice]:
        """Where the features of every column stand."""
        return places_of(self.encoding)

    @cached_property
    def numeric(self) -> list[tuple[int, int]]:
        """Number of every numeric column, and of its feature."""
        columns = enumerate(zip(self.encoding.attributes, self.places, strict=True))
        return [(i, place.start) for i, (attribute, place) in columns if isinstance(attribute, Numeric)]

    @cached_property
    def categorical(self) -> list[slice]:
        """Where the features of every categorical column stand."""
        columns = zip(self.encoding.attributes, self.places, strict=True)
        return [place for attribute, place in columns if not isinstance(attribute, Numeric)]

    def values(self, rows: NDArray[np.floating]) -> FloatArray:
        """One value a column: the number of the category, or the number's place in the declared range."""
        return np.column_stack([self._value(rows[:, place], i) for i, place in enumerate(self.places)])

    @cached_property
    def commonest(self) -> FloatArray:
        """The value most people have, of every column: the best guess without anything to look at."""
        found = [np.unique(column, return_counts=True) for column in self.values(self.raw).T]
        return np.array([values[int(np.argmax(counts))] for values, counts in found])

    def right(self, guesses: FloatArray, truth: FloatArray) -> NDArray[np.bool_]:
        """Which guesses are the true values."""
        return np.asarray(np.abs(guesses - truth) <= self._tolerances)

    @cached_property
    def _tolerances(self) -> FloatArray:
        return np.array([_tolerance(a) if isinstance(a, Numeric) else 0.0 for a in self.encoding.attributes])

    @cached_property
    def _shares(self) -> FloatArray:
        return np.asarray(self.raw.mean(axis=0), dtype=np.float64)

    def _value(self, weights: NDArray[np.floating], number: int) -> FloatArray:
        if isinstance(self.encoding.attributes[number], Numeric):
            return np.asarray(np.clip(weights[:, 0], 0.0, 1.0), dtype=np.float64)
        likely = weights >= (1 - LEVEL) * weights.max(axis=1, keepdims=True)
        shares = np.where(likely, self._shares[self.places[number]], -1.0)
        return np.asarray(np.argmax(shares, axis=1), dtype=np.float64)


def _tolerance(attribute: Numeric) -> float:
    return 0.5 / attribute.width if attribute.integer else CLOSE


def places_of(encoding: Encoding) -> list[slice]:
    """Where the features of every column stand."""
    widths = [1 if isinstance(a, Numeric) else len(CategoricalColumn(a).values) for a in encoding.attributes]
    ends = np.cumsum(widths).tolist()
    return [slice(end - width, end) for width, end in zip(widths, ends, strict=True)]
