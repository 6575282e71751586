"""Validation of answers: what a hostile or broken client sends must not reach the sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.federated.together.questions import Counts, Layout

#: no hospital has more people
MAX_PEOPLE = 10**8
SMALL = np.iinfo(np.uint8).max


def pack_counts(counts: Counts) -> NDArray[Any]:
    """Counts in the smallest type of the wire that holds them."""
    low, high = int(counts.min(initial=0)), int(counts.max(initial=0))
    return counts.astype(np.uint8 if low >= 0 and high <= SMALL else np.int32)


def read_counts(arrays: Sequence[NDArray[Any]], layout: Layout, *, persons: bool, noisy: bool, exact: bool) -> Counts:
    """A client's counts, checked: of rows and, if a row is not a person, of people."""
    if len(arrays) != 1 or arrays[0].dtype not in (np.uint8, np.int32):
        raise UpdateRejectedError("its answer is not one array of counts")
    expected = layout.total * (2 if persons else 1)
    if arrays[0].shape != (expected,):
        raise UpdateRejectedError(f"its answer has another shape than the {expected} counts that were asked")
    counts = arrays[0].astype(np.int64)
    if np.abs(counts).max(initial=0) > MAX_PEOPLE or (not noisy and counts.min(initial=0) < 0):
        raise UpdateRejectedError("its counts are out of bounds")
    if persons and (counts[layout.total :] > counts[: layout.total]).any() and not noisy:
        raise UpdateRejectedError("it counts more people than rows")
    if exact:
        _check_sums(counts[: layout.total], layout)
    return counts


def _check_sums(rows: Counts, layout: Layout) -> None:
    """All histograms of a region count the same rows."""
    flat = layout.sizes.ravel() > 0
    if not flat.any():
        return
    sums = np.zeros(flat.size, dtype=np.int64)
    sums[flat] = np.add.reduceat(rows, layout.offsets.ravel()[flat])
    by_region = sums.reshape(layout.sizes.shape)
    asked = layout.sizes > 0
    largest = np.where(asked, by_region, 0).max(axis=1)
    smallest = np.where(asked, by_region, MAX_PEOPLE).min(axis=1)
    if (largest != smallest)[asked.any(axis=1)].any():
        raise UpdateRejectedError("its histograms of a region do not count the same rows")
