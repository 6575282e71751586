"""Rows of a file are in random order; they are matched by a key, or by what they say where that is certain."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedanon.anonymizers import KMember, Mdav, Mondrian
from fedanon.data.groups import Groups
from fedanon.data.readers import read_table
from fedanon.data.schema import FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import DataError
from fedanon.io import parquet as parquet_format
from fedanon.io.manifest import Manifest
from fedanon.io.parquet_source import ParquetSource
from fedanon.io.release_file import FileForm, read_release, write_release
from fedanon.metrics import evaluate
from fedanon.metrics.row_matching import match_rows
from fedanon.release.release import Release
from fedanon.verification import ORIGINAL_METRICS, Verification, check_release

N = 120
SCHEMA = Schema(
    (
        FreeText("patient", Role.IDENTIFYING),
        Numeric("age", Role.QUASI_IDENTIFYING, 0, 200, True),
        Numeric("weight", Role.QUASI_IDENTIFYING, 0, 200, True),
        FreeText("diagnosis", Role.SENSITIVE),
        FreeText("note", Role.INSENSITIVE),
    ),
    person_id="patient",
)


def frame(notes: int) -> pd.DataFrame:
    """Visits of 40 people; ``notes`` different notes."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "patient": [f"P{i // 3}" for i in range(N)],
            "age": rng.integers(0, 200, N),
            "weight": rng.integers(0, 200, N),
            "diagnosis": rng.choice(["flu", "asthma"], N),
            "note": [f"n{i % notes}" for i in range(N)],
        }
    ).astype(str)


def released(tmp_path: Path, table: Table, method: Any, **form: Any) -> tuple[Release, Path, Path]:
    release, key = method.anonymize(table, rng=1), tmp_path / "rows.json"
    out = write_release(release, table, tmp_path / "out.csv", form=FileForm(row_key=key, **form))
    return release, out, key


def test_the_order_is_random_and_the_key_tells_it(tmp_path: Path) -> None:
    table = Table.from_frame(frame(N), SCHEMA)
    release, out, key = released(tmp_path, table, Mondrian(k=3))
    notes = pd.read_csv(out)["note"].tolist()
    assert sorted(notes) == sorted(table.frame["note"])
    assert notes != table.frame["note"].tolist()
    order = json.loads(key.read_text())["order"]
    assert notes == table.frame["note"].iloc[order].tolist()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert json.loads(Path(f"{out}.manifest.json").read_text())["row_order"] == "shuffled"
    again = write_release(release, table, tmp_path / "again.csv")
    assert pd.read_csv(again)["note"].tolist() != notes


@pytest.mark.parametrize("method", [Mondrian(k=3), KMember(k=3)])
def test_rows_told_apart_by_content_give_the_numbers_of_the_release(method: Any, tmp_path: Path) -> None:
    table = Table.from_frame(frame(N), SCHEMA)
    release, out, key = released(tmp_path, table, method)
    ours = evaluate(table, release, ORIGINAL_METRICS)
    for checked in (check_release(out, SCHEMA, table=table), check_release(out, SCHEMA, table=table, row_key=key)):
        assert {name: checked.metrics[name] for name in ours} == pytest.approx(ours)
        assert checked.metrics["k_reached"] == release.smallest_class
        assert [verdict.holds for verdict in checked.verdicts] == [True]


def test_where_rows_fit_several_records_only_the_key_counts_people(tmp_path: Path) -> None:
    rows = frame(1).assign(diagnosis="flu")
    table = Table.from_frame(rows, SCHEMA)
    release, out, key = released(tmp_path, table, KMember(k=12))
    checked = check_release(out, SCHEMA, table=table)
    assert checked.matching == "ambiguous"
    assert [verdict.doubt for verdict in checked.verdicts] == ["people"]
    assert "--row-key" in checked.to_dict()["not_matched"]
    ours = evaluate(table, release, ORIGINAL_METRICS)
    shown = {name: checked.metrics[name] for name in ours if name in checked.metrics}
    assert shown == pytest.approx({name: ours[name] for name in ("ncp_published", "truthfulness")})
    known = check_release(out, SCHEMA, table=table, row_key=key)
    assert {name: known.metrics[name] for name in ours} == pytest.approx(ours)
    assert [verdict.holds for verdict in known.verdicts] == [True]


def test_suppressed_rows_are_matched_too(tmp_path: Path) -> None:
    table = Table.from_frame(frame(N), SCHEMA)
    release = Mondrian(k=3).anonymize(table, rng=1)
    labels = release.groups.labels.copy()
    labels[labels == 0] = -1
    cells = {name: column.select(np.arange(1, release.groups.count)) for name, column in release.cells.items()}
    hidden = replace(release, groups=Groups.from_labels(labels), cells=cells)
    out = write_release(hidden, table, tmp_path / "out.csv")
    found = match_rows(read_release(out, SCHEMA), table)
    assert found is not None
    assert found.rows is not None
    view = read_release(out, SCHEMA).in_order(found.rows)
    np.testing.assert_array_equal(view.suppressed, hidden.suppressed)
    assert view.frame["note"].fillna("").tolist() == hidden.to_frame()["note"].fillna("").tolist()


