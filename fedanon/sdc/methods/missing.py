"""Missing numbers: they stay missing, and what a method computes, it computes from the rest.

A method that treats columns one by one sees the records that have a value. A method that needs whole records also sees
those that lack some of their values: left out, they would be published as they are. While the method computes, such a
record borrows what it lacks from a complete record drawn at random; afterwards it is missing again.
"""

from __future__ import annotations

import numpy as np

from fedanon.data.cells import Cells, Intervals, Nodes, Numbers
from fedanon.errors import InfeasibleError
from fedanon.types import FloatArray, IndexArray, Rng


def completed(values: FloatArray, width: int, rng: Rng) -> tuple[IndexArray, FloatArray]:
    """Return the records that have any of the first ``width`` values, and these records with nothing missing.

    What is missing is borrowed from complete records or, where there are none, from any record that has it.
    """
    missing = np.isnan(values)
    rows = np.flatnonzero(~missing[:, :width].all(axis=1))
    filled, lacking = values[rows], missing[rows]
    if not lacking.any():
        return rows, filled
    complete = np.flatnonzero(~lacking.any(axis=1))
    donors = filled[complete[rng.integers(len(complete), size=len(rows))]] if len(complete) else None
    for i in np.flatnonzero(lacking.any(axis=0)):
        here = lacking[:, i]
        if donors is None:
            known = values[~missing[:, i], i]
            if not len(known):
                raise InfeasibleError("A column has no value in any record, so nothing can be computed from it.")
            filled[here, i] = rng.choice(known, size=int(here.sum()))
        else:
            filled[here, i] = donors[here, i]
    return rows, filled


def with_numbers(cells: Cells, values: FloatArray) -> Cells:
    """Return a column with new numbers; where they are NaN, the cell says what it said: missing, or nothing."""
    assert not isinstance(cells, Nodes)
    absent = np.isnan(values)
    if not absent.any() or isinstance(cells, Numbers):
        return Numbers(np.ascontiguousarray(values))
    low, high = (np.where(absent, bound, values) for bound in (cells.low, cells.high))
    return Numbers(low) if np.isnan(low[absent]).all() else Intervals(low, high)
