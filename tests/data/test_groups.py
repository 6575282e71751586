"""Groups of equal rows are the same whether rows are packed into numbers or compared column by column."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from fedanon.data.groups import Groups

SHAPES = st.tuples(st.integers(0, 30), st.integers(1, 4))


@given(arrays.arrays(np.int64, SHAPES, elements=st.integers(-3, 3)))
def test_packed_rows_are_grouped_like_compared_ones(columns):
    packed, compared = Groups.equal_rows(columns), Groups.equal_rows(columns.astype(np.float64))
    np.testing.assert_array_equal(packed.labels, compared.labels)
    assert packed.count == compared.count


def test_numbers_that_do_not_fit_are_compared():
    far = np.array([[2**62, 1, -(2**62)], [-(2**62), 1, 2**62], [2**62, 1, -(2**62)]])
    np.testing.assert_array_equal(Groups.equal_rows(far).labels, [1, 0, 1])
