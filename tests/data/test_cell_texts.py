"""parse_cells is the inverse of Cells.texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.cells import Intervals, Nodes, Numbers, parse_cells
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.infer import interval_hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role
from fedanon.errors import DataError, SchemaError
from fedanon.io.formula_guard import guard, unguard

QI = Role.QUASI_IDENTIFYING
AGE = Numeric("age", QI, -1e18, 1e18)
finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(finite, finite) | st.just((np.nan, np.nan)), max_size=8))
def test_intervals(pairs):
    bounds = np.array([sorted(pair) for pair in pairs]).reshape(-1, 2)
    cells = Intervals(bounds[:, 0], bounds[:, 1])
    read = parse_cells(cells.texts(), AGE)
    np.testing.assert_array_equal(read.keys(), cells.keys())


@given(st.lists(finite | st.just(np.nan), max_size=8))
def test_numbers_are_intervals_of_one_point(values):
    cells = Numbers(np.array(values, dtype=float))
    read = parse_cells(cells.texts(), AGE)
    np.testing.assert_array_equal(read.low, cells.values)
    np.testing.assert_array_equal(read.high, cells.values)


labels = st.lists(st.text(min_size=1).filter(lambda label: label != "*"), min_size=1, max_size=8, unique=True)


@given(labels, st.data())
def test_nodes(labels, data):
    tree = Hierarchy.flat(labels)
    nodes = data.draw(st.lists(st.integers(0, len(tree.labels) - 1)))
    cells = Nodes(np.array(nodes, dtype=np.int32), tree)
    read = parse_cells(cells.texts(), Categorical("ward", QI, tree))
    assert isinstance(read, Nodes)
    assert read.texts().tolist() == cells.texts().tolist()


def test_missing_adds_its_leaf_and_star_is_the_range():
    tree = Hierarchy.flat(["a", "b"])
    read = parse_cells(["(missing)", "a", "*"], Categorical("ward", QI, tree))
    assert read.hierarchy == tree.with_missing()
    assert read.texts().tolist() == ["(missing)", "a", "*"]
    whole = parse_cells(["*"], Numeric("age", QI, 0, 110))
    assert (whole.low[0], whole.high[0]) == (0, 110)


def test_nodes_of_a_numeric_taxonomy():
    attribute = Numeric("age", QI, 17, 90, True, interval_hierarchy(17, 90))
    assert isinstance(parse_cells(["[20, 25)", "21", "*"], attribute), Nodes)
    assert isinstance(parse_cells(["[20, 25]", "21", "*"], attribute), Intervals)


@pytest.mark.parametrize("text", ["CANARY-93417", "[1,2]", "[3, 2]", "[1, 2", "nan", "inf", "1_0", "", "1 "])
def test_what_is_no_cell(text):
    with pytest.raises(DataError, match="'age' of the release has 1 cells") as caught:
        parse_cells(["1", text], AGE)
    assert "CANARY" not in str(caught.value)


def test_unknown_labels_and_free_text():
    with pytest.raises(DataError, match="'ward' of the release has 2 cells that are no labels") as caught:
        parse_cells(["a", "CANARY-93417", "c"], Categorical("ward", QI, Hierarchy.flat(["a"])))
    assert "CANARY" not in str(caught.value)
    with pytest.raises(SchemaError, match="free text"):
        parse_cells(["a"], FreeText("note", Role.INSENSITIVE))


@given(st.text(alphabet="'=+-@\t\r1.e ax"))
def test_guard_is_undone_exactly(text):
    assert unguard(guard(text)) == text
    assert guard(text).startswith("'") or not text.startswith(("=", "@", "\t", "\r"))


@pytest.mark.parametrize("number", ["-5", "+1.5", "-1e-05", "-.5"])
def test_numbers_are_left_alone(number):
    assert guard(number) == number
