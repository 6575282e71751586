"""A release is written as its input is, and whatever else was changed is listed and undone on reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.anonymizers import Mondrian
from fedanon.data.readers import read_frame, read_table
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError
from fedanon.io.csv import read_with_dialect
from fedanon.io.dialect import Dialect, find_encoding, find_separator, lacks_header, with_commas, with_points
from fedanon.io.manifest import Manifest
from fedanon.io.release_file import FileForm, read_release, write_release

SCHEMA = """
one_row_per_person = true
missing_values = ["-"]
[attributes.idade]
role = "quasi_identifying"
type = "numeric"
range = [0, 120]
[attributes.creatinina]
role = "sensitive"
type = "numeric"
range = [0, 20]
[attributes.código]
role = "insensitive"
type = "text"
"""


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA.replace("attributes.código", 'attributes."código"'), encoding="utf-8")
    return Schema.read(path)


def brazilian(tmp_path: Path, encoding: str = "cp1252") -> Path:
    lines = ["idade;creatinina;código"]
    lines += [f"{20 + i},5;{1 + i % 3},{i % 2}0;{'-' if i == 4 else 'ã1,5'}" for i in range(12)]
    path = tmp_path / "in.csv"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))
    return path


def written(table: Table, path: Path, **form: Any) -> tuple[str, dict[str, Any]]:
    form = {"keep_order": True} | form
    out = write_release(Mondrian(k=3).anonymize(table, rng=1), table, path, form=FileForm(**form))
    dialect = form.get("dialect", Dialect())
    text = out.read_bytes().decode(dialect.encoding)
    return text, json.loads(Path(f"{out}.manifest.json").read_text())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_file_goes_out_as_it_came_in(encoding: str, schema: Schema, tmp_path: Path) -> None:
    source = brazilian(tmp_path, encoding)
    frame, dialect = read_with_dialect(source, schema, "auto")
    assert dialect == Dialect(separator=";", decimal=",", encoding=encoding, line_end="\r\n")
    assert frame["creatinina"][0] == "1.00"
    table = Table.from_frame(frame, schema)
    text, document = written(table, tmp_path / "out.csv", dialect=dialect, found=dialect, formula_guard=False)
    lines = text.removeprefix("\ufeff").split("\r\n")
    assert lines[0] == "idade;creatinina;código"
    assert lines[1] == '"[20,5; 22,5]";1,00;ã1,5'
    assert [line.partition(";")[2] for line in lines[1:-1]]
    before = source.read_bytes().decode(encoding).split("\r\n")
    assert [line.split(";")[-2:] for line in lines[1:]] == [line.split(";")[-2:] for line in before[1:]]
    assert document["changes"] == []
    view = read_release(tmp_path / "out.csv", schema)
    assert view.frame["idade"][0] == "[20.5, 22.5]"
    assert view.frame["creatinina"].tolist() == frame["creatinina"].tolist()
    assert view.cells["idade"].texts()[0] == "[20.5, 22.5]"


def test_without_the_manifest_the_dialect_is_found(schema: Schema, tmp_path: Path) -> None:
    frame, dialect = read_with_dialect(brazilian(tmp_path), schema, "auto")
    written(Table.from_frame(frame, schema), tmp_path / "out.csv", dialect=dialect, formula_guard=False)
    (tmp_path / "out.csv.manifest.json").unlink()
    assert read_release(tmp_path / "out.csv", schema).frame["idade"][0] == "[20.5, 22.5]"


def test_every_other_change_is_listed(schema: Schema, tmp_path: Path) -> None:
    frame, found = read_with_dialect(brazilian(tmp_path), schema, "auto")
    table = Table.from_frame(frame, schema)
    text, document = written(table, tmp_path / "out.csv", found=found)
    assert {change["kind"] for change in document["changes"]} == {
        "encoding",
        "separator",
        "decimal",
        "line end",
        "formula guard",
    }
    guard = document["changes"][-1]
    assert guard == {"kind": "formula guard", "cells": {"código": 1}, "names": []}
    assert "'-\n" in text
    assert read_release(tmp_path / "out.csv", schema).frame["código"].tolist() == table.frame["código"].tolist()


@pytest.mark.parametrize("formula_guard", [True, False])
def test_an_apostrophe_of_the_original_survives(formula_guard: bool, tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA.replace("attributes.código", "attributes.code"), encoding="utf-8")
    schema = Schema.read(path)
    codes = ["'-", "''=x", "-", "=x", "'a", "-1", "-1,5", "plain"] * 2
    frame = pd.DataFrame({"idade": range(16), "creatinina": ["1"] * 16, "code": codes}).astype(str)
    table = Table.from_frame(frame, schema)
    text, _ = written(table, tmp_path / "out.csv", formula_guard=formula_guard)
    assert read_release(tmp_path / "out.csv", schema).frame["code"].tolist() == codes
    manifest = Manifest.beside(tmp_path / "out.csv")
    assert manifest is not None
    assert manifest.guarded_cells == ({"code": 10} if formula_guard else {})
    assert (",=x\n" in text) != formula_guard


def test_what_an_encoding_lacks_is_an_error_and_not_a_question_mark(schema: Schema, tmp_path: Path) -> None:
    frame, _ = read_with_dialect(brazilian(tmp_path), schema, "auto")
    with pytest.raises(DataError, match="--encoding-out"):
        written(Table.from_frame(frame, schema), tmp_path / "out.csv", dialect=Dialect(encoding="ascii"))
    assert not (tmp_path / "out.csv").exists()


def test_commas_are_decimal_only_in_numeric_columns_and_beside_another_separator(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('a,b\n"1,234",x\n"2,345",y\n')
    assert read_frame(path)["a"].tolist() == ["1,234", "2,345"]
    path.write_text("a;b\n1,5;x\n2;y\n")
    assert read_frame(path)["a"].tolist() == ["1.5", "2"]
    path.write_text("a;b\n1,5;1.5\n2;2.5\n")
    columns = '[attributes.{}]\nrole = "sensitive"\ntype = "numeric"\n'
    declared = tmp_path / "s.toml"
    declared.write_text(columns.format("a") + columns.format("b"))
    with pytest.raises(DataError, match="decimal comma in a and a decimal point in b"):
        read_table(path, Schema.read(declared))


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("name;age, years\nx;1\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a\n1\n", ","),
    ],
)
def test_separators(text: str, separator: str) -> None:
    assert find_separator(text.encode()) == separator


def test_encodings_are_tried_strictly() -> None:
    assert find_encoding("é".encode()) == "utf-8"
    assert find_encoding("é".encode("utf-8-sig")) == "utf-8-sig"
    assert find_encoding("é€".encode("cp1252")) == "cp1252"
    assert find_encoding(b"\xe9\x81") == "latin-1"
    assert find_encoding("é".encode() + b"\xe9") is None, "damaged UTF-8 is not taken for something else"


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=5))
def test_commas_and_points_are_inverse(pairs: list[tuple[float, float]]) -> None:
    texts = pd.Series([f"[{low!r}, {high!r}]" for low, high in pairs] + [repr(low) for low, _ in pairs] + ["*", "ab"])
    assert with_points(with_commas(texts)).tolist() == texts.tolist()


def test_a_dialect_is_checked() -> None:
    for wrong in ({"separator": "::"}, {"decimal": ";"}, {"encoding": "no-such"}):
        with pytest.raises(ConfigError):
            Dialect(**wrong)


def test_quoting_is_found_and_kept(schema: Schema, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    lines = [f'"{20 + i}";"{1 + i % 3},50";"a"" ;b"' for i in range(12)]
    path.write_text("\n".join(['"idade";"creatinina";"código"', *lines]) + "\n", encoding="utf-8")
    frame, dialect = read_with_dialect(path, schema, "auto")
    assert (dialect.quoting, dialect.decimal) == ("all", ",")
    assert "every field quoted" in str(dialect)
    text, document = written(Table.from_frame(frame, schema), tmp_path / "out.csv", dialect=dialect, found=dialect)
    assert text.splitlines()[0] == '"idade";"creatinina";"código"'
    assert document["changes"] == []
    manifest = Manifest.beside(tmp_path / "out.csv")
    assert manifest is not None
    assert manifest.dialect == dialect
    path.write_text('idade;creatinina;código\n20;1,5;"a;b"\n', encoding="utf-8")
    assert read_with_dialect(path, schema, "auto")[1].quoting == "some"


def test_a_file_without_a_header_line(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('30;"x;y";1,5\n31;;2,5\n', encoding="utf-8")
    frame = read_frame(path, header=False)
    assert list(frame.columns) == ["c1", "c2", "c3"]
    assert frame["c3"].tolist() == ["1.5", "2.5"]
    dialect = read_with_dialect(path, None, "auto", header=False)[1]
    assert "no header line" in str(dialect)
    assert Dialect(separator=";", decimal=",").changes_from(dialect) == [
        {"kind": "header", "from": "-", "to": "c1, c2, ..."}
    ]
    path.write_text("30;x\n31\n", encoding="utf-8")
    with pytest.raises(DataError, match="not 2, as in the first line; the first is line 2 with 1 fields"):
        read_frame(path, header=False)


@pytest.mark.parametrize(
    ("first", "lacks"),
    [
        ("age,day,ward", False),
        ("31,01/02/2024,onco", True),
        ("31,day,ward", False),  # days with a name
        ("2019,2020,2021", False),  # years as names of columns whose values are texts
    ],
)
def test_names_that_look_like_a_record(first: str, lacks: bool) -> None:
    rows = [["a", "b", "c"]] if first.startswith("2019") else [["30", "02/02/2024", "x"], ["31", "03/02/2024", "y"]]
    assert lacks_header(pd.DataFrame(rows, columns=first.split(","))) is lacks
