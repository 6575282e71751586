"""Margins: histograms of noisy counts, as weights of bins."""

from __future__ import annotations

import numpy as np

from fedanon.data.hierarchy import FloatArray, IntArray


def spread(counts: FloatArray, starts: IntArray, n_bins: int) -> FloatArray:
    """Counts of buckets, evenly over their bins."""
    lengths = np.diff(np.append(starts, n_bins))
    return np.asarray(np.repeat(counts / lengths, lengths))


def onto_total(counts: FloatArray, total: float) -> FloatArray:
    """The nearest numbers, none negative, with a given sum: all less one amount, cut off at 0 (Held et al. 1974).

    Cutting off alone would turn the noise of empty buckets into rows.
    """
    falling = np.sort(counts)[::-1]
    amounts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - amounts[np.flatnonzero(falling > amounts)[-1]], 0.0))
