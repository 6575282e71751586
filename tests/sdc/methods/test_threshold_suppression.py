"""Threshold suppression: one key goes where the risk is too high."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedanon.errors import ConfigError
from fedanon.sdc.methods.base import own_columns
from fedanon.sdc.methods.suppression import ThresholdSuppression
from tests.sdc.methods.keyed import key_table, published

TABLE = key_table(x=["a", "a", "a", "b"], y=["c", "c", "d", "d"])


def test_risks_by_hand() -> None:
    risks = ThresholdSuppression().risks(TABLE, own_columns(TABLE))
    np.testing.assert_allclose(risks, [1 / 2, 1 / 2, 1, 1])


def test_a_missing_key_agrees_with_anything_as_in_sdcmicro() -> None:
    """(a, missing) agrees with all three a; it would be a risk of 1 if missing were a value."""
    table = key_table("category", x=["a", "a", "a", "b"], y=["c", "c", None, "d"])
    risks = ThresholdSuppression().risks(table, own_columns(table))
    np.testing.assert_allclose(risks, [1 / 3, 1 / 3, 1 / 3, 1])


def test_the_named_key_is_suppressed_above_the_threshold_only() -> None:
    out = published(TABLE, ThresholdSuppression(columns="y", threshold=0.5))
    assert out["y"].tolist() == ["c", "c", "*", "*"]
    assert out["x"].tolist() == ["a", "a", "a", "b"]
    assert (published(TABLE, ThresholdSuppression(columns="y", threshold=1.0)) == TABLE.frame).all(axis=None)


def test_sampling_weights_count_as_people() -> None:
    weighted = replace(TABLE, weights=np.array([1.0, 1.0, 10.0, 1.0]))
    risks = ThresholdSuppression(risk="naive").risks(weighted, own_columns(weighted))
    np.testing.assert_allclose(risks, [1 / 2, 1 / 2, 1 / 10, 1])
    full = ThresholdSuppression().risks(weighted, own_columns(weighted))
    # one record of ten: p / (1 - p) ln(1 / p) for p = 0.1
    np.testing.assert_allclose(full, [1 / 2, 1 / 2, np.log(10) / 9, 1])


def test_the_release_says_what_is_left() -> None:
    """Afterwards (a, *) agrees with all three a, (b, *) with nobody else but those '*' that hide what they are."""
    notes = ThresholdSuppression(columns="y", threshold=0.5).anonymize(TABLE, rng=0).provenance.notes
    assert notes == ("Records with a risk above 0.5: 2 before, 1 after.",)


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="suppresses one key; 2 are named"):
        ThresholdSuppression(columns="x,y").anonymize(TABLE, rng=0)
    with pytest.raises(ConfigError, match="It cannot change: z"):
        ThresholdSuppression(columns="z").anonymize(TABLE, rng=0)
    with pytest.raises(ConfigError, match="'threshold' parameter"):
        ThresholdSuppression(threshold=2)
