from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import Intervals, Nodes, Numbers
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError, SchemaError
from fedanon.models.base import Draws, LeafWeights
from fedanon.models.encoding import Encoding
from fedanon.models.target import target
from fedanon.models.thesis_encoding import label_codes, one_hot_published
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance, Release, release_of
from tests.anonymizers.tables import tables

QUASI = Role.QUASI_IDENTIFYING
WARD = Hierarchy.from_nested({"Surgery": ["hand", "heart"], "Medicine": ["lung", "skin", "liver"]})
SCHEMA = Schema(
    (
        Numeric("age", QUASI, 20, 60, integer=True),
        Categorical("ward", QUASI, WARD),
        Numeric("stay", Role.INSENSITIVE, 0, 10),
        FreeText("note", Role.INSENSITIVE),
        Categorical("ill", Role.SENSITIVE, Hierarchy.flat(["yes", "no"])),
    ),
    target="ill",
)
FRAME = pd.DataFrame(
    {
        "age": [20, 30, 60, 40],
        "ward": ["hand", "heart", "liver", "skin"],
        "stay": [0.0, 5.0, 10.0, 1.0],
        "note": ["a", "b", "c", "d"],
        "ill": ["yes", "no", "yes", "no"],
    }
)
TABLE = Table.from_frame(FRAME, SCHEMA)


def published(labels: list[int], age: Intervals | Numbers, ward: list[str], table: Table = TABLE) -> Release:
    nodes = np.array([WARD.nodes[label] for label in ward], dtype=np.int32)
    cells = {"age": age, "ward": Nodes(nodes, WARD)}
    origin = Provenance("test", {}, 0, "0", "", "")
    groups = Groups.from_labels(np.array(labels))
    return release_of(table, groups, cells, claim=None, provenance=origin, recoding=NearestGroup())


TWO_GROUPS = published([0, 0, 1, -1], Intervals(np.array([20.0, 40.0]), np.array([40.0, 60.0])), ["Surgery", "*"])


def test_raw_rows() -> None:
    encoding = Encoding.from_schema(SCHEMA)
    assert encoding.names == ["age", "ward=hand", "ward=heart", "ward=lung", "ward=skin", "ward=liver"]
    expected = [[0, 1, 0, 0, 0, 0], [0.25, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1], [0.5, 0, 0, 0, 1, 0]]
    np.testing.assert_array_equal(encoding.encode_table(TABLE), np.array(expected, dtype=np.float32))


def test_published_rows_spread_over_leaves() -> None:
    features = Encoding.from_schema(SCHEMA).encode_release(TWO_GROUPS)
    expected = [[0.25, 0.5, 0.5, 0, 0, 0], [0.25, 0.5, 0.5, 0, 0, 0], [0.75, 0.2, 0.2, 0.2, 0.2, 0.2]]
    np.testing.assert_allclose(features, expected, rtol=1e-6)
    assert features.dtype == np.float32


def test_columns_that_are_carried_along() -> None:
    encoding = Encoding.from_schema(SCHEMA, "all")
    assert encoding.names[-1] == "stay"
    np.testing.assert_allclose(encoding.encode_table(TABLE)[:, -1], [0, 0.5, 1, 0.1], rtol=1e-6)
    np.testing.assert_allclose(encoding.encode_release(TWO_GROUPS)[:, -1], [0, 0.5, 1], rtol=1e-6)
    np.testing.assert_allclose(
        encoding.draw_release(TWO_GROUPS, np.random.default_rng(0))[:, -1], [0, 0.5, 1], rtol=1e-6
    )


