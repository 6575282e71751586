"""Counts of the records like each record where some cells say nothing: missing, or suppressed to '*'.

Rows are codes of key combinations, one column per key; SUPPRESSED stands for a cell that says nothing. Two rows *agree*
if they are equal wherever both say something.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedanon.data.groups import Groups
from fedanon.types import BoolArray, FloatArray, IndexArray, IntArray

#: the code of a cell that says nothing
SUPPRESSED = -1


def wildcard_people(codes: IntArray, weights: FloatArray) -> FloatArray:
    """Sum the weights of the rows that agree with each row, the row itself included."""
    total = np.zeros(len(codes))
    for mine, theirs, labels, count in _pairs_of_patterns(codes):
        total[mine] += np.bincount(labels[theirs], weights[theirs], minlength=count)[labels[mine]]
    return total


def sdcmicro_people(codes: IntArray, weights: FloatArray) -> FloatArray:
    """Sum the weights of the rows that agree with each row, as R's sdcMicro does in ``freqCalc``.

    There, with several keys, a row without any missing key is not compared with rows that lack all of them, although
    these are compared with it.
    """
    total = wildcard_people(codes, weights)
    silent = codes == SUPPRESSED
    if codes.shape[1] > 1:
        total[~silent.any(axis=1)] -= weights[silent.all(axis=1)].sum()
    return total


def _pairs_of_patterns(codes: IntArray) -> Iterator[tuple[IndexArray, IndexArray, IntArray, int]]:
    """Yield the rows of every two patterns of silent cells, and the groups of all rows by the keys neither lacks."""
    silent = codes == SUPPRESSED
    kinds = Groups.equal_rows(silent)
    patterns = silent[kinds.first_rows]
    rows = [np.flatnonzero(kinds.labels == kind) for kind in range(kinds.count)]
    joint = (patterns[:, None] | patterns).reshape(-1, codes.shape[1])
    unions = Groups.equal_rows(joint)
    pairs = np.array(list(np.ndindex(kinds.count, kinds.count)))
    # many pairs share few unions, and sorting the rows is what takes time
    for union, pattern in enumerate(joint[unions.first_rows]):
        groups = Groups.equal_rows(codes[:, ~pattern])
        for i, j in pairs[unions.labels == union]:
            yield rows[i], rows[j], groups.labels, groups.count


def consistent_people(codes: IntArray, people: FloatArray, suppressed: BoolArray) -> FloatArray:
    """Count, for every combination, the people whose published rows an attacker who knows it could take for its own."""
    kinds = Groups.equal_rows(suppressed)
    total = np.zeros(len(codes))
    for kind, pattern in enumerate(suppressed[kinds.first_rows]):
        labels = Groups.equal_rows(codes[:, ~pattern]).labels
        total += np.bincount(labels, people * (kinds.labels == kind))[labels]
    return total
