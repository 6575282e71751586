"""Arrays on the wire: numpy's format to the byte, read by Flower and from Flower; lies are refused."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array

from fedanon.federated import wire as npy
from fedanon.federated.wire import NUMBERS, STYPE, from_array, to_array

SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (2, 3), (1, 1, 5)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_bytes_are_those_of_numpy(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(np.prod(shape, dtype=int)) + 1).astype(dtype).reshape(shape)
    ours, flowers = to_array(values), Array(values)
    assert (ours.dtype, ours.shape, ours.stype, ours.data) == (
        flowers.dtype,
        flowers.shape,
        flowers.stype,
        flowers.data,
    )
    for read in (from_array(ours), from_array(flowers), ours.numpy()):
        np.testing.assert_array_equal(read, values)
        assert (read.dtype, read.shape) == (values.dtype, values.shape)


def test_an_array_in_another_order_is_read_rightly() -> None:
    values = np.arange(6.0).reshape(2, 3, order="F")
    assert b"'fortran_order': True" in Array(values).data
    np.testing.assert_array_equal(from_array(Array(values)), values)
    np.testing.assert_array_equal(from_array(to_array(values)), values)


def test_a_header_written_otherwise_is_parsed() -> None:
    values = np.arange(5.0)
    padded = (
        b"\x93NUMPY\x01\x00\xb6\x00" + b"{'shape': (5,), 'fortran_order': False, 'descr': '<f8'}".ljust(181) + b"\n"
    )
    array = Array(dtype="float64", shape=(5,), stype=STYPE, data=padded + values.tobytes())
    np.testing.assert_array_equal(array.numpy(), values)
    np.testing.assert_array_equal(from_array(array), values)


def test_what_is_read_can_be_changed() -> None:
    sent = to_array(np.zeros(3))
    from_array(sent)[0] = 1.0
    assert from_array(sent)[0] == 0.0


def test_a_shape_of_truth_values_does_not_change_later_headers() -> None:
    data = to_array(np.ones(1)).data.replace(b"(1,), }   ", b"(True,), }")
    npy._header.cache_clear()
    with pytest.raises(ValueError, match="not a shape"):
        from_array(Array("float64", (True,), STYPE, data))
    assert b"(1,)" in to_array(np.ones(1)).data


@pytest.mark.parametrize("dtype", ["object", "complex128", "|S1", "datetime64[s]", "float128", "nonsense"])
def test_only_numbers_are_read(dtype: str) -> None:
    with pytest.raises(ValueError, match="numbers"):
        from_array(Array(dtype=dtype, shape=(1,), stype=STYPE, data=Array(np.zeros(1)).data))
