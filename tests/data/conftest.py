"""Shared by the tests of fedanon.data."""

from __future__ import annotations

import pytest

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema

QI = Role.QUASI_IDENTIFYING


@pytest.fixture
def schema() -> Schema:
    """A ward: a number, a tree, a sensitive column, free text and an identifier."""
    tree = Hierarchy.from_nested({"Surgery": ["cardiac", "ortho"], "Medicine": ["general", "onco"]})
    return Schema(
        (
            FreeText("id", Role.IDENTIFYING),
            Numeric("age", QI, 0, 110, True),
            Categorical("ward", QI, tree),
            Categorical("diagnosis", Role.SENSITIVE, Hierarchy.flat(["a", "b"])),
            FreeText("note", Role.INSENSITIVE),
        ),
        name="ward",
        target="diagnosis",
    )
