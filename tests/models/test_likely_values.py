"""Likely values: shares that a release makes likely, drawn inside its cells, from nothing but the release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers import KMember, Mondrian
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.models import MODELS
from fedanon.models.encoding import Encoding
from fedanon.models.likely_values import LikelyValues
from fedanon.release.release import Release
from fedanon.testing.examples import example_table


def schema(high: float = 100, *, integer: bool = True) -> Schema:
    columns = {
        "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, high], "integer": integer},
        "city": {"role": "quasi_identifying", "type": "categorical", "values": ["large", "small", "tiny"]},
        "ill": {"role": "sensitive", "type": "categorical", "values": ["no", "yes"]},
    }
    return Schema.from_dict({"attributes": columns, "target": "ill"})


def release_of(high: float = 100, *, integer: bool = True, seed: int = 0, k: int = 8) -> tuple[Release, Encoding]:
    rng = np.random.default_rng(seed)
    ages = np.clip(rng.normal(0.3, 0.1, 400), 0, 1) * high
    frame = pd.DataFrame(
        {
            "age": ages.astype(int) if integer else ages,
            "city": rng.choice(["large", "small", "tiny"], 400, p=[0.9, 0.08, 0.02]),
            "ill": rng.choice(["no", "yes"], 400),
        }
    )
    table = Table.from_frame(frame, schema(high, integer=integer))
    return Mondrian(k=k).anonymize(table, rng=0), Encoding.from_schema(table.schema)


def test_common_values_are_drawn_nearly_as_often_as_they_are() -> None:
    """Adult has forty countries, and nine in ten people come from one of them; the likeliest shares overstate it."""
    table = load("adult").select_rows(range(2000))
    release, encoding = Mondrian(k=20).anonymize(table, rng=0), Encoding.from_schema(table.schema)
    home = encoding.names.index("native-country=United-States")
    truth = encoding.encode_table(table)[:, home].mean()
    alike = encoding.draw_release(release, np.random.default_rng(0))[:, home].mean()
    likely = LikelyValues(release, encoding).draw(np.random.default_rng(0))[:, home].mean()
    assert alike < truth - 0.2
    assert abs(likely - truth) < abs(alike - truth) / 2


@given(st.integers(0, 50), st.sampled_from([(100.0, True), (5000.0, True), (1.0, False)]))
def test_what_is_drawn_lies_in_its_cell(seed: int, kind: tuple[float, bool]) -> None:
    release, encoding = release_of(kind[0], integer=kind[1], seed=seed % 3)
    drawn = LikelyValues(release, encoding).draw(np.random.default_rng(seed))
    cells, labels = release.cells["age"], release.groups.labels
    age = drawn[:, 0] * kind[0]
    slack = 1e-5 * kind[0]
    assert (age >= cells.low[labels] - slack).all()  # type: ignore[union-attr]
    assert (age <= cells.high[labels] + slack).all()  # type: ignore[union-attr]
    if kind[1]:
        np.testing.assert_allclose(age, np.round(age), atol=1e-3)
    allowed = encoding.encode_release(release)[:, 1:] > 0
    assert allowed[np.arange(len(drawn)), drawn[:, 1:].argmax(axis=1)].all()
    assert (drawn[:, 1:].sum(axis=1) == 1).all()


def test_expected_features_are_the_mean_of_the_draws() -> None:
    release, encoding = release_of()
    likely = LikelyValues(release, encoding)
    mean = np.mean([likely.draw(np.random.default_rng(i)) for i in range(2000)], axis=0)
    np.testing.assert_allclose(likely.expected(), mean, atol=0.06)


def test_shares_are_the_likeliest() -> None:
    """Ten rows say 'a', ten 'a or b': with b never seen alone, all are likely a."""
    frame = pd.DataFrame({"age": [10] * 20, "city": ["large"] * 10 + ["large"] * 9 + ["small"], "ill": ["no"] * 20})
    table = Table.from_frame(frame, schema())
    release = KMember(k=10).anonymize(table, rng=0)
    shares = LikelyValues(release, Encoding.from_schema(table.schema)).expected()[:, 1:].mean(axis=0)
    assert shares[0] > 0.9


@pytest.mark.parametrize("instances", ["leaves", "draws"])
@pytest.mark.parametrize("missing", [False, True])
def test_models_learn_from_likely_values(instances: str, missing: bool) -> None:
    table = example_table(200, missing=missing)
    release, encoding = Mondrian(k=5).anonymize(table, rng=0), Encoding.from_schema(table.schema)
    model = MODELS["lr"](instances=instances, cell_values="release")
    features = model.training_data(release, encoding, 0).features(1)
    plain = MODELS["lr"](instances=instances).training_data(release, encoding, 0).features(1)
    assert features.shape == plain.shape
    assert np.isfinite(features).all()
    assert not np.array_equal(features, plain)
