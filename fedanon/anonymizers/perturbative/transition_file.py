"""A transition matrix in a CSV file, named by the categories of a column.

The header names the categories drawn, the first field of a line the category a record has::

    from,F,M
    F,0.99,0.01
    M,0,1
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from fedanon.anonymizers.perturbative.post_randomization import Transition
from fedanon.anonymizers.perturbative.transitions import refuse_no_transition
from fedanon.data.csv_file import read_frame
from fedanon.data.hierarchy import Hierarchy
from fedanon.errors import ConfigError


def read_transition(path: str | Path, hierarchy: Hierarchy, column: str) -> Transition:
    """Read and check the matrix of ``column``, whose taxonomy is ``hierarchy``."""
    frame = read_frame(path)
    labels = [str(label) for label in frame.columns[1:]]
    unknown = sum(label not in hierarchy.nodes for label in labels)
    if unknown:
        raise ConfigError(f"The transition matrix names {unknown} categories that the column {column!r} does not have.")
    if frame.iloc[:, 0].tolist() != labels:
        raise ConfigError("The lines of a transition matrix must name the categories of its header, in the same order.")
    matrix = frame.iloc[:, 1:].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    refuse_no_transition(matrix)
    return Transition(np.array([hierarchy.nodes[label] for label in labels], dtype=np.int32), matrix)
