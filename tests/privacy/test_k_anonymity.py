"""k-anonymity counts people, and the gate lets nothing through that breaks its claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.groups import Groups
from fedanon.data.schema import FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError, PrivacyViolationError
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.gate import verify
from fedanon.release.release import Release


def visits(ages: list[int], who: list[str]) -> Table:
    schema = Schema(
        (FreeText("who", Role.IDENTIFYING), Numeric("age", Role.QUASI_IDENTIFYING, 0, 100)), person_id="who"
    )
    return Table.from_frame(pd.DataFrame({"who": who, "age": ages}), schema)


def test_people_are_counted_not_rows() -> None:
    table = visits([20, 20, 20, 70, 70, 70], ["ann", "ann", "ann", "bob", "cyd", "dan"])
    groups = Groups.from_labels(np.array([0, 0, 0, 1, 1, 1]))
    assert groups.count_people(table.persons).tolist() == [1, 3]
    release = Mondrian(k=2).anonymize(table, rng=0)
    assert release.classes.count_people(table.persons).min() >= 2
    assert release.to_frame()["age"].unique().tolist() == ["[20, 70]"]


def test_fewer_people_than_k() -> None:
    with pytest.raises(InfeasibleError, match="1 people, fewer than k=3"):
        Mondrian(k=3).anonymize(visits([1, 2, 3, 4], ["ann"] * 4), rng=0)


def a_release() -> tuple[Table, Release]:
    table = Table.from_frame(
        pd.DataFrame({"age": [1, 2, 3, 70, 71, 72]}), Schema((Numeric("age", Role.QUASI_IDENTIFYING, 0, 100),))
    )
    return table, Mondrian(k=3).anonymize(table, rng=0)


def test_a_broken_claim_is_refused_with_counts() -> None:
    table, release = a_release()
    with pytest.raises(PrivacyViolationError, match=r"claims 4-anonymity, but 2 of 2 .* smallest holds 3"):
        verify(replace(release, claim=KAnonymity(k=4)), table)


def test_the_claim_is_judged_on_published_cells_not_on_the_method_s_groups() -> None:
    table, release = a_release()
    cells = release.cells["age"]
    split = replace(
        release, groups=Groups.from_labels(np.arange(6)), cells={"age": cells.select(release.groups.labels)}
    )
    verify(split, table)  # six groups, but still two classes of three


def test_a_release_of_other_rows_or_columns_is_refused() -> None:
    table, release = a_release()
    with pytest.raises(PrivacyViolationError, match="6 rows, its table 3"):
        verify(release, table.select_rows([0, 1, 2]))
    with pytest.raises(PrivacyViolationError, match="no cells for: age"):
        verify(replace(release, cells={}), table)


def test_k_must_be_a_number_of_people() -> None:
    with pytest.raises(ConfigError, match=r"must be an int >= 1\. Got 0 instead"):
        KAnonymity(k=0)
