"""k over a federation is another claim than k over a table: refused without the count that shows it."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, PrivacyViolationError
from fedanon.privacy.federation_count import FederationCount
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.gate import verify
from fedanon.release.release import Release


def a_release() -> tuple[Table, Release]:
    schema = Schema((Numeric("age", Role.QUASI_IDENTIFYING, 0, 100),))
    table = Table.from_frame(pd.DataFrame({"age": [1, 2, 3, 70, 71, 72]}), schema)
    return table, Mondrian(k=3).anonymize(table, rng=0)


def claimed(release: Release, people: list[int], **more: int) -> Release:
    evidence = FederationCount.from_cells(release.cells, people, nodes=4)
    return replace(release, claim=KAnonymity(scope="federation", evidence=evidence, **more))


def test_scopes_are_different_claims() -> None:
    assert KAnonymity(k=5) != KAnonymity(k=5, scope="federation")
    assert KAnonymity(k=5).to_dict() == {"model": "k-anonymity", "k": 5}
    assert KAnonymity(k=5, scope="federation").to_dict()["scope"] == "federation"


def test_without_a_count_the_claim_is_refused() -> None:
    table, release = a_release()
    with pytest.raises(PrivacyViolationError, match="without the count of the federation"):
        verify(replace(release, claim=KAnonymity(k=2, scope="federation")), table)


def test_the_count_must_reach_k_in_every_class() -> None:
    table, release = a_release()
    verify(claimed(release, [10, 12], k=10), table)
    with pytest.raises(PrivacyViolationError, match=r"1 of 2 .* fewer than 11 records of the federation .* holds 10"):
        verify(claimed(release, [10, 12], k=11), table)


def test_a_count_of_other_cells_shows_nothing() -> None:
    table, release = a_release()
    other = Mondrian(k=6).anonymize(table, rng=0)
    evidence = FederationCount.from_cells(other.cells, [99], nodes=4)
    with pytest.raises(PrivacyViolationError, match="2 of 2"):
        verify(replace(release, claim=KAnonymity(k=2, scope="federation", evidence=evidence)), table)


def test_the_floor_of_the_hospital_is_checked_beside() -> None:
    table, release = a_release()
    verify(claimed(release, [10, 10], k=10, k_local=3), table)
    with pytest.raises(PrivacyViolationError, match="fewer than 4 records of this node"):
        verify(claimed(release, [10, 10], k=10, k_local=4), table)


def test_the_words_say_what_federation_scope_does_not_do() -> None:
    _, release = a_release()
    claim = claimed(release, [10, 10], k=10, k_local=3).claim
    assert claim is not None
    assert "counted over 4 nodes" in claim.describe("people")
    assert "3 people of its own node" in claim.describe("people")
    assert "knows which hospital" in claim.describe("people")


def test_parameters_are_checked() -> None:
    with pytest.raises(ConfigError, match="must be one of 'node', 'federation'"):
        KAnonymity(k=2, scope="ward")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="belong to KAnonymity with scope='federation'"):
        KAnonymity(k=2, k_local=2)
    _, release = a_release()
    with pytest.raises(ConfigError, match="One table cannot tell"):
        KAnonymity(k=2, scope="federation").satisfied_classes(release)
