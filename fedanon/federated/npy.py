"""Arrays on the wire: numpy's own file format, as Flower writes it, without parsing a header for every array.

numpy writes a header as text and evaluates it on reading, which for a small array costs far more than its numbers. Here
the header of a type and shape is written once and compared on reading; one that differs is parsed.
"""

from __future__ import annotations

import io
import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from flwr.app import Array
from numpy.lib import format as npy
from numpy.typing import NDArray

STYPE = "numpy.ndarray"
NUMBERS = {name: np.dtype(name) for name in ("float16", "float32", "float64", "uint8", "int8", "int32", "int64")}
NAMES = {dtype: name for name, dtype in NUMBERS.items()}
MAX_AXES = 8
Order = Literal["C", "F"]


def to_array(values: NDArray[Any]) -> Array:
    """The bytes `numpy.save` would write, as Flower's record of an array."""
    name = NAMES.get(values.dtype)
    if name is None:
        return Array(values)
    return Array(dtype=name, shape=values.shape, stype=STYPE, data=_header(name, values.shape) + values.tobytes())


def from_array(array: Array) -> NDArray[Any]:
    """The numbers of an array that came over the wire; what it says of itself must be true.

    Raises
    ------
    ValueError
        If the bytes are no array of numbers, or another one than is declared beside them.
    """
    if array.stype != STYPE or array.dtype not in NUMBERS or len(array.shape) > MAX_AXES:
        raise ValueError("not an array of numbers")
    if any(type(length) is not int for length in array.shape):
        raise ValueError("not a shape")  # True equals 1: it would find its way into the cache
    dtype, shape = NUMBERS[array.dtype], array.shape
    header = _header(array.dtype, shape)
    order: Order = "C"
    start = len(header)
    if not array.data.startswith(header):
        start, order = _parsed(array.data, dtype, shape)
    if len(array.data) - start != dtype.itemsize * math.prod(shape):
        raise ValueError("more or fewer numbers than declared")
    values = np.frombuffer(array.data, dtype, offset=start).reshape(shape, order=order)
    return values.copy()  # what is read may be changed


@lru_cache(maxsize=256)
def _header(dtype: str, shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": NUMBERS[dtype].str, "fortran_order": False, "shape": shape})
    return file.getvalue()


def _parsed(data: bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[int, Order]:
    """Where the numbers begin and their order, by a header that another numpy wrote."""
    file = io.BytesIO(data)
    if npy.read_magic(file) != (1, 0):
        raise ValueError("another version of the format")
    found, fortran, kind = npy.read_array_header_1_0(file)
    if found != shape or kind != dtype:
        raise ValueError("another array than declared")
    return file.tell(), "F" if fortran else "C"
