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
#: positions of rows
IndexArray: TypeAlias = NDArray[np.int64]
AnyArray: TypeAlias = NDArray[Any]
Rng: TypeAlias = np.random.Generator
