"""Numbers recoded into intervals, by cut points or a width."""

from __future__ import annotations

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes
from fedanon.data.hierarchy import FloatArray
from fedanon.data.schema import Numeric
from fedanon.errors import ConfigError


def cut_points(text: str, width: float | None, attribute: Numeric) -> FloatArray:
    """The cut points inside the declared range: those listed, or the multiples of the width.

    The end of the range belongs to the last interval of a width, and does not stand alone where it is a multiple.
    """
    if text.strip():
        try:
            cuts = np.array([float(cut) for cut in text.split(",")])
        except ValueError:
            raise ConfigError("The 'cuts' parameter must be numbers separated by commas.") from None
        if not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
            raise ConfigError("The 'cuts' parameter must be numbers in increasing order.")
    else:
        assert width is not None
        if not width > 0:
            raise ConfigError(f"The 'width' parameter must be above 0. Got {width!r} instead.")
        cuts = width * np.arange(np.floor(attribute.low / width), np.ceil(attribute.high / width))
    return cuts[(cuts > attribute.low) & (cuts <= attribute.high)]


def cut_cells(cells: Cells, cuts: FloatArray, attribute: Numeric) -> Intervals:
    """The interval between two cuts that holds each cell; the lower cut belongs to it.

    An interval that an earlier step left grows to all those it touches; values outside the declared range, as noise
    makes them, move the outermost bound.
    """
    assert not isinstance(cells, Nodes)
    low, high = (cells.low, cells.high) if isinstance(cells, Intervals) else (cells.values, cells.values)
    ends = (np.nanmin(low, initial=attribute.low), np.nanmax(high, initial=attribute.high))
    lower = np.concatenate([[ends[0]], cuts])
    # the next cut is no longer inside; of whole numbers the one below it is the last
    upper = np.concatenate([cuts - (1 if attribute.integer and _whole(cuts) else 0), [ends[1]]])
    missing = np.isnan(low)
    first, last = (np.searchsorted(cuts, np.where(missing, 0, bound), side="right") for bound in (low, high))
    return Intervals(np.where(missing, np.nan, lower[first]), np.where(missing, np.nan, upper[last]))


def _whole(values: FloatArray) -> bool:
    return bool((values == np.floor(values)).all())
