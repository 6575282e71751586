"""Classes guided by the target: what says much about it stays narrow, and every claim is verified as ever."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import Anneal, KMember, Mondrian
from fedanon.anonymizers.guide import GuidedAnonymizer, guided_table
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.metrics import evaluate

METHODS = [Mondrian(k=5, guide="target"), KMember(k=5, guide="target"), Anneal(k=5, guide="target", iterations=5000)]


def schema(target: str | None = "ill") -> Schema:
    number = {"role": "quasi_identifying", "type": "numeric", "range": [0, 100], "integer": True}
    city = {"role": "quasi_identifying", "type": "categorical", "taxonomy": {"north": ["a", "b"], "south": ["c", "d"]}}
    columns = {
        "useful": number,
        "useless": number,
        "city": city,
        "ill": {"role": "sensitive", "type": "categorical", "values": ["no", "yes"]},
        "cost": {"role": "insensitive", "type": "numeric", "range": [0, 200]},
    }
    return Schema.from_dict({"attributes": columns, **({"target": target} if target else {})})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    useful, useless = rng.integers(101, size=(2, 400))
    ill = np.where(rng.random(400) < useful / 100, "yes", "no")
    return pd.DataFrame(
        {"useful": useful, "useless": useless, "city": rng.choice(list("abcd"), 400), "ill": ill, "cost": useful * 1.5}
    )


def widths(table: Table, method: GuidedAnonymizer) -> tuple[float, float]:
    release = method.anonymize(table, rng=0)
    assert evaluate(table, release, ["k_reached"])["k_reached"] >= 5
    cells = [release.cells[name] for name in ("useful", "useless")]
    sizes = np.bincount(release.groups.labels)
    return tuple(float(np.average(c.high - c.low, weights=sizes)) for c in cells)  # type: ignore[return-value, union-attr]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
@pytest.mark.parametrize("target", ["ill", "cost"])
def test_what_the_target_needs_stays_narrow(method: GuidedAnonymizer, target: str, frame: pd.DataFrame) -> None:
    table = Table.from_frame(frame, schema(target))
    plain = replace(method, guide="none")
    useful, useless = widths(table, method)
    before, _ = widths(table, plain)
    assert useful < before
    assert useful < useless / 2


def test_only_the_geometry_is_guided(frame: pd.DataFrame) -> None:
    table = Table.from_frame(frame, schema())
    guided = guided_table(table)
    np.testing.assert_array_equal(guided.codes, table.codes)
    for column in guided.columns[:2]:
        assert column.values is not None
        assert (np.diff(column.values) > 0).all()
    tree = guided.columns[2].hierarchy
    assert (tree.leaf_loss[: tree.n_leaves] == 0).all()
    assert (tree.leaf_loss <= tree.leaf_loss[tree.parent]).all()


def test_a_guide_needs_a_target(frame: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="needs a target"):
        KMember(k=5, guide="target").anonymize(Table.from_frame(frame, schema(None)), rng=0)
