"""Hypothesis strategies: small tables of every shape an anonymizer may meet."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table

QUASI = Role.QUASI_IDENTIFYING


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    """Random trees: flat, two-level with uneven depth, or a single leaf."""
    n_leaves = draw(st.integers(1, 7))
    leaves = [f"v{i}" for i in range(n_leaves)]
    n_inner = draw(st.integers(0, 3))
    paths = []
    for leaf in leaves:
        inner = draw(st.integers(-1, n_inner - 1)) if n_inner else -1
        paths.append((leaf, "*") if inner < 0 else (leaf, f"n{inner}", f"top{inner % 2}", "*"))
    return Hierarchy.from_paths(paths)


@st.composite
def tables(draw: st.DrawFn, *, numeric_only: bool = False, at_least: int = 1) -> Table:
    """A table with one to three quasi-identifiers, sometimes missing values, sometimes several rows a person."""
    n = draw(st.integers(at_least, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    attributes: list[Attribute] = [FreeText("note", Role.INSENSITIVE)]
    frame = pd.DataFrame({"note": [f"row {i}" for i in range(n)]})
    missing = False
    for i in range(draw(st.integers(1, 3))):
        name = f"q{i}"
        if numeric_only or draw(st.booleans()):
            spread = draw(st.sampled_from([1, 3, 50]))
            frame[name] = rng.integers(0, spread, n).astype(float) / draw(st.sampled_from([1, 4]))
            attributes.append(Numeric(name, QUASI, 0.0, 60.0))
        else:
            tree = draw(hierarchies())
            frame[name] = pd.Series(rng.choice(tree.labels[: tree.n_leaves], n), dtype="str")
            attributes.append(Categorical(name, QUASI, tree))
        if not numeric_only and draw(st.integers(0, 4)) == 0:
            frame.loc[rng.random(n) < 0.2, name] = None
            missing = True
    person_id = None
    if draw(st.integers(0, 4)) == 0:
        person_id = "who"
        frame["who"] = rng.integers(0, max(n // 2, 1), n)
        attributes.append(FreeText("who", Role.IDENTIFYING))
    schema = Schema(tuple(attributes), person_id=person_id)
    policy = draw(st.sampled_from(["category", "wildcard"])) if missing else "error"
    return Table.from_frame(frame, schema, missing=policy)
