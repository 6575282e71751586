"""Numbers of the thesis and of the microaggregation papers; needs the data, which are not shipped."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.arx import read_arx_hierarchy
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.metrics import evaluate

pytestmark = [
    pytest.mark.needs_data,
    pytest.mark.skipif("FEDANON_DATA" not in os.environ, reason="FEDANON_DATA does not name the folder of the data"),
]

QUASI = Role.QUASI_IDENTIFYING


def folder() -> Path:
    return Path(os.environ["FEDANON_DATA"])


def client(number: int) -> Table:
    """A client of the thesis's federated runs; age declares the client's own range and the thesis's tree."""
    frame = pd.read_csv(folder() / "adult_thesis_clients" / f"client_{number}.csv")
    attributes: list[Numeric | Categorical] = []
    for name in frame.columns:
        if name == "salary-class":
            attributes.append(Categorical(name, Role.SENSITIVE, Hierarchy.flat(["<=50K", ">50K"])))
            continue
        tree = read_arx_hierarchy(folder() / "thesis_hierarchies" / f"{name}.csv")
        if name == "age":
            attributes.append(Numeric(name, QUASI, float(frame[name].min()), float(frame[name].max()), True, tree))
        else:
            attributes.append(Categorical(name, QUASI, tree))
    return Table.from_frame(frame, Schema(tuple(attributes), target="salary-class"))


@pytest.mark.parametrize(
    ("k", "ncp", "linked"), [(3, 15.666, 589.8), (5, 25.508, 316.9), (10, 39.031, 123.3), (20, 56.796, 48.9)]
)
def test_mondrian_of_the_thesis(k: int, ncp: float, linked: float) -> None:
    """Mean over ten clients: its NCP in per cent to two decimals, its linked records exactly."""
    names = ["ncp_published", "linkage_thesis", "linkage_expected"]
    found = []
    for table in map(client, range(10)):
        release = ANONYMIZERS["mondrian"](k=k, profile="thesis").anonymize(table, rng=0)  # type: ignore[call-arg]
        found.append(list(evaluate(table, release, names).values()))
    published, thesis, expected = np.mean(found, axis=0)
    assert 100 * published == pytest.approx(ncp, abs=0.01)
    assert thesis == pytest.approx(linked, abs=1e-9)
    assert expected == pytest.approx(linked, rel=0.01)


def numbers(name: str) -> Table:
    frame = pd.read_csv(folder() / "microaggregation" / f"{name}.csv")
    attributes = tuple(Numeric(c, QUASI, float(frame[c].min()), float(frame[c].max())) for c in frame.columns)
    return Table.from_frame(frame, Schema(attributes))


@pytest.mark.parametrize(
    ("name", "k", "il", "il2", "dld"),
    [
        ("tarragona", 3, 16.932588, 0.1007, 0.313),
        ("tarragona", 5, 22.461860, 0.1209, 0.181),
        ("tarragona", 10, 33.192885, 0.1460, 0.085),
        ("census", 3, 5.692186, 0.1145, 0.313),
        ("census", 5, 9.088435, 0.1462, 0.184),
        ("census", 10, 14.155930, 0.1833, 0.091),
    ],
)
def test_mdav_of_the_papers(name: str, k: int, il: float, il2: float, dld: float) -> None:
    table = numbers(name)
    release = ANONYMIZERS["mdav"](k=k).anonymize(table, rng=0)  # type: ignore[call-arg]
    found = evaluate(table, release, ["il", "il2", "dld"])
    assert found["il"] == pytest.approx(il, abs=1e-3)
    assert found["il2"] == pytest.approx(il2, abs=6e-5)
    assert found["dld"] == pytest.approx(dld, abs=6e-4)
