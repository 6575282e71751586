"""Adult as the thesis had it: its ten nodes, its taxonomies, its order of columns. Read from FEDANON_DATA."""

from __future__ import annotations

import pandas as pd

from fedanon.data.hierarchy import Hierarchy, read_arx_hierarchy
from fedanon.data.readers import read_frame
from fedanon.data.schema import Attribute, Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.adult import complete_rows
from fedanon.datasets.files import need

NODES = 10
QUASI_IDENTIFIERS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
)
_TREES = {name: f"thesis_hierarchies/{name}.csv" for name in QUASI_IDENTIFIERS}
_NODE_FILES = tuple(f"adult_thesis_clients/client_{i}.csv" for i in range(NODES))


def _node(number: int) -> Table:
    return _table(_node_frame(_NODE_FILES[number]), "adult_thesis", "salary-class")


def _all_nodes() -> Table:
    frames = [_node_frame(file) for file in _NODE_FILES]
    return _table(pd.concat(frames, ignore_index=True), "adult_thesis", "salary-class")


def _node_frame(file: str) -> pd.DataFrame:
    return read_frame(need(file, dataset="adult_thesis"))


def _central() -> Table:
    return _table(complete_rows()[[*QUASI_IDENTIFIERS, "income"]], "adult_thesis_central", "income")


def _table(frame: pd.DataFrame, dataset: str, target: str) -> Table:
    attributes = [_attribute(name, frame, dataset) for name in QUASI_IDENTIFIERS]
    classes = Categorical(target, Role.SENSITIVE, Hierarchy.flat(["<=50K", ">50K"]))
    return Table.from_frame(frame, Schema((*attributes, classes), name=dataset, target=target, one_row_per_person=True))


def _attribute(name: str, frame: pd.DataFrame, dataset: str) -> Attribute:
    tree = read_arx_hierarchy(need(_TREES[name], dataset=dataset), name=name)
    if name != "age":
        return Categorical(name, Role.QUASI_IDENTIFYING, tree)
    ages = frame["age"].astype(float)
    return Numeric(name, Role.QUASI_IDENTIFYING, float(ages.min()), float(ages.max()), True, tree)


_LICENSE = "CC BY 4.0 (data); division and trees not redistributed here"

for _name, _dataset in {
    "adult_thesis": Dataset(
        "UCI Adult as divided among the ten clients of the thesis",
        30162,
        _LICENSE,
        _all_nodes,
        (*_NODE_FILES, *_TREES.values()),
        nodes=NODES,
        read_node=_node,
    ),
    "adult_thesis_central": Dataset(
        "UCI Adult, complete rows of adult.data, with the trees of the thesis",
        30162,
        _LICENSE,
        _central,
        tuple(_TREES.values()),
    ),
}.items():
    DATASETS.register(_name)(_dataset)
