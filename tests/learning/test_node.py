"""A node's split: people, not rows."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.learning.node import Node
from fedanon.learning.thesis_node import PublishedNode
from tests.federated.conftest import first_rows, settings

SCHEMA = """
name = "visits"
target = "ill"
person_id = "who"
[attributes.who]
role = "identifying"
type = "text"
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 1000]
[attributes.ill]
role = "sensitive"
type = "categorical"
values = ["no", "yes"]
"""


def visits(per_person: int, people: int = 40) -> Table:
    """Every person has an age of its own, so the rows of a split tell whose they are."""
    rng = np.random.default_rng(0)
    who = rng.permutation(np.repeat(np.arange(people), per_person))
    frame = pd.DataFrame({"who": [f"p{i:03}" for i in who], "age": who, "ill": rng.choice(["no", "yes"], len(who))})
    return Table.from_frame(frame, Schema.from_dict(tomllib.loads(SCHEMA)))


def ages(table: Table) -> set[float]:
    return set(table.frame["age"].tolist())


def test_all_rows_of_a_person_are_on_one_side() -> None:
    train, test = Node(visits(5), settings(), 0)._split
    assert not ages(train) & ages(test)
    assert len(ages(test)) == 8
    assert len(train) + len(test) == 200
    assert train.n_units == 32


def test_one_row_a_person_is_split_as_rows_are() -> None:
    table = visits(1)
    named, unnamed = (Node(t, settings(), 3)._split for t in (table, replace(table, persons=None)))
    for one, other in zip(named, unnamed, strict=True):
        pd.testing.assert_frame_equal(one.frame, other.frame)


def test_one_person_cannot_be_split() -> None:
    with pytest.raises(InfeasibleError, match="1 people cannot be split"):
        _ = Node(visits(5, people=1), settings(), 0)._split


def test_the_published_split_is_that_of_scikit_learn() -> None:
    from sklearn.model_selection import train_test_split

    table = first_rows()
    for rows in (1_500, 1_001, 7):
        node = PublishedNode(table.select_rows(np.arange(rows)), settings(protocol="as_published"), 0)
        for ours, theirs in zip(
            node._rows, train_test_split(np.arange(rows), test_size=0.3, random_state=42), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
