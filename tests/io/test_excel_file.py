"""Excel workbooks: what is read of them, what is refused, and releases written as one."""

from __future__ import annotations

import datetime
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from fedanon.anonymizers import Mondrian
from fedanon.data.readers import read_frame, read_table
from fedanon.data.schema import Schema
from fedanon.datasets.source import DataSource
from fedanon.errors import ConfigError, DataError
from fedanon.io.excel import write_excel
from fedanon.io.manifest import Manifest
from fedanon.io.release_file import FileForm, read_release, write_release
from fedanon.verification import Verification

SCHEMA = Schema.from_dict(
    {
        "one_row_per_person": True,
        "missing_values": ["-1"],
        "attributes": {
            "idade": {"role": "quasi_identifying", "type": "numeric", "range": [0, 120], "integer": True},
            "exame": {"role": "sensitive", "type": "numeric"},
            "nota": {"role": "insensitive", "type": "text"},
        },
    }
)
Sheet = Any


def book(path: Path, *rows: list[Any], change: Callable[[Sheet], None] | None = None) -> Path:
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    if change is not None:
        change(workbook.active)
    workbook.save(path)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ward.xlsx"


def test_numbers_stay_numbers_and_dates_become_days(path: Path) -> None:
    moment = datetime.datetime(2024, 2, 29, 10, 30)
    book(
        path, ["n", "x", "day", "mixed", "empty"], [1, 1.5, datetime.date(2024, 2, 29), "007", None], [2, 2, moment, 7]
    )
    frame = read_frame(path)
    assert frame["n"].tolist() == [1, 2]
    assert frame["x"].tolist() == [1.5, 2.0]
    assert frame["day"].tolist() == ["2024-02-29", "2024-02-29 10:30:00"]
    assert frame["mixed"].tolist() == ["007", "7"]
    assert frame["empty"].isna().all()


def test_a_number_that_means_missing_is_missing(path: Path) -> None:
    book(path, ["idade", "exame", "nota"], [30, -1, "a"], [40, 1.5, "b"])
    table = read_table(path, SCHEMA)
    assert table.frame["exame"].isna().tolist() == [True, False]


def test_empty_rows_and_columns_are_none(path: Path) -> None:
    book(path, ["a", "b"], [1, 2], [None, None], [3, None], change=lambda sheet: sheet.cell(9, 5).font)
    frame = read_frame(path)
    assert frame["a"].tolist() == [1, 3]
    assert list(frame.columns) == ["a", "b"]


def test_a_sheet_without_names(path: Path) -> None:
    book(path, [31, 1.5], [32, 2.5])
    frame = read_frame(path, header=False)
    assert (list(frame.columns), frame["c1"].tolist()) == (["c1", "c2"], [31, 32])
    with pytest.raises(DataError, match="looks like a record"):
        DataSource(data=(str(path),), quasi="all").read_frame()


