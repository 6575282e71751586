"""Taxonomies made by rule are trees, and their labels tell the truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.infer import date_hierarchy, interval_hierarchy, prefix_hierarchy
from fedanon.errors import ConfigError, FedanonError, SchemaError

CANARY = "CANARY-93417"


@given(st.integers(-200, 200), st.integers(0, 120), st.sampled_from([(5, 10, 20), (2, 6), (1, 7), ()]))
def test_intervals_hold_their_leaves(low, length, widths):
    tree = interval_hierarchy(low, low + length, widths)
    assert tree.labels[: tree.n_leaves] == tuple(str(i) for i in range(low, low + length + 1))
    for leaf, *bins, root in tree.paths():
        assert root == "*"
        for label, width in zip(bins, widths, strict=True):
            lower, upper = map(int, label[1:-1].split(", "))
            assert label == f"[{lower}, {upper})"
            assert lower <= int(leaf) < upper == lower + width
            assert lower % width == 0


def test_decimal_leaves_are_exact():
    paths = interval_hierarchy(-0.2, 0.3, [0.2, 1], step=0.1).paths()
    assert [path[0] for path in paths] == ["-0.2", "-0.1", "0", "0.1", "0.2", "0.3"]
    assert paths[0][1:] == ["[-0.2, 0)", "[-1, 0)", "*"]
    assert paths[3][1:] == ["[0, 0.2)", "[0, 1)", "*"]


def test_origin_shifts_the_intervals():
    assert interval_hierarchy(17, 30, [5], origin=2).paths()[0][1] == "[17, 22)"


@pytest.mark.parametrize(
    "options",
    [
        {"low": 5, "high": 1},
        {"low": 0, "high": 9, "widths": [5, 12]},
        {"low": 0, "high": 9, "widths": [10, 5]},
        {"low": 0, "high": 9, "widths": [5, 5]},
        {"low": 0, "high": 9, "widths": [-5]},
        {"low": 0, "high": 9, "widths": [0]},
        {"low": 0, "high": 9, "widths": [1.5]},
        {"low": 0, "high": 9, "step": 0},
        {"low": 0, "high": float("inf")},
        {"low": 0, "high": 1e9},
    ],
)
def test_wrong_intervals(options):
    with pytest.raises(ConfigError):
        interval_hierarchy(**options)


def test_prefixes():
    tree = prefix_hierarchy(["36571-100", "36570-000", "36570-000"], levels=4)
    assert tree.paths()[0] == ["36570-000", "36570-00*", "36570-0**", "36570-***", "3657*-***", "*"]
    assert tree.n_leaves == 2
    assert prefix_hierarchy(["a", "b"]).paths() == [["a", "*"], ["b", "*"]]


@given(st.lists(st.text("ab-1", min_size=3, max_size=3), min_size=1, unique=True), st.integers(1, 5) | st.none())
def test_prefixes_are_always_a_tree(codes, levels):
    tree = prefix_hierarchy(codes, levels=levels)
    assert sorted(tree.codes) == sorted(codes)


def test_wrong_prefixes():
    for values, options, match in [
        ([CANARY, "b"], {}, "2 different lengths"),
        ([CANARY + "*"], {}, "1 codes .* masking sign"),
        ([CANARY], {"levels": 0}, "'levels'"),
        ([CANARY], {"mask": "xx"}, "'mask'"),
        ([], {}, "empty"),
    ]:
        with pytest.raises(FedanonError, match=match) as caught:
            prefix_hierarchy(values, **options)
        assert CANARY not in str(caught.value)


@given(st.lists(st.dates(), min_size=1))
def test_dates_lie_in_their_periods(days):
    for leaf, *periods, root in date_hierarchy(day.isoformat() for day in days).paths():
        assert root == "*"
        assert len(periods) == 4
        for label in periods:
            first, after = label[1:-1].split(", ")
            # the year 10000 is the one text that sorts before what it follows
            assert first <= leaf
            assert leaf < after or after == "10000-01-01"


def test_dates_by_quarter():
    path = date_hierarchy(["2020-02-29"]).paths()[0]
    assert path == [
        "2020-02-29",
        "[2020-02-01, 2020-03-01)",
        "[2020-01-01, 2020-04-01)",
        "[2020-01-01, 2021-01-01)",
        "[2020-01-01, 2030-01-01)",
        "*",
    ]


@pytest.mark.parametrize(
    "wrong", [CANARY, "2021-02-29", "20210101", "2021-1-1", "2021-01-01T00", "2021-01-\u0660\u0661"]
)
def test_wrong_dates(wrong):
    with pytest.raises(SchemaError, match=r"1 values .* not ISO dates") as caught:
        date_hierarchy(["2020-01-01", wrong])
    assert wrong not in str(caught.value)