def test_a_file_that_fits_no_record_is_noticed(tmp_path: Path) -> None:
    rows = frame(N)
    table = Table.from_frame(rows, SCHEMA)
    _, out, _ = released(tmp_path, table, Mondrian(k=3))
    view = read_release(out, SCHEMA)
    assert match_rows(view, table) is not None
    other = Table.from_frame(rows.assign(age=rows["age"].to_numpy()[::-1]), SCHEMA)
    assert match_rows(view, other) is None
    assert match_rows(view, Table.from_frame(rows.assign(note="x"), SCHEMA)) is None


def test_changed_values_are_not_matched_by_content(tmp_path: Path) -> None:
    schema = Schema(SCHEMA.quasi_identifiers)
    table = Table.from_frame(frame(N)[schema.names], schema)
    release, out, key = released(tmp_path, table, Mdav(k=3))
    alone = check_release(out, schema, table=table)
    assert alone.matching == "changed"
    assert "truthfulness" not in alone.metrics
    ours = evaluate(table, release, ORIGINAL_METRICS)
    known = check_release(out, schema, table=table, row_key=key)
    assert {name: known.metrics[name] for name in ours} == pytest.approx(ours)


def test_rebuilding_compares_rows_or_with_the_key_bytes(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    frame(N).to_csv(source, index=False)
    table = read_table(source, SCHEMA)
    _, out, key = released(tmp_path, table, KMember(k=3))
    manifest = Manifest.beside(out)
    assert manifest is not None
    for row_key, what in ((None, "the same rows"), (key, "the same bytes")):
        verification = Verification(manifest, SCHEMA, source, row_key=row_key)
        found = {check.name: check for check in verification.checks(rebuild=True)}
        assert {check.outcome for check in found.values()} == {"pass"}, found
        assert what in found["rebuild"].text
    text = out.read_text().replace("flu", "angina", 1)
    out.write_text(text)
    found = {check.name: check for check in Verification(manifest, SCHEMA, source).checks(rebuild=True)}
    assert found["rebuild"].outcome == found["truth"].outcome == "fail"


def test_the_key_of_another_release_is_refused(tmp_path: Path) -> None:
    table = Table.from_frame(frame(N), SCHEMA)
    _, out, key = released(tmp_path, table, Mondrian(k=3))
    write_release(Mondrian(k=4).anonymize(table, rng=1), table, out, overwrite=True)
    with pytest.raises(DataError, match="another release"):
        check_release(out, SCHEMA, table=table, row_key=key)
    key.write_text('{"order": [0, 0]}')
    with pytest.raises(DataError, match="cannot be read"):
        check_release(out, SCHEMA, table=table, row_key=key)


def test_a_parquet_file_larger_than_memory_is_shuffled_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_format, "PART", 13)
    monkeypatch.setattr(parquet_format, "BATCH", 7)
    columns = {name: pa.array(frame(N)[name]) for name in SCHEMA.names}
    columns |= {name: pa.array(frame(N)[name].astype(int)) for name in ("age", "weight")}
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=11)
    source = ParquetSource.open(path, SCHEMA)
    table, key = source.table(), tmp_path / "rows.json"
    form = FileForm(row_key=key)
    out = write_release(
        Mondrian(k=3).anonymize(table, rng=1), table, tmp_path / "out.parquet", form=form, source=source
    )
    kept = FileForm(keep_order=True)
    write_release(Mondrian(k=3).anonymize(table, rng=1), table, tmp_path / "kept.parquet", form=kept, source=source)
    order = json.loads(key.read_text())["order"]
    whole = pq.read_table(tmp_path / "kept.parquet").take(order)
    assert pq.read_table(out).equals(whole)
    assert order != list(range(N))
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".")) == []
    manifest = Manifest.beside(out)
    assert manifest is not None
    found = {check.name: check.outcome for check in Verification(manifest, original=path).checks(rebuild=True)}
    assert set(found.values()) == {"pass"}, found


def test_a_kept_order_is_said(tmp_path: Path) -> None:
    table = Table.from_frame(frame(N), SCHEMA)
    out = write_release(
        Mondrian(k=3).anonymize(table, rng=1), table, tmp_path / "o.csv", form=FileForm(keep_order=True)
    )
    assert json.loads(Path(f"{out}.manifest.json").read_text())["row_order"] == "kept"
    assert pd.read_csv(out)["note"].tolist() == table.frame["note"].tolist()
    assert check_release(out, SCHEMA, table=table).matching == "order"
