"""Parquet in and out: only the columns that are needed are read, and what is written is what a CSV would say."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers.baselines import Identity
from fedanon.anonymizers.mondrian.method import Mondrian
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError, FedanonError, PrivacyViolationError, SchemaError
from fedanon.io import parquet as parquet_format
from fedanon.io import release_file
from fedanon.io.parquet import read_frame
from fedanon.io.parquet_source import ParquetSource
from fedanon.io.release_file import FileForm, manifest_path, read_release
from fedanon.release.release import Release

N = 60
CANARY = "CANARY-93417"
QUASI = ["age", "ward"]

#: rows in the order of the table; the random order has tests of its own, test_row_order.py
write_release = partial(release_file.write_release, form=FileForm(keep_order=True))


@pytest.fixture
def columns() -> dict[str, Any]:
    wards = ["cardiac", "ortho", "general", "onco"]
    return {
        "id": pa.array([f"P{i}" for i in range(N)]),
        "age": pa.array([20 + i % 40 for i in range(N)], pa.int16()),
        "ward": pa.array([wards[i % 4] for i in range(N)]).dictionary_encode(),
        "diagnosis": pa.array(["ab"[i % 2] for i in range(N)]).dictionary_encode(),
        "note": pa.array([[i, None] for i in range(N)]),
    }


def write(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


@pytest.fixture
def source(columns: dict[str, Any], schema: Schema, tmp_path: Path) -> ParquetSource:
    return ParquetSource.open(write(tmp_path / "in.parquet", columns, row_group_size=7), schema)


def suppressing(release: Release, rows: list[int]) -> Release:
    labels = release.groups.labels.copy()
    labels[rows] = -1
    return replace(release, groups=Groups(labels, release.groups.count))


# ---- reading ------------------------------------------------------------------------------------


def test_a_table_holds_the_quasi_identifiers_and_declares_no_more(source: ParquetSource) -> None:
    table = source.table()
    assert list(table.frame) == table.schema.names == QUASI
    assert table.schema.target is None
    with_target = source.table(also=["diagnosis"])
    assert list(with_target.frame) == [*QUASI, "diagnosis"]
    assert with_target.schema.target == "diagnosis"


def test_codes_are_those_of_the_same_table_as_text(source: ParquetSource, columns: dict[str, Any]) -> None:
    text = pd.DataFrame({name: [str(v) for v in values.to_pylist()] for name, values in columns.items()})
    expected = Table.from_frame(text, source.schema)
    np.testing.assert_array_equal(source.table().codes, expected.codes)


def test_persons_weights_and_households_are_read(columns: dict[str, Any], schema: Schema, tmp_path: Path) -> None:
    more = (Numeric("w", Role.IDENTIFYING, 0, 10), FreeText("home", Role.IDENTIFYING))
    full = replace(
        schema, attributes=schema.attributes + more, person_id="id", weight="w", household="home", name="sample"
    )
    columns |= {
        "id": pa.array([i // 2 for i in range(N)]),
        "w": pa.array([1.5] * N),
        "home": pa.array([f"h{i // 6}" for i in range(N)]),
    }
    table = ParquetSource.open(write(tmp_path / "in.parquet", columns), full).table()
    assert table.n_units == N // 2
    assert table.weights is not None
    assert table.weights.tolist() == [1.5] * N
    assert table.households is not None
    assert table.households.max() == N // 6 - 1
    assert list(table.frame) == QUASI


@pytest.mark.parametrize(
    ("ages", "missing"),
    [
        (pa.array([30, None, 40], pa.int64()), 1),
        (pa.array([30.0, float("nan"), None]), 2),
        (pa.array([30, -9, 40], pa.int32()), 1),
        (pa.array(["30", "?", "40"]), 1),
        (pa.array(["30", None, "-9"]).dictionary_encode(), 2),
        (pa.array([None, None, None]), 3),
        (pa.array([30, 31, 32], pa.decimal128(5, 2)), 0),
        (pa.array([30, 31, None], pa.uint8()).dictionary_encode(), 1),
    ],
)
def test_missing_numbers(ages: Any, missing: int, schema: Schema, tmp_path: Path) -> None:
    columns = {"id": ["a", "b", "c"], "age": ages, "ward": ["onco", "onco", "ortho"]}
    columns |= {"diagnosis": ["a", "b", "a"], "note": ["", "", ""]}
    path = write(tmp_path / "in.parquet", columns)
    source = ParquetSource.open(path, replace(schema, missing_values=("?", "-9")))
    if missing:
        with pytest.raises(SchemaError, match=f"'age' has {missing} missing"):
            source.table()
    coded = source.table(missing="category").columns[0]
    assert coded.has_missing == bool(missing)
    assert coded.values is not None
    assert len(coded.values) == 3 - missing + bool(missing)


@pytest.mark.parametrize(
    "wards",
    [
        pa.array([1, None, 2], pa.int64()),
        pa.array([1.0, np.nan, 2.0]),
        pa.array(["1", None, "2"]),
        pa.array([1, None, 2], pa.int8()).dictionary_encode(),
        pa.array(["1", None, "2"], pa.large_string()),
    ],
)
def test_categories_may_be_numbers(wards: Any, tmp_path: Path) -> None:
    attributes = {"ward": {"role": "quasi_identifying", "type": "categorical", "values": ["1", "2"]}}
    schema = Schema.from_dict({"attributes": attributes})
    table = ParquetSource.open(write(tmp_path / "in.parquet", {"ward": wards}), schema).table(missing="category")
    assert table.codes[:, 0].tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": None}, "lack 1 declared columns: age"),
        ({"extra": pa.array(["x"] * N)}, "1 columns that the schema does not declare: extra"),
        ({"age": pa.array([dt.date(2020, 1, 1)] * N)}, r"'age' has the Parquet type date32\[day\]"),
        ({"ward": pa.array([["onco"]] * N)}, "'ward' has the Parquet type list"),
    ],
)
def test_columns_are_checked_before_any_is_read(
    change: dict[str, Any], message: str, columns: dict[str, Any], schema: Schema, tmp_path: Path
) -> None:
    kept = {name: values for name, values in (columns | change).items() if values is not None}
    path = write(tmp_path / "in.parquet", kept)
    with pytest.raises(SchemaError, match=message):
        ParquetSource.open(path, schema)


def test_repeated_columns_and_no_rows(columns: dict[str, Any], schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table([*columns.values(), columns["age"]], names=[*columns, "age"]), path)
    with pytest.raises(SchemaError, match="columns of the same name: age"):
        ParquetSource.open(path, schema)
    with pytest.raises(SchemaError, match="of the same name"):
        read_frame(path)
    write(path, {name: values[:0] for name, values in columns.items()})
    with pytest.raises(DataError, match="no rows"):
        ParquetSource.open(path, schema)


def test_files_that_are_none(schema: Schema, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        ParquetSource.open(tmp_path / "no.parquet", schema)
    with pytest.raises(DataError, match="is a folder"):
        ParquetSource.open(tmp_path, schema)
    for content in (b"", b"age,ward\n", b"PAR1" + bytes(40)):
        (tmp_path / "x.parquet").write_bytes(content)
        with pytest.raises(DataError, match=r"x\.parquet is not a Parquet file, or it is damaged"):
            ParquetSource.open(tmp_path / "x.parquet", schema)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "x.parquet"
    return write(path, {"secret": [CANARY] * 30, "age": list(range(30))}, write_page_checksum=True)


@given(data=st.data())
def test_a_damaged_file_gives_one_of_our_errors_and_no_cell(data: st.DataObject, sound: Path) -> None:
    content = sound.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    changed = content[:at] + bytes([data.draw(st.integers(0, 255))]) + content[at + 1 :]
    damaged = sound.with_name("damaged.parquet")
    damaged.write_bytes(changed[: data.draw(st.integers(1, len(content)))])
    schema = Schema((FreeText("secret", Role.SENSITIVE), Numeric("age", Role.QUASI_IDENTIFYING, 0, 30)))
    message = ""
    try:
        ParquetSource.open(damaged, schema).table(also=["secret"])
    except FedanonError as error:
        message = str(error)
    assert CANARY not in message


def test_a_damaged_page_is_noticed(sound: Path) -> None:
    content = sound.read_bytes()
    at = content.index(CANARY[:8].encode())
    damaged = sound.with_name("page.parquet")
    damaged.write_bytes(content[:at] + b"X" + content[at + 1 :])
    with pytest.raises(DataError, match="damaged"):
        read_frame(damaged)


def test_lists_are_only_passed_on(source: ParquetSource) -> None:
    with pytest.raises(SchemaError, match="only pass from Parquet to Parquet: note"):
        source.table(also=source.schema.names)


def test_without_pyarrow_the_error_names_the_extra(tmp_path: Path, schema: Schema, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ConfigError, match=r"fedanon\[harness\]"):
        ParquetSource.open(tmp_path / "in.parquet", schema)


# ---- writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 7, 13, 1000])
def test_the_release_says_what_the_whole_frame_would(
    batch: int, source: ParquetSource, columns: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_format, "BATCH", batch)
    table = source.table()
    release = suppressing(Mondrian(k=4).anonymize(table, rng=0), [0, 1, 30])
    path = write_release(replace(release, claim=None), table, tmp_path / "out.parquet", source=source)
    written = pq.read_table(path)
    frame = release.to_frame()
    assert written.column_names == source.schema.published
    for name in QUASI:
        assert written[name].to_pylist() == frame[name].tolist()
    for name in ("diagnosis", "note"):
        expected = [None if i in (0, 1, 30) else value for i, value in enumerate(columns[name].to_pylist())]
        assert written[name].to_pylist() == expected
    assert written.schema.field("note").type == columns["note"].type


def test_the_manifest_is_that_of_the_csv_but_for_the_hashes(source: ParquetSource, tmp_path: Path) -> None:
    table = source.table()
    path = write_release(Mondrian(k=4).anonymize(table, rng=0), table, tmp_path / "out.parquet", source=source)
    document = json.loads(manifest_path(path).read_text())
    assert document.pop("parquet_sha256") == hashlib.sha256(path.read_bytes()).hexdigest()
    whole = Table.from_frame(pq.read_table(source.path).to_pandas().astype(str), source.schema)
    csv = write_release(Mondrian(k=4).anonymize(whole, rng=0), whole, tmp_path / "out.csv")
    expected = json.loads(manifest_path(csv).read_text())
    for of_csv in ("csv_sha256", "dialect", "formula_guard"):
        del expected[of_csv]
    for provenance in (document["provenance"], expected["provenance"]):
        del provenance["data_sha256"]  # of the columns that were held
    assert document == expected
    assert document["schema_sha256"] == source.schema.sha256


def test_the_same_seed_gives_the_same_bytes(source: ParquetSource, tmp_path: Path) -> None:
    table = source.table()
    paths = [
        write_release(Mondrian(k=4).anonymize(table, rng=0), table, tmp_path / f"{name}.parquet", source=source)
        for name in "ab"
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_nothing_else_of_the_source_is_in_the_file(columns: dict[str, Any], schema: Schema, tmp_path: Path) -> None:
    """Neither what a suppressed row held, nor names of identifying columns, nor descriptions."""
    columns["diagnosis"] = pa.array([CANARY if i == 5 else "a" for i in range(N)]).dictionary_encode()
    described = pa.table(columns).replace_schema_metadata({"pandas": f"secret-name {CANARY}"})
    field = described.schema.field("note").with_metadata({"remark": CANARY})
    described = described.cast(described.schema.set(4, field))
    pq.write_table(described, tmp_path / "in.parquet")
    declared = schema.replacing(Categorical("diagnosis", Role.SENSITIVE, Hierarchy.flat(["a", CANARY])))
    source = ParquetSource.open(tmp_path / "in.parquet", declared)
    table = source.table()
    release = replace(suppressing(Mondrian(k=4).anonymize(table, rng=0), [5]), claim=None)
    path = write_release(release, table, tmp_path / "out.parquet", source=source)
    file = pq.ParquetFile(path)
    assert CANARY not in repr(file.metadata.metadata)
    assert not file.schema_arrow.field("note").metadata
    assert "id" not in file.schema_arrow.names
    shown = pq.read_table(path, read_dictionary=["diagnosis"])["diagnosis"]
    assert shown.chunk(0).dictionary.to_pylist() == ["a"], "what a suppressed row held is not even in a dictionary"


def test_a_required_column_may_hold_nulls_once_a_row_is_suppressed(
    columns: dict[str, Any], schema: Schema, tmp_path: Path
) -> None:
    fields = [pa.field(name, values.type, nullable=False) for name, values in columns.items()]
    pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), tmp_path / "in.parquet")
    source = ParquetSource.open(tmp_path / "in.parquet", schema)
    table = source.table()
    release = replace(suppressing(Mondrian(k=4).anonymize(table, rng=0), [2]), claim=None)
    path = write_release(release, table, tmp_path / "out.parquet", source=source)
    assert pq.read_table(path)["diagnosis"].null_count == 1


def test_only_quasi_identifiers(tmp_path: Path) -> None:
    schema = Schema((Numeric("age", Role.QUASI_IDENTIFYING, 0, 99, True), FreeText("id", Role.IDENTIFYING)))
    path = write(tmp_path / "in.parquet", {"id": list(range(N)), "age": [i % 9 for i in range(N)]})
    source = ParquetSource.open(path, schema)
    table = source.table()
    release = Mondrian(k=3).anonymize(table, rng=0)
    out = write_release(release, table, tmp_path / "out.parquet", source=source)
    assert pq.read_table(out).to_pydict() == {"age": release.to_frame()["age"].tolist()}


def test_a_broken_claim_writes_nothing(source: ParquetSource, tmp_path: Path) -> None:
    table = source.table()
    broken = replace(Identity().anonymize(table, rng=0), claim=Mondrian(k=4).claim())
    with pytest.raises(PrivacyViolationError):
        write_release(broken, table, tmp_path / "out.parquet", source=source)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_a_source_that_changes_meanwhile_is_refused_and_the_old_release_stays(
    source: ParquetSource, columns: dict[str, Any], tmp_path: Path
) -> None:
    table = source.table()
    release = Mondrian(k=4).anonymize(table, rng=0)
    path = write_release(release, table, tmp_path / "out.parquet", source=source)
    before = path.read_bytes(), manifest_path(path).read_bytes()
    write(source.path, {name: values[::-1] for name, values in columns.items()})
    with pytest.raises(DataError, match="was changed after"):
        write_release(release, table, path, source=source, overwrite=True)
    assert (path.read_bytes(), manifest_path(path).read_bytes()) == before
    assert len(list(tmp_path.iterdir())) == 3, "no draft is left"


# ---- a release read back ------------------------------------------------------------------------


def test_a_release_reads_back_without_its_other_columns(source: ParquetSource, tmp_path: Path) -> None:
    table = source.table()
    release = replace(suppressing(Mondrian(k=4).anonymize(table, rng=0), [0, 9]), claim=None)
    path = write_release(release, table, tmp_path / "out.parquet", source=source)
    read = read_release(path, source.schema)
    assert list(read.frame) == QUASI
    np.testing.assert_array_equal(read.suppressed, release.suppressed)
    np.testing.assert_array_equal(np.sort(read.classes.sizes), np.sort(release.classes.sizes))
    assert list(read_release(path, source.schema, also=["diagnosis"]).frame) == [*QUASI, "diagnosis"]


def test_stars_beside_values_are_a_class_and_not_suppressed(source: ParquetSource, tmp_path: Path) -> None:
    rows = {"age": ["*"] * 3, "ward": ["*"] * 3, "diagnosis": ["a", None, None], "note": [[1], None, [2]]}
    read = read_release(write(tmp_path / "r.parquet", rows, row_group_size=1), source.schema)
    assert read.suppressed.tolist() == [False, True, False]
    assert read.classes.sizes.tolist() == [2]


def test_an_empty_quasi_identifier_is_no_release(source: ParquetSource, tmp_path: Path) -> None:
    rows = {"age": ["*", None], "ward": ["*", "onco"], "diagnosis": ["a", "b"], "note": [[1], [2]]}
    with pytest.raises(DataError, match="'age' of the release has 1 empty"):
        read_release(write(tmp_path / "r.parquet", rows), source.schema)


def test_a_release_without_quasi_identifiers_keeps_its_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "r.parquet", {"note": ["x"] * 3})
    read = read_release(path, Schema((FreeText("note", Role.INSENSITIVE),)))
    assert len(read) == 3
    assert read.classes.sizes.tolist() == [3]


def test_a_release_must_have_the_published_columns(
    source: ParquetSource, columns: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(SchemaError, match="identifying columns, so it is no release: id"):
        read_release(source.path, source.schema)
    del columns["id"], columns["note"]
    with pytest.raises(SchemaError, match="lacks 1 columns of the schema: note"):
        read_release(write(tmp_path / "r.parquet", columns), source.schema)


def test_a_release_of_a_csv_table_may_be_parquet(source: ParquetSource, tmp_path: Path) -> None:
    table = source.table(also=["diagnosis"])
    release = replace(suppressing(Mondrian(k=4).anonymize(table, rng=0), [3]), claim=None)
    path = write_release(release, table, tmp_path / "out.parquet")
    written = pq.read_table(path)
    expected = release.to_frame()
    assert written.to_pandas().isna().equals(expected.isna())
    assert written["ward"].to_pylist() == expected["ward"].tolist()
    assert "parquet_sha256" in json.loads(manifest_path(path).read_text())
