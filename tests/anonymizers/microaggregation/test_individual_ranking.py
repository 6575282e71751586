"""Individual ranking: every value is shared, the rows are not, and the release says so."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers.microaggregation.individual_ranking import IndividualRanking
from fedanon.data.infer import numeric_schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError


@pytest.fixture
def table() -> Table:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"])
    return Table.from_frame(frame, numeric_schema(frame, "all", name="drawn"))


@pytest.mark.parametrize("optimal", [False, True])
def test_every_value_is_shared_but_nothing_is_claimed(table: Table, optimal: bool) -> None:
    release = IndividualRanking(k=4, optimal=optimal).anonymize(table, rng=0)
    published = release.to_frame().astype(float)
    for name in published:
        assert published[name].value_counts().min() >= 4
        assert published[name].mean() == pytest.approx(table.frame[name].mean())
    assert release.claim is None
    assert "not k-anonymous" in release.provenance.notes[0]
    assert release.classes.sizes.min() < 4


def squared_error(table: Table, *, optimal: bool) -> float:
    published = IndividualRanking(k=4, optimal=optimal).anonymize(table, rng=0).to_frame().astype(float)
    return float(np.square(published - table.frame).to_numpy().sum())


def test_the_optimal_groups_lose_less(table: Table) -> None:
    assert squared_error(table, optimal=True) < squared_error(table, optimal=False)


def test_new_rows_take_the_mean_of_the_group_they_fall_into(table: Table) -> None:
    release = IndividualRanking(k=4).anonymize(table, rng=0)
    pd.testing.assert_frame_equal(release.recode(table).to_frame(), release.to_frame())


def test_bad_requests(table: Table) -> None:
    with pytest.raises(InfeasibleError, match=r"holds 60 records, fewer than k=61"):
        IndividualRanking(k=61).anonymize(table, rng=0)
    with pytest.raises(ConfigError, match=r"The 'k' parameter of IndividualRanking must be an int >= 2\. Got 1"):
        IndividualRanking(k=1)
