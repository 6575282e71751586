"""Joint anonymization guided by a model: what it needs stays fine, and k is counted as ever."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.joint.guide import weigh_by_model
from fedanon.models.encoding import Encoding
from tests.joint.federations import agree, nodes_of, pooled_counts, releases, settings

NUMBER = {"role": "quasi_identifying", "type": "numeric", "range": [0, 100], "integer": True}
SCHEMA = Schema.from_dict(
    {
        "attributes": {
            "one": NUMBER,
            "other": NUMBER,
            "city": {"role": "quasi_identifying", "type": "categorical", "values": ["a", "b", "c"]},
            "ill": {"role": "sensitive", "type": "categorical", "values": ["no", "yes"]},
        },
        "target": "ill",
    }
)


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    rng = np.random.default_rng(0)
    one, other = rng.integers(101, size=(2, 600))
    columns = {"one": one, "other": other, "city": rng.choice(list("abc"), 600), "ill": rng.choice(["no", "yes"], 600)}
    frame = pd.DataFrame(columns)
    return [Table.from_frame(frame.iloc[i::3].reset_index(drop=True), SCHEMA) for i in range(3)]


def width_of(tables: list[Table], column: str, weights: str, counts: str) -> float:
    """Mean width of the cells of a numeric column, over the rows of all nodes."""
    nodes = nodes_of(tables, settings(k=6, weights=weights, counts=counts))
    counted, released = releases(nodes, agree(nodes))
    assert pooled_counts(counted, released)[0] >= 6
    widths = [(r.cells[column].high - r.cells[column].low)[r.groups.labels[~r.suppressed]] for r in released]  # type: ignore[union-attr]
    return float(np.concatenate(widths).mean())


@pytest.mark.parametrize("counts", ["plain", "secure"])
def test_a_column_with_more_weight_is_published_finer(tables: list[Table], counts: str) -> None:
    alike = width_of(tables, "one", "", counts)
    assert width_of(tables, "one", "8,1,1", counts) < 0.8 * alike
    assert width_of(tables, "one", "1,8,1", counts) > 1.2 * alike


def test_weights_are_relative(tables: list[Table]) -> None:
    assert width_of(tables, "one", "4,2,2", "plain") == width_of(tables, "one", "2,1,1", "plain")


@pytest.mark.parametrize("weights", ["1,0,1", "1,-2,1", "a,b,c", "1,,1", "inf,1,1", "nan,1,1"])
def test_weights_are_positive_numbers(tables: list[Table], weights: str) -> None:
    with pytest.raises(ConfigError, match="positive numbers"):
        nodes_of(tables, settings(k=6, weights=weights))


def test_there_is_a_weight_for_every_column(tables: list[Table]) -> None:
    nodes = nodes_of(tables, settings(k=6, weights="1,2"))
    with pytest.raises(ConfigError, match="2 numbers for 3"):
        agree(nodes)


def test_weights_follow_the_coefficients_of_the_model() -> None:
    encoding = Encoding.from_schema(SCHEMA)
    found = weigh_by_model([np.array([-3.0, 0.0, 1.0, -1.0, 0.0]), np.zeros(1)], encoding)
    spread = np.sqrt(2 * 2 / 3)  # two of three cities, drawn with replacement, differ by this on average
    mean = (3 + spread) / 3
    assert [float(part) for part in found.split(",")] == pytest.approx([3 / mean, 0.1, spread / mean], abs=1e-3)


def test_a_model_of_other_columns_is_refused() -> None:
    with pytest.raises(ConfigError, match="4 coefficients"):
        weigh_by_model([np.zeros(4), np.zeros(1)], Encoding.from_schema(SCHEMA))
