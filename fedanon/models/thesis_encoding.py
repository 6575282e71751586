"""Encodings of the published values themselves, as in the thesis's experiments.

They are fitted to one release, so the features of two nodes differ in number and meaning; kept to reproduce figures.
Use :class:`fedanon.models.encoding.Encoding` for everything else.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Nodes
from fedanon.data.schema import Numeric
from fedanon.release.release import Release
from fedanon.types import FloatArray, IntArray

#: the number that stands for '*' in a numeric column; the thesis chose it for age
UNKNOWN = 50.5

_RANGE = re.compile(r"\D*(\d+(?:\.\d+)?)(?:\D+(\d+(?:\.\d+)?))?\D*")


def one_hot_published(release: Release) -> FloatArray:
    """Numbers scaled to 0..1 over the rows; other columns one-hot over the values that occur, the first one dropped.

    The numeric columns come first: ties of k-NN and the draws of a forest depend on the order of the features.

    Parameters
    ----------
    release : the published table; suppressed rows are left out.
    """
    numeric, one_hot = [], []
    for attribute in release.schema.quasi_identifiers:
        if isinstance(attribute, Numeric):
            values = _numbers(release, attribute.name, UNKNOWN)
            numeric.append(((values - values.min()) / (np.ptp(values) or 1.0))[:, None])
        else:
            levels, codes = np.unique(_texts(release, attribute.name), return_inverse=True)
            one_hot.append(np.eye(len(levels))[codes][:, 1:])
    return np.hstack([*numeric, *one_hot])


def label_codes(release: Release) -> FloatArray:
    """One column per quasi-identifier: numbers as they are, texts as their place in the release's alphabetical list.

    '*' in a numeric column counts as the middle of its declared range.
    """
    columns: list[FloatArray] = []
    for attribute in release.schema.quasi_identifiers:
        if isinstance(attribute, Numeric):
            columns.append(_numbers(release, attribute.name, (attribute.low + attribute.high) / 2))
        else:
            codes = np.unique(_texts(release, attribute.name), return_inverse=True)[1]
            columns.append(codes.astype(np.float64))
    return np.column_stack(columns)


def _kept(release: Release) -> IntArray:
    return release.groups.labels[~release.suppressed]


def _texts(release: Release, name: str) -> NDArray[np.str_]:
    return release.cells[name].texts().astype(str)[_kept(release)]


def _numbers(release: Release, name: str, unknown: float) -> FloatArray:
    """Middles of intervals; a taxonomy of numbers has them in its labels, '25-29'."""
    cells = release.cells[name]
    values = cells.midpoints() if not isinstance(cells, Nodes) else np.array([_middle(t) for t in cells.texts()])
    return np.asarray(np.nan_to_num(values, nan=unknown)[_kept(release)], dtype=np.float64)


def _middle(label: str) -> float:
    found = _RANGE.fullmatch(label)
    if found is None:
        return float("nan")
    low = float(found[1])
    return (low + float(found[2] or low)) / 2
