"""The claim of differential privacy: what is checked on a release, and that each check can fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers.microaggregation.dp_microaggregation import DpMicroaggregation
from fedanon.data.cells import Intervals, Numbers
from fedanon.data.groups import Groups
from fedanon.data.schema import FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import PrivacyViolationError
from fedanon.io.release_file import manifest_path, write_release
from fedanon.privacy.models.differential_privacy import DifferentialPrivacy, Sensitivity
from fedanon.release.gate import verify
from fedanon.release.release import Release

QUASI = Role.QUASI_IDENTIFYING


@pytest.fixture
def table() -> Table:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(0, 100, 60), "pay": rng.random(60), "note": ["x"] * 60})
    schema = Schema(
        (Numeric("age", QUASI, 0, 110), Numeric("pay", QUASI, 0, 1), FreeText("note", Role.INSENSITIVE)),
    )
    return Table.from_frame(frame, schema)


@pytest.fixture
def release(table: Table) -> Release:
    return DpMicroaggregation(k=20, epsilon=2.0).anonymize(table, rng=0)


def claim_of(release: Release) -> DifferentialPrivacy:
    assert isinstance(release.claim, DifferentialPrivacy)
    return release.claim


def test_the_change_of_all_means_together() -> None:
    groups = Groups.from_labels(np.repeat([0, 1, 2], [2, 2, 4]))
    change = Sensitivity.from_groups(groups, columns=3)
    assert change.l1 == pytest.approx(3 * (1 / 2 + 1 / 2 + 1 / 4))
    assert change.l2 == pytest.approx(np.sqrt(3 * (1 / 4 + 1 / 4 + 1 / 16)))
    alone = Sensitivity.from_groups(Groups(np.arange(50, dtype=np.int32), 50), columns=3)
    assert (alone.l1, alone.l2) == (3.0, pytest.approx(np.sqrt(3)))


def test_epsilon_follows_from_the_noise(release: Release) -> None:
    claim = claim_of(release)
    change = Sensitivity.from_groups(release.groups, 2)
    assert claim.spent(change) == pytest.approx(2.0, rel=1e-8)
    assert replace(claim, scale=claim.scale * 2).spent(change) == pytest.approx(1.0, rel=1e-8)
    assert replace(claim, noise="gaussian").spent(change) == np.inf  # normal noise needs a delta
    normal = replace(claim, noise="gaussian", delta=1e-5, scale=change.l2 * 3.730631634816462)
    assert normal.spent(change) == pytest.approx(1.0, rel=1e-6)


def test_a_sound_release_passes(release: Release, table: Table) -> None:
    assert verify(release, table) is release


def test_too_little_noise_is_refused(release: Release, table: Table) -> None:
    weak = replace(release, claim=replace(claim_of(release), scale=claim_of(release).scale * 0.99))
    with pytest.raises(PrivacyViolationError, match=r"claims epsilon 2, but its noise keeps 2\.02"):
        verify(weak, table)


def test_smaller_groups_than_the_noise_is_for_are_refused(release: Release, table: Table) -> None:
    finer = DpMicroaggregation(k=5, epsilon=2.0, randomness="seeded").anonymize(table, rng=0)
    with pytest.raises(PrivacyViolationError, match="its noise keeps"):
        verify(replace(finer, claim=release.claim), table)


def test_columns_without_noise_are_refused(release: Release, table: Table) -> None:
    with pytest.raises(PrivacyViolationError, match="columns without noise: note"):
        verify(replace(release, passthrough=table.frame[["note"]]), table)


def test_the_order_of_the_table_is_refused(release: Release, table: Table) -> None:
    with pytest.raises(PrivacyViolationError, match="order or the number of the published rows"):
        verify(replace(release, in_group_order=False), table)


@pytest.mark.parametrize("name", ["age", "pay"])
def test_means_without_noise_are_refused(release: Release, table: Table, name: str) -> None:
    bare = Numbers(release.groups.mean(table.frame[name].to_numpy(dtype=float)))
    with pytest.raises(PrivacyViolationError, match=f"{name!r} has 3 group means without noise"):
        verify(replace(release, cells={**release.cells, name: bare}), table)


def test_intervals_and_numbers_beyond_the_range_are_refused(release: Release, table: Table) -> None:
    true = Intervals(np.zeros(3), np.full(3, 110.0))
    with pytest.raises(PrivacyViolationError, match="'age' is not published as numbers"):
        verify(replace(release, cells={**release.cells, "age": true}), table)
    with pytest.raises(PrivacyViolationError, match="'pay' is published beyond its declared range"):
        verify(replace(release, cells={**release.cells, "pay": Numbers(np.array([0.1, 0.2, 1.5]))}), table)


def test_the_manifest_says_what_is_promised_and_how_noise_was_drawn(
    release: Release, table: Table, tmp_path: Path
) -> None:
    path = write_release(release, table, tmp_path / "out.csv")
    manifest = json.loads(manifest_path(path).read_text())
    claim = manifest["claim"]
    assert (claim["model"], claim["epsilon"], claim["delta"]) == ("differential privacy", 2.0, 0.0)
    assert "one record replaced" in claim["unit"]
    assert manifest["provenance"]["seed"] is None
    assert "system's randomness" in " ".join(manifest["provenance"]["notes"])


def test_seeded_noise_promises_nothing(table: Table) -> None:
    seeded = DpMicroaggregation(k=20, randomness="seeded").anonymize(table, rng=7)
    assert seeded.claim is None
    assert seeded.provenance.seed == 7
    assert any("nothing is promised" in note for note in seeded.provenance.notes)