@pytest.mark.parametrize("name", ["note", "ill"])
def test_refuses_text_and_target(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        Encoding.from_schema(SCHEMA, ["age", name])


def test_numbers_beyond_the_range_are_clipped() -> None:
    release = published([0, 0, 1, 1], Numbers(np.array([10.0, 61.5])), ["*", "*"])
    np.testing.assert_array_equal(Encoding.from_schema(SCHEMA, ["age"]).encode_release(release)[:, 0], [0, 0, 1, 1])


def test_missing_is_the_whole_domain_and_keeps_the_width() -> None:
    frame = FRAME.copy()
    frame.loc[1, "ward"] = None
    frame["age"] = frame["age"].astype(float)
    frame.loc[2, "age"] = None
    table = Table.from_frame(frame, SCHEMA, missing="category")
    for encoding in (Encoding.from_schema(SCHEMA), Encoding.from_schema(table.schema)):
        features = encoding.encode_table(table)
        assert encoding.width == 6
        np.testing.assert_allclose(features[1], [0.25, 0.2, 0.2, 0.2, 0.2, 0.2], rtol=1e-6)
        assert features[2, 0] == 0.5


def test_numeric_column_published_by_a_taxonomy() -> None:
    years = Hierarchy.from_nested({"young": ["20", "30"], "old": ["50", "60"]})
    release = published([0, 0, 1, 1], Numbers(np.zeros(2)), ["*", "*"])
    cells = {**release.cells, "age": Nodes(np.array([years.nodes["old"], years.nodes["30"]], dtype=np.int32), years)}
    release = Release(SCHEMA, release.passthrough, release.groups, cells, None, release.provenance, release.recoding)
    np.testing.assert_allclose(
        Encoding.from_schema(SCHEMA, ["age"]).encode_release(release)[:, 0], [0.875, 0.875, 0.25, 0.25]
    )


def test_everything_suppressed() -> None:
    release = published([-1, -1, -1, -1], Intervals(np.empty(0), np.empty(0)), [])
    for encoding in (Encoding.from_schema(SCHEMA), Encoding.from_schema(SCHEMA, "all")):
        assert encoding.encode_release(release).shape == (0, encoding.width)
        assert encoding.draw_release(release, np.random.default_rng(0)).shape == (0, encoding.width)


@given(tables(at_least=4), st.integers(0, 99))
def test_properties(table: Table, seed: int) -> None:
    encoding = Encoding.from_schema(table.schema)
    numeric = [i for i, name in enumerate(encoding.names) if "=" not in name]
    categorical = np.delete(np.arange(encoding.width), numeric)
    n_categorical = sum(isinstance(a, Categorical) for a in encoding.attributes)
    release = ANONYMIZERS["mondrian"](k=2).anonymize(table, rng=0) if table.n_units >= 2 else None  # type: ignore[call-arg]
    drawn = (
        []
        if release is None
        else [encoding.encode_release(release), encoding.draw_release(release, np.random.default_rng(seed))]
    )
    for features in [encoding.encode_table(table), *drawn]:
        np.testing.assert_allclose(features[:, categorical].sum(axis=1), n_categorical, rtol=1e-5)
        assert ((features >= 0) & (features <= 1)).all()
    if release is not None:
        leaves, draws = drawn
        # a value is drawn only where the cell has weight
        assert (leaves[:, categorical][draws[:, categorical] > 0] > 0).all()


@given(tables())
def test_identity_encodes_like_the_table(table: Table) -> None:
    encoding = Encoding.from_schema(table.schema)
    release = ANONYMIZERS["identity"]().anonymize(table, rng=0)
    np.testing.assert_array_equal(encoding.encode_release(release), encoding.encode_table(table))


@given(st.integers(0, 10**6))
def test_draws_lie_inside_their_cells(seed: int) -> None:
    features = Encoding.from_schema(SCHEMA).draw_release(TWO_GROUPS, np.random.default_rng(seed))
    ages = features[:, 0] * 40 + 20
    assert (ages[:2] <= 40).all()
    assert ages[2] >= 40
    np.testing.assert_allclose(ages, np.rint(ages), atol=1e-4)
    assert (features[:2, 3:] == 0).all()
    assert np.isin(features[:, 1:], (0, 1)).all()


def test_draws_have_the_leaf_weights_as_mean() -> None:
    encoding = Encoding.from_schema(SCHEMA)
    rng = np.random.default_rng(0)
    mean = np.mean([encoding.draw_release(TWO_GROUPS, rng) for _ in range(4000)], axis=0)
    np.testing.assert_allclose(mean, encoding.encode_release(TWO_GROUPS), atol=0.03)


def test_target() -> None:
    np.testing.assert_array_equal(target(TABLE, SCHEMA), [1, 0, 1, 0])
    np.testing.assert_array_equal(target(FRAME, SCHEMA), [1, 0, 1, 0])
    np.testing.assert_array_equal(target(TWO_GROUPS, SCHEMA), [1, 0, 1])
    adult = load("adult").select_rows(np.arange(50))
    np.testing.assert_array_equal(target(adult, adult.schema), adult.frame["income"] == ">50K")


def test_target_must_fit() -> None:
    one = SCHEMA.replacing(Categorical("ill", Role.SENSITIVE, Hierarchy.flat(["yes"])))
    with pytest.raises(SchemaError, match="must have 2 to 100 values"):
        target(FRAME, one)
    many = SCHEMA.replacing(Categorical("ill", Role.SENSITIVE, WARD))
    with pytest.raises(SchemaError, match="4 cells that are missing or none of its declared values"):
        target(FRAME, many)
    with pytest.raises(SchemaError, match="1 cells"):
        target(FRAME.assign(ill=["yes", "no", None, "no"]), SCHEMA)
    with pytest.raises(ConfigError, match="no target"):
        target(FRAME, Schema(SCHEMA.attributes))


def test_training_data() -> None:
    encoding = Encoding.from_schema(SCHEMA)
    leaves, draws = LeafWeights(TWO_GROUPS, encoding), Draws(TWO_GROUPS, encoding, seed=3, n_instances=4)
    np.testing.assert_array_equal(leaves.target, draws.target)
    np.testing.assert_array_equal(leaves.features(1), leaves.features(2))
    np.testing.assert_array_equal(draws.features(1), draws.features(5))
    assert draws.instance(1) == draws.instance(5)
    assert not np.array_equal(np.stack([draws.features(i) for i in range(4)]).std(axis=0), np.zeros((3, 6)))


def test_published_values() -> None:
    age = Intervals(np.array([20.0, 40.0, np.nan]), np.array([40.0, 60.0, np.nan]))
    release = published([0, 1, 1, 2], age, ["Surgery", "*", "hand"])
    np.testing.assert_array_equal(label_codes(release), [[30, 1], [50, 0], [50, 0], [40, 2]])
    expected = [[0, 1, 0], [20 / 20.5, 0, 0], [20 / 20.5, 0, 0], [1, 0, 1]]
    np.testing.assert_allclose(one_hot_published(release), expected)
