"""Every partitioner covers every row exactly once and keeps people whole."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.partition import by_column, dirichlet, iid, parse_partition, quantity
from fedanon.data.schema import Categorical, FreeText, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError


def table_of(rows: int, *, people: int | None = None) -> Table:
    schema = Schema(
        (
            FreeText("person", Role.IDENTIFYING),
            FreeText("site", Role.INSENSITIVE),
            Categorical("label", Role.SENSITIVE, Hierarchy.flat(["no", "yes"])),
        ),
        target="label",
        person_id="person" if people else None,
    )
    person = np.arange(rows) % (people or rows)
    frame = pd.DataFrame(
        {
            "person": person.astype(str),
            "site": [f"S{p % 3}" for p in person],
            "label": np.where(person % 4 == 0, "yes", "no"),
        }
    )
    return Table.from_frame(frame, schema)


def covers(parts, table):
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(table)))
    if table.persons is not None:
        owners = [set(table.persons[part].tolist()) for part in parts]
        assert sum(map(len, owners)) == len(set().union(*owners))


@settings(max_examples=40)
@given(
    st.sampled_from(["iid", "dirichlet:0.5", "dirichlet:5:site", "quantity:2", "by:site"]),
    st.sampled_from([None, 40]),
    st.integers(0, 2**32),
)
def test_every_row_once_and_people_whole(text, people, seed):
    table = table_of(100, people=people)
    parts = parse_partition(text)(table, 3, np.random.default_rng(seed))
    assert len(parts) == 3
    assert all(len(part) for part in parts)
    covers(parts, table)
    again = parse_partition(text)(table, 3, np.random.default_rng(seed))
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


def test_iid_shares_are_equal():
    assert [len(part) for part in iid(table_of(10), 3, np.random.default_rng(0))] == [4, 3, 3]


def test_small_alpha_skews_labels_and_large_alpha_does_not():
    table = table_of(4000)
    yes = (table.frame["label"] == "yes").to_numpy()

    def spread(alpha):
        parts = dirichlet(table, 4, None, alpha, np.random.default_rng(1))
        return np.std([yes[part].mean() for part in parts])

    assert spread(0.1) > 0.1 > 0.03 > spread(1000)


def test_quantity_skews_sizes():
    sizes = [len(part) for part in quantity(table_of(4000), 4, 0.3, np.random.default_rng(1), at_least=20)]
    assert min(sizes) >= 20
    assert max(sizes) > 2 * min(sizes)


def test_by_column_is_sorted_and_keeps_missing_rows():
    table = table_of(10)
    table.frame.loc[[0, 5], "site"] = None
    parts = by_column(table, "site")
    assert [part.tolist() for part in parts] == [[3, 6, 9], [1, 4, 7], [2, 8], [0, 5]]


def test_people_in_two_places_are_not_torn():
    table = table_of(10, people=5)
    table.frame.loc[0, "site"] = "elsewhere"
    with pytest.raises(InfeasibleError, match="1 people have rows with different values of 'site'"):
        by_column(table, "site")


def test_what_cannot_be_met():
    table, rng = table_of(10), np.random.default_rng(0)
    with pytest.raises(InfeasibleError, match="10 people cannot be dealt out to 11"):
        iid(table, 11, rng)
    with pytest.raises(InfeasibleError, match="at least 6 rows"):
        quantity(table, 2, 1.0, rng, at_least=6)
    with pytest.raises(InfeasibleError, match="alpha=1e-06"):
        dirichlet(table_of(30), 20, "label", 1e-6, rng)


@pytest.mark.parametrize("text", ["", "iid:1", "dirichlet", "dirichlet:x", "quantity", "quantity:1:2", "by", "zipf:1"])
def test_unknown_partitions(text):
    with pytest.raises(ConfigError):
        parse_partition(text)


def test_wrong_parameters():
    table, rng = table_of(10), np.random.default_rng(0)
    for text, nodes in [
        ("iid", 0),
        ("iid", None),
        ("dirichlet:0", 2),
        ("quantity:inf", 2),
        ("by:nowhere", None),
        ("by:site", 4),
    ]:
        with pytest.raises(ConfigError):
            parse_partition(text)(table, nodes, rng)
    bare = Table.from_frame(pd.DataFrame({"a": ["1", "2"]}), Schema((FreeText("a", Role.INSENSITIVE),)))
    with pytest.raises(ConfigError, match="no target"):
        dirichlet(bare, 2, None, 1.0, rng)
