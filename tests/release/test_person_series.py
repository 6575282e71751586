"""Classes of series: the gate counts people whose whole series are alike."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.anonymizers import DpMicroaggregation, Mondrian
from fedanon.anonymizers.person_series import level_lengths
from fedanon.data.groups import Groups
from fedanon.data.person_key import PersonKey
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError, PrivacyViolationError, SchemaError
from fedanon.release.gate import verify
from fedanon.release.release import Provenance, release_of
from fedanon.release.view import part_by_person

KEY = PersonKey(bytes(32))
SCHEMA = {
    "person_id": "who",
    "attributes": {
        "who": {"role": "identifying", "type": "text", "pseudonym": True},
        "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 100], "integer": True},
        "day": {
            "role": "quasi_identifying",
            "type": "date",
            "range": ["2024-01-01", "2024-12-31"],
            "shift_days": 30,
        },
        "flu": {"role": "sensitive", "type": "text"},
    },
}


def table_of(people: int = 60, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    rows = [
        (f"p{i}", str(20 + i % 50), f"2024-{1 + rng.integers(12):02}-{1 + rng.integers(28):02}", rng.choice(["a", "b"]))
        for i in range(people)
        for _ in range(int(rng.choice([1, 2, 2, 5])))
    ]
    frame = pd.DataFrame(rows, columns=["who", "age", "day", "flu"])
    return Table.from_frame(frame, Schema.from_dict(SCHEMA).with_key(KEY))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.integers(1, 8))
def test_level_lengths(lengths, k):
    given_, found = np.array(lengths), level_lengths(np.array(lengths), k)
    assert ((found >= 0) & (found <= given_)).all()
    counts = Counter(found[found > 0].tolist())
    assert all(count >= k for count in counts.values())
    assert bool(counts) == (len(lengths) >= k)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(-1, 3)), min_size=1, max_size=40))
def test_parting_by_series(rows):
    people, labels = (np.array(column) for column in zip(*rows, strict=True))
    found = part_by_person(Groups(labels.astype(np.int32), 4), people)
    series = defaultdict(list)
    for person, label in rows:
        if label >= 0:
            series[person].append(label)
    wanted = [(label, tuple(sorted(series[p]))) if label >= 0 else None for p, label in rows]
    for i, one in enumerate(wanted):
        assert (found.labels[i] < 0) == (one is None)
        for j, other in enumerate(wanted):
            if one is not None and other is not None:
                assert (found.labels[i] == found.labels[j]) == (one == other)


def test_the_gate_refuses_rows_that_only_look_alike_one_by_one():
    """A method that groups rows keeps k for rows and breaks it for series; the gate sees the series."""
    table = table_of()
    method = Mondrian(k=5)
    plan = method.plan(table, np.random.default_rng(0))
    release = release_of(
        table,
        plan.groups,
        plan.cells,
        claim=method.claim(),
        provenance=Provenance("mondrian", {}, 0, "", table.sha256, table.schema.sha256),
        recoding=plan.recoding,
    )
    assert release.equal_rows.count_people(table.persons).min() >= 5
    with pytest.raises(PrivacyViolationError, match="claims 5-anonymity"):
        verify(release, table)
    assert method.anonymize(table, rng=0).smallest_class >= 5


def test_requirements_hold_for_every_row_of_a_series():
    table = table_of(120)
    release = Mondrian(k=4, require="l=2:flu").anonymize(table, rng=0)
    frame = release.to_frame().dropna(subset="who")
    series = frame.groupby("who").apply(lambda rows: tuple(sorted(zip(rows["age"], rows["day"], strict=True))))
    frame["series"] = frame["who"].map(series)
    seen = frame.groupby(["age", "day", "series"])
    assert seen["flu"].nunique().min() >= 2
    assert seen["who"].nunique().min() >= 4


def test_rows_beyond_what_others_have_are_suppressed_and_counted():
    frame = pd.DataFrame(
        {
            "who": [f"p{i}" for i in range(6)] * 2 + ["p0"] * 3,
            "age": ["40"] * 15,
            "day": ["2024-05-01"] * 15,
            "flu": ["a"] * 15,
        }
    )
    table = Table.from_frame(frame, Schema.from_dict(SCHEMA).with_key(KEY))
    release = Mondrian(k=3).anonymize(table, rng=0)
    assert int(release.suppressed.sum()) == 3
    assert any("3 rows are suppressed" in note for note in release.provenance.notes)
    assert release.to_frame()["who"].isna().sum() == 3


def test_offsets_are_one_per_person_and_bounded():
    offsets = [KEY.offset(f"p{i}", 30) for i in range(2000)]
    assert (min(offsets), max(offsets)) == (-30, 30)
    assert KEY.offset("p1", 30) == KEY.offset("p1", 30)
    assert KEY.pseudonym("p1") != PersonKey(bytes(31) + b"1").pseudonym("p1")
    assert str(KEY.secret) not in repr(KEY)


def test_what_schemas_of_series_must_say():
    with pytest.raises(SchemaError, match="pseudonym belongs to the person_id"):
        Schema.from_dict({"attributes": SCHEMA["attributes"]})
    with pytest.raises(SchemaError, match="shifted by person"):
        Schema.from_dict({"attributes": {name: SCHEMA["attributes"][name] for name in ("age", "day", "flu")}})
    still = {"discharged": {"role": "insensitive", "type": "date"}}
    with pytest.raises(SchemaError, match="move alike: give 'discharged' the shift_days"):
        Schema.from_dict({**SCHEMA, "attributes": {**SCHEMA["attributes"], **still}})
    with pytest.raises(SchemaError, match="key_fingerprint goes with"):
        Schema.from_dict({"key_fingerprint": "ab", "attributes": {"age": SCHEMA["attributes"]["age"]}})
    with pytest.raises(ConfigError, match="takes no key"):
        Schema.from_dict({"attributes": {"age": SCHEMA["attributes"]["age"]}}).with_key(KEY)
    schema = Schema.from_dict(SCHEMA)
    assert schema.with_key(KEY) == schema
    assert Schema.from_dict(schema.to_dict()).sha256 == schema.with_key(KEY).sha256
    assert not schema.without_key().needs_key


def test_differential_privacy_publishes_no_series():
    with pytest.raises(ConfigError, match="no pseudonyms"):
        DpMicroaggregation(k=5).anonymize(table_of(), rng=0)


def test_requirements_that_series_cannot_keep_are_refused():
    with pytest.raises(InfeasibleError, match=r"cannot keep 0\.02-closeness of 'flu'"):
        Mondrian(k=4, require="t=0.02:flu").anonymize(table_of(120), rng=0)
