"""Panels: every period in the order of the next."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.cells import Numbers
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.sdc.methods.base import own_columns
from fedanon.sdc.methods.longitudinal import LongitudinalReverseMapping
from tests.sdc.methods.drawn import original, published, table_of

METHOD = "longitudinal_reverse_mapping"
PANEL = {"y1": [10, 20, 30, 40], "y2": [25, 15, 45, 35], "y3": [4, 3, 2, 1], "other": [7, 8, 9, 9]}


def test_each_period_takes_the_order_of_the_next() -> None:
    """X_{t+1} = Z_t + E: Z_1 are the values of y1 in the order of y2, Z_2 those of y2 in the order of y3."""
    z = published(table_of(PANEL), METHOD, periods="y1, y2, y3")
    np.testing.assert_array_equal(z.T, [[20, 10, 40, 30], [45, 35, 25, 15], [4, 3, 2, 1], [7, 8, 9, 9]])


def test_several_variables() -> None:
    z = published(table_of(PANEL), METHOD, periods="y1,y2;y3,other")
    np.testing.assert_array_equal(z[:, :2].T, [[20, 10, 40, 30], [25, 15, 45, 35]])
    # the last two units are equal in 'other': their order in y3 is drawn
    np.testing.assert_array_equal(z[:2, 2], [1, 2])
    np.testing.assert_array_equal(np.sort(z[2:, 2]), [3, 4])


def test_in_a_pipeline_the_order_is_current_and_the_values_are_original() -> None:
    table = table_of(PANEL)
    current = own_columns(table) | {"y2": Numbers(np.array([9.0, 8.0, 7.0, 6.0]))}
    changed = LongitudinalReverseMapping(periods="y1,y2").change(table, current, np.random.default_rng(0))
    assert set(changed) == {"y1", "y2"}
    np.testing.assert_array_equal(changed["y1"].midpoints(), [40, 30, 20, 10])  # type: ignore[union-attr]
    np.testing.assert_array_equal(changed["y2"].midpoints(), [45, 35, 25, 15])  # type: ignore[union-attr]


def test_marginals_are_exact() -> None:
    rng = np.random.default_rng(0)
    table = table_of({"a": rng.normal(size=200), "b": rng.integers(0, 9, 200), "c": rng.normal(size=200)})
    z = published(table, METHOD, periods="a,b,c")
    np.testing.assert_array_equal(np.sort(z, axis=0), np.sort(original(table), axis=0))


def test_panels_must_be_balanced_and_periods_named() -> None:
    schema = Schema(tuple(Numeric(name, Role.QUASI_IDENTIFYING, 0, 60) for name in ("y1", "y2")))
    frame = pd.DataFrame({"y1": [1.0, 2.0, 3.0], "y2": [4.0, None, None]})
    for policy in ("category", "wildcard"):
        unbalanced = Table.from_frame(frame, schema, missing=policy)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"The panel is not balanced: the period 'y2' lacks 2 units\."):
            published(unbalanced, METHOD, periods="y1,y2")
    table = table_of(PANEL)
    with pytest.raises(ConfigError, match=r"numeric quasi-identifiers only\. It cannot change: y9"):
        published(table, METHOD, periods="y1,y9")
    for periods in ("y1", "y1,y2;y3", "y1,y2;y2,y3", ""):
        with pytest.raises(ConfigError, match="must name at least two columns of each variable, each once"):
            published(table, METHOD, periods=periods)
    with pytest.raises(ConfigError, match="takes its columns from 'periods'"):
        published(table, METHOD, periods="y1,y2", columns="y1")