def test_a_sheet_is_chosen_where_there_are_several(path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.title = "one"
    workbook.active.append(["a"])
    workbook.active.append([1])
    second = workbook.create_sheet("two")
    second.append(["b"])
    second.append([2])
    workbook.create_sheet("empty")
    workbook.save(path)
    assert list(read_frame(path, sheet="two").columns) == ["b"]
    with pytest.raises(ConfigError, match="several sheets: one, two"):
        read_frame(path)
    with pytest.raises(ConfigError, match="no sheet 'three'"):
        read_frame(path, sheet="three")
    with pytest.raises(ConfigError, match="read without sheet"):
        read_frame(path.with_suffix(".csv"), sheet="one")


SECRET = "Maria da Silva"


@pytest.mark.parametrize(
    ("rows", "change", "words"),
    [
        ([], None, "empty"),
        ([["a", "b"]], None, "no rows but its header"),
        ([["a", None, "c"], [1, 2, 3]], None, "without a name, the first is column B"),
        ([["a", "a"], [1, SECRET]], None, "same name"),
        (
            [["Título", None], ["a", "b"], [SECRET, 1]],
            lambda s: s.merge_cells("A1:B1"),
            "merged .* header row: A1:B1",
        ),
        ([["a", "b"], [SECRET, 1], [2, 2]], lambda s: s.merge_cells("A2:A3"), "merged .* in its rows"),
        ([[None, None], ["a", "b"], [SECRET, 1]], None, "first row .* is empty"),
        ([["a", "b"], [SECRET, "#N/A"]], None, "1 rows with an error of Excel .* the first is row 2"),
        ([["a", "b"], [SECRET, "=1+1"]], None, "1 formulas without a stored value in column B"),
    ],
)
def test_what_is_no_table_is_refused_without_a_cell(path: Path, rows: Any, change: Any, words: str) -> None:
    book(path, *rows, change=change)
    with pytest.raises(DataError, match=words) as caught:
        read_frame(path)
    assert SECRET not in str(caught.value)


def test_protected_old_damaged_and_absent_workbooks(path: Path) -> None:
    container = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)
    path.write_bytes(container + "EncryptedPackage".encode("utf-16-le"))
    with pytest.raises(DataError, match="protected by a password"):
        read_frame(path)
    path.write_bytes(container)
    with pytest.raises(DataError, match=r"old Excel file \(.xls\). Save it as"):
        read_frame(path)
    book(path, ["a"], [1])
    sound = path.read_bytes()
    cut = _without(sound, "xl/worksheets/sheet1.xml", b"<worksheet><sheetData><row><c")
    for damaged in (b"", b"nothing", sound[:-200], _without(sound, "xl/workbook.xml"), cut):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match="not an Excel workbook, or it is damaged"):
            read_frame(path)
    with pytest.raises(DataError, match="does not exist"):
        read_frame(path.with_name("absent.xlsx"))


def _without(packed: bytes, part: str, instead: bytes | None = None) -> bytes:
    kept = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed)) as source, zipfile.ZipFile(kept, "w") as target:
        for name in source.namelist():
            if name != part:
                target.writestr(name, source.read(name))
            elif instead is not None:
                target.writestr(name, instead)
    return kept.getvalue()


def test_a_release_in_excel_is_checked_like_any_other(path: Path, tmp_path: Path) -> None:
    rows = [[20 + i, 1.5 * i, "=1+1" if i == 2 else "'x" if i == 3 else "y"] for i in range(12)]
    as_text = lambda sheet: setattr(sheet.cell(4, 3), "data_type", "s")  # noqa: E731
    table = read_table(book(path, ["idade", "exame", "nota"], *rows, change=as_text), SCHEMA)
    out = write_release(Mondrian(k=3).anonymize(table, rng=0), table, tmp_path / "out.xlsx")
    manifest = Manifest.beside(out)
    assert manifest is not None
    assert manifest.is_of_file
    assert manifest.guarded_cells == {"nota": 1}
    view = read_release(out, SCHEMA)
    assert sorted(view.frame["nota"]) == sorted(row[2] for row in rows)
    assert view.smallest_class >= 3
    found = {check.name: check.outcome for check in Verification(manifest, SCHEMA, path).checks(rebuild=True)}
    assert set(found.values()) == {"pass"}


def test_text_like_a_formula_is_never_one(tmp_path: Path) -> None:
    for guarded, shown in ((True, "'=1+1"), (False, "=1+1")):
        table = read_table(
            book(tmp_path / "in.xlsx", ["idade", "exame", "nota"], *([30 + i, i, "x"] for i in range(4))), SCHEMA
        )
        table.frame["nota"] = "=1+1"
        form = FileForm(formula_guard=guarded)
        path = tmp_path / f"guarded {guarded}.xlsx"
        out = write_release(Mondrian(k=2).anonymize(table, rng=0), table, path, form=form)
        cell = openpyxl.load_workbook(out).active.cell(2, 3)
        assert (cell.value, cell.data_type) == (shown, "s")


def test_a_workbook_does_not_tell_when_it_was_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, float("nan")]})
    packed = io.BytesIO()
    write_excel(packed, frame)
    with zipfile.ZipFile(packed) as parts:
        assert {entry.date_time for entry in parts.infolist()} == {(2000, 1, 1, 0, 0, 0)}
        core = parts.read("docProps/core.xml").decode()
    assert core.count("2000-01-01T00:00:00Z") == 2
    again = io.BytesIO()
    write_excel(again, frame)
    assert again.getvalue() == packed.getvalue()
    with pytest.raises(DataError, match="control characters"):
        write_excel(io.BytesIO(), pd.DataFrame({"a": ["\x01"]}))
