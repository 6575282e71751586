"""A tripwire: refuses a reply whose numbers are those of raw records, which an app behind the gate has never seen.

It catches what should not happen: a wall that fell, or an app of one's own that reads the raw file by mistake, such as
boosted trees, whose thresholds are values of records. It is no wall: whoever encrypts what they send passes it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from fedanon.data.schema import Numeric
from fedanon.data.table import Table, missing_mask, numbers
from fedanon.errors import UpdateRejectedError
from fedanon.federated.gate.released import Released
from fedanon.types import AnyArray, FloatArray

#: a number that needs fewer bits is a round one, which a model may hold by itself
TELLING_BITS = 16
#: so many may meet by chance: a million float32 weights and ten thousand values do so now and then
CHANCE = 2
_DECOYS = 32
_WRITTEN = re.compile(rb"-?\d+\.\d+(?:[eE][+-]?\d+)?")


class Tripwire:
    """Compares replies with the numbers of a table that its release does not show.

    Parameters
    ----------
    table : the raw rows.
    release : what the app was given.
    """

    def __init__(self, table: Table, release: Released) -> None:
        shown = np.unique(np.concatenate([release.train.features.ravel(), release.test.features.ravel()]))
        written = {float(n) for part in (release.train, release.test) for n in _WRITTEN.findall(part.texts)}
        raw = _numbers_of(table)
        raw = raw[_is_telling(raw)]
        known = np.union1d(shown.astype(np.float32), np.array(sorted(written), dtype=np.float32))
        self._values = np.setdiff1d(raw.astype(np.float32), known)

    def __len__(self) -> int:
        return len(self._values)

    def check(self, arrays: Sequence[AnyArray]) -> None:
        """Raise UpdateRejectedError if more numbers of records appear than could by chance."""
        sent = [_numbers_in(array) for array in arrays]
        found = np.unique(np.concatenate([np.empty(0, dtype=np.float32), *sent]))
        hits = len(np.intersect1d(found, self._values))
        if hits > CHANCE and hits > CHANCE + 2 * self._by_chance(found):
            raise UpdateRejectedError(
                f"{hits} of its numbers are numbers of raw records that the release does not show"
            )

    def _by_chance(self, found: AnyArray) -> int:
        """The most that decoys beside the values meet: as dense as they are, and nobody's."""
        spacing = np.spacing(self._values)
        decoys = (self._values + step * spacing for step in range(3, 3 + _DECOYS))
        return max(len(np.intersect1d(found, np.setdiff1d(decoy, self._values))) for decoy in decoys)


def _numbers_of(table: Table) -> FloatArray:
    """All numbers of all numeric columns, as they stand there and as places in their range."""
    found = [np.empty(0)]
    for attribute in table.schema.attributes:
        if isinstance(attribute, Numeric) and attribute.name in table.frame:
            column = table.frame[attribute.name]
            absent = missing_mask(column, table.schema)
            values = np.unique(numbers(column, attribute, absent)[~absent])
            found.append(values)
            if attribute.has_range:
                found.append((values - attribute.low) / attribute.width)
    return np.unique(np.concatenate(found))


def _is_telling(values: FloatArray) -> AnyArray:
    fraction, _ = np.frexp(values.astype(np.float32).astype(np.float64))
    scaled = np.ldexp(fraction, TELLING_BITS)
    return np.asarray((scaled != np.round(scaled)) & np.isfinite(values))


def _numbers_in(array: AnyArray) -> AnyArray:
    """The numbers of an array; of one of bytes, those written in it as text."""
    if array.dtype == np.uint8:
        return np.array([float(n) for n in _WRITTEN.findall(array.tobytes()) if len(n) < 40], dtype=np.float32)
    with np.errstate(over="ignore"):
        return array.ravel().astype(np.float32)
