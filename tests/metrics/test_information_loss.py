from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given

from fedanon.data.cells import Intervals, Nodes, Numbers
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.metrics.information_loss import (
    minimal_distortion,
    minimal_distortion_share,
    ncp,
    ncp_by_column,
    ncp_published,
    ncp_published_by_column,
    suppressed_share,
    truthfulness,
    truthfulness_by_column,
)
from fedanon.release.release import Release
from tests.metrics.metric_cases import QUASI, WARD_GROUPS, WARDS, numeric, released, releases, table_of, wards


def test_ncp_by_hand() -> None:
    table = wards()
    release = released(table, WARD_GROUPS)
    # ages 20..30 of a range of 40, Surgery = 2 of 4 leaves; one suppressed row of six
    assert ncp_by_column(table, release) == pytest.approx({"age": (3 * 0.25 + 1) / 6, "ward": (3 * 0.5 + 1) / 6})
    assert ncp(table, release) == pytest.approx(4.25 / 12)
    assert ncp_published(table, release) == pytest.approx(4.25 / 12)
    assert suppressed_share(table, release) == pytest.approx(1 / 6)


def test_published_loss_follows_the_published_cells() -> None:
    table = wards()
    node = WARDS.nodes
    release = released(
        table,
        WARD_GROUPS,
        {
            "age": Intervals(np.array([20.0, 30.0]), np.array([40.0, 60.0])),
            "ward": Nodes(np.array([node["ortho"], node["*"]], dtype=np.int32), WARDS),
        },
    )
    assert ncp_published_by_column(table, release) == pytest.approx(
        {"age": (3 * 0.5 + 2 * 0.75 + 1) / 6, "ward": (3 * 0.0 + 2 * 1.0 + 1) / 6}
    )
    assert ncp(table, release) == pytest.approx(4.25 / 12)


def test_published_loss_of_a_number_is_the_extent_of_its_originals() -> None:
    table = wards()
    release = released(table, WARD_GROUPS, {"age": Numbers(np.array([24.7, 40.0]))})
    assert ncp_published_by_column(table, release)["age"] == pytest.approx((3 * 0.25 + 1) / 6)


def test_minimal_distortion_by_hand() -> None:
    table = wards()
    release = released(table, WARD_GROUPS)
    assert minimal_distortion(table, release) == 8  # six cells of the first group, two suppressed ones
    assert minimal_distortion_share(table, release) == pytest.approx(8 / 12)


def test_a_centroid_is_true_for_some() -> None:
    table = wards()
    cells = {"ward": Nodes(np.array([WARDS.nodes["ortho"], WARDS.nodes["onco"]], dtype=np.int32), WARDS)}
    release = released(table, WARD_GROUPS, {**cells, "age": Numbers(np.array([24.0, 40.0]))})
    assert truthfulness_by_column(table, release) == pytest.approx({"ward": 4 / 5, "age": 3 / 5})
    assert truthfulness(table, release) == pytest.approx(7 / 10)
    assert minimal_distortion(table, release) == 1 + 2 + 2


def test_nodes_of_a_numeric_column() -> None:
    tree = Hierarchy.from_nested({"low": ["1", "2"], "high": ["3", "4"]})
    table = table_of(age=([1, 2, 4], numeric("age", 1, 4, tree)))
    nodes = [tree.nodes["1"], tree.nodes["low"], tree.nodes["low"]]
    release = released(table, [0, 1, 2], {"age": Nodes(np.array(nodes, dtype=np.int32), tree)})
    assert truthfulness(table, release) == pytest.approx(2 / 3)
    assert minimal_distortion(table, release) == 2
    assert ncp_published(table, release) == pytest.approx((0 + 0.5 + 0.5) / 3)


@pytest.mark.parametrize(("policy", "distorted"), [("category", 0), ("wildcard", 2)])
def test_missing_cells_are_true_and_wildcards_are_distorted(policy: str, distorted: int) -> None:
    columns: dict[str, tuple[list[object], Numeric | Categorical]] = {
        "age": ([1, None], numeric("age", 0, 9)),
        "ward": (["onco", None], Categorical("ward", QUASI, WARDS)),
    }
    table = table_of(policy, **columns)  # type: ignore[arg-type]
    release = released(table, [0, 1])
    assert truthfulness(table, release) == 1.0
    assert minimal_distortion(table, release) == distorted
    assert ncp(table, release) == 0.0
    assert ncp_published(table, release) == pytest.approx(distorted / 4)


@given(releases())
def test_smallest_cells_are_true_and_lose_what_their_originals_say(case: tuple[Table, Release]) -> None:
    table, release = case
    truth = truthfulness(table, release)
    assert truth == 1.0 or (math.isnan(truth) and release.suppressed.all())
    if table.missing == "error":
        assert ncp_published(table, release) == pytest.approx(ncp(table, release))
    assert 0 <= ncp(table, release) <= 1
    assert suppressed_share(table, release) <= ncp(table, release) + 1e-12
