"""Generated federations: one schema, rows dealt to nodes evenly or not, and the protocol run on them in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.joint.node import JointNode
from fedanon.joint.protocol import Agreement
from fedanon.joint.protocol import agree as agree_in_process
from fedanon.learning.settings import RunSettings
from fedanon.release.release import Release
from tests.anonymizers.tables import hierarchies

QUASI = Role.QUASI_IDENTIFYING


def settings(method: str = "federated_mondrian", **chosen: Any) -> RunSettings:
    return RunSettings(method=method, method_settings=chosen, test_share=0.01)


@st.composite
def federations(draw: st.DrawFn) -> list[Table]:
    """Two to five nodes of uneven size, some with a part of the values only; sometimes several rows per person."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(20, 150))
    attributes: list[Attribute] = [Categorical("ill", Role.SENSITIVE, draw(hierarchies()))]
    frame = pd.DataFrame({"ill": rng.choice(attributes[0].hierarchy.labels[: attributes[0].hierarchy.n_leaves], n)})
    for i in range(draw(st.integers(1, 3))):
        name = f"q{i}"
        if draw(st.booleans()):
            whole = draw(st.booleans())
            frame[name] = rng.integers(0, draw(st.sampled_from([2, 9, 60])), n) / (1 if whole else 7)
            attributes.append(Numeric(name, QUASI, 0.0, draw(st.sampled_from([60.0, 3000.0])), integer=whole))
        else:
            tree = draw(hierarchies())
            frame[name] = pd.Series(rng.choice(tree.labels[: tree.n_leaves], n), dtype="str")
            attributes.append(Categorical(name, QUASI, tree))
    person_id = None
    if draw(st.integers(0, 3)) == 0:
        person_id = "who"
        attributes.append(FreeText("who", Role.IDENTIFYING))
        frame["who"] = rng.integers(0, n // 2, n)
    schema = Schema(tuple(attributes), person_id=person_id)
    skew = draw(st.sampled_from([0.0, 1.0]))  # not IID: nodes take rows in the order of the first column
    order = np.argsort(frame["q0"].astype(str) if skew else rng.random(n), kind="stable")
    nodes = draw(st.integers(2, 5))
    ends = np.sort(rng.choice(np.arange(1, n // 4), nodes - 1, replace=False)) * 4
    parts = [part for part in np.split(np.asarray(order), ends) if len(part) > 3]
    return [Table.from_frame(frame.iloc[part].reset_index(drop=True), schema) for part in parts]


def nodes_of(tables: Sequence[Table], chosen: RunSettings) -> list[JointNode]:
    return [JointNode(table, chosen, number) for number, table in enumerate(tables)]


def agree(nodes: Sequence[JointNode], absent: dict[int, int] | None = None) -> Agreement:
    return agree_in_process([node.participant for node in nodes], absent)


def releases(nodes: Sequence[JointNode], agreement: Agreement) -> tuple[list[JointNode], list[Release]]:
    """The nodes that were counted and have something to release, and their releases."""
    found = []
    for node in nodes:
        if node.number in agreement.plan.nodes:
            node.adopt(agreement.plan)
            with contextlib.suppress(InfeasibleError):  # fewer than k_local people everywhere
                found.append((node, node.release))
    return [node for node, _ in found], [release for _, release in found]


def pooled_counts(nodes: Sequence[JointNode], released: Sequence[Release]) -> tuple[int, int]:
    """An independent count on the published text: fewest people of the federation and of one node in a class."""
    frames = []
    for node, release in zip(nodes, released, strict=True):
        table = node._split[0]
        quasi = [a.name for a in table.schema.quasi_identifiers]
        persons = np.arange(len(table)) if table.persons is None else table.persons
        frame = release.to_frame()[quasi].assign(_node=node.number, _person=persons)
        frames.append(frame[~release.suppressed])
    everything = pd.concat(frames)
    if everything.empty:
        return 10**9, 10**9
    by_node = everything.groupby([*quasi, "_node"])["_person"].nunique()
    return int(by_node.groupby(level=quasi).sum().min()), int(by_node.min())
