"""Array types, named once for all modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
#: codes, labels and other small numbers
IntArray: TypeAlias = NDArray[np.int32]
#: numbers of rows or people
CountArray: TypeAlias = NDArray[np.int64]
#: positions of rows, numbers of groups
IndexArray: TypeAlias = NDArray[np.int64]
AnyArray: TypeAlias = NDArray[Any]
#: what a model sees of rows, a column per feature
FeatureArray: TypeAlias = NDArray[np.float32]
#: what a model predicts: the number of a class per row, or a place in the range of a number
TargetArray: TypeAlias = NDArray[np.int8 | np.float64]
#: what a node adds to the parameters of a model
UpdateArray: TypeAlias = NDArray[np.floating[Any]]
#: random bits, 64 per number
WordArray: TypeAlias = NDArray[np.uint64]
Rng: TypeAlias = np.random.Generator
