"""Validation of answers: what a hostile or broken client sends must not reach the sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.federated.together.questions import Answered, Counts

#: no hospital, and no federation whose counts are summed behind masks, has more people
MAX_PEOPLE = 10**8
SMALL = np.iinfo(np.uint8).max


def pack_counts(counts: Counts) -> NDArray[Any]:
    """Counts in the smallest type of the wire that holds them."""
    low, high = int(counts.min(initial=0)), int(counts.max(initial=0))
    return counts.astype(np.uint8 if low >= 0 and high <= SMALL else np.int32)


def read_counts(arrays: Sequence[NDArray[Any]], expected: int) -> Counts:
    """The numbers of an answer."""
    if len(arrays) != 1 or arrays[0].dtype not in (np.uint8, np.int32):
        raise UpdateRejectedError("its answer is not one array of counts")
    if arrays[0].shape != (expected,):
        raise UpdateRejectedError(f"its answer has another shape than the {expected} counts that were asked")
    return arrays[0].astype(np.int64)


def check_counts(counts: Counts, layout: Answered, *, persons: bool, noisy: bool, exact: bool) -> None:
    """Refuse what cannot be: counts of rows and, if a row is not a person, of people."""
    if np.abs(counts).max(initial=0) > MAX_PEOPLE or (not noisy and counts.min(initial=0) < 0):
        raise UpdateRejectedError("its counts are out of bounds")
    if persons and (counts[layout.total :] > counts[: layout.total]).any() and not noisy:
        raise UpdateRejectedError("it counts more people than rows")
    if exact and not layout.consistent(counts[: layout.total]):
        raise UpdateRejectedError("its histograms of a region do not count the same rows")
