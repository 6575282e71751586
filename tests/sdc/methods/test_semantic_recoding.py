"""Semantic recoding: who takes whose values, and that k is reached."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.sdc.methods.semantic_recoding import SemanticRecoding, merge_rare
from tests.anonymizers.tables import tables
from tests.sdc.methods.keyed import key_table, published


def test_the_rare_value_takes_the_nearest_in_the_taxonomy() -> None:
    """cardiac is rare; orthopaedics shares its parent, general does not."""
    table = key_table(unit=["cardiac"] + ["orthopaedics"] * 3 + ["general"] * 3)
    assert published(table, SemanticRecoding(k=3))["unit"].tolist() == ["orthopaedics"] * 4 + ["general"] * 3


def test_numbers_take_the_nearest_number() -> None:
    table = key_table(age=[20, 20, 29, 40, 40])
    assert published(table, SemanticRecoding(k=2))["age"].tolist() == ["20", "20", "20", "40", "40"]


def test_merging_by_hand() -> None:
    """On a line 0, 1, 3, 7 with 1, 1, 2, 5 people and k=4: 0 goes to 1, then both (2) tie with 3 (2) and go first."""
    at = np.array([0.0, 1.0, 3.0, 7.0])
    takes = merge_rare(np.array([1.0, 1.0, 2.0, 5.0]), 4, lambda one: np.abs(at - at[one]))
    assert takes.tolist() == [2, 2, 2, 3]


def test_of_equally_near_ones_the_rarest_is_taken() -> None:
    takes = merge_rare(np.array([1.0, 9.0, 3.0]), 3, lambda _: np.ones(3))
    assert takes.tolist() == [2, 1, 2]


@given(table=tables(), k=st.integers(2, 5))
def test_k_is_reached_and_claimed(table: Table, k: int) -> None:
    if table.n_units < k:
        with pytest.raises(InfeasibleError):
            SemanticRecoding(k=k).anonymize(table, rng=0)
        return
    release = SemanticRecoding(k=k).anonymize(table, rng=0)
    assert release.claim == KAnonymity(k=k)
    assert release.classes.count_people(table.persons).min() >= k
    names = [c.name for c in table.columns]
    if table.missing == "error":
        texts = pd.DataFrame({c.name: own_texts(table, i) for i, c in enumerate(table.columns)})
        combinations = set(map(tuple, texts.to_numpy()))
        assert set(map(tuple, release.to_frame()[names].to_numpy())) <= combinations, "no combination is invented"


def own_texts(table: Table, i: int) -> np.ndarray:
    from fedanon.anonymizers.base import own_cells

    return own_cells(table, table.columns[i]).select(table.codes[:, i]).texts()


def test_a_claim_needs_all_quasi_identifiers() -> None:
    table = key_table(x=["a", "a", "b"], y=["c", "d", "c"])
    release = SemanticRecoding(k=2, columns="x").anonymize(table, rng=0)
    assert release.claim is None
    assert release.to_frame()["x"].tolist() == ["a"] * 3
    assert any("nothing is promised" in note for note in release.provenance.notes)


def test_bad_input() -> None:
    with pytest.raises(ConfigError, match="It cannot change: z"):
        SemanticRecoding(k=2, columns="z").anonymize(key_table(x=["a", "b"]), rng=0)
    with pytest.raises(ConfigError, match="'k' parameter of SemanticRecoding must be an int >= 2"):
        SemanticRecoding(k=1)
