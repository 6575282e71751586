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


@pytest.mark.parametrize("target", ["ill", "cost"])
def test_effects_that_may_be_chance_do_not_guide(target: str, frame: pd.DataFrame) -> None:
    attributes = schema(target).to_dict()["attributes"]
    street = {"role": "quasi_identifying", "type": "categorical", "values": [f"s{i}" for i in range(40)]}
    wider = Schema.from_dict({"attributes": {**attributes, "street": street}, "target": target})
    streets = np.random.default_rng(1).integers(40, size=len(frame))
    noisy = frame.assign(street=[f"s{i}" for i in streets], cost=frame["cost"] / 2 + np.arange(len(frame)) % 50)
    guided = guided_table(Table.from_frame(noisy, wider))
    useful, street_tree = guided.columns[0].values, guided.columns[-1].hierarchy
    assert useful is not None
    assert street_tree.leaf_loss[-1] < 0.1 * (useful[-1] - useful[0])


def test_a_rare_outcome_and_one_value_can_guide(frame: pd.DataFrame) -> None:
    rare = frame.assign(ill=np.where(frame.index == int(frame["useful"].idxmax()), "yes", "no"))
    for one in (rare, frame.assign(ill="no")):
        columns = guided_table(Table.from_frame(one, schema())).columns
        assert all(np.isfinite(c.values).all() for c in columns if c.values is not None)
        assert np.isfinite(columns[2].hierarchy.leaf_loss).all()


def test_a_guide_needs_a_target(frame: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="needs a target"):
        KMember(k=5, guide="target").anonymize(Table.from_frame(frame, schema(None)), rng=0)
