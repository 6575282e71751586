"""Files that are damaged, hostile or merely odd: one DataError each, and never a cell in it."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedanon.data.readers import read_table
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.io import csv as csv_checks
from fedanon.io.csv import read_frame

CANARY = "CANARY-93417"


@pytest.fixture
def write(tmp_path):
    def to_file(data, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return to_file


def refused(path, match, **options):
    with pytest.raises(DataError, match=match) as caught:
        read_frame(path, **options)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_all_columns_are_text_and_only_the_empty_cell_is_missing(write):
    frame = read_frame(write("a,b,c\n007,NA,\n1.50,nan,null\n"))
    assert frame["a"].tolist() == ["007", "1.50"]
    assert frame["b"].tolist() == ["NA", "nan"]
    assert frame["c"].isna().tolist() == [True, False]


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_separator_is_taken_from_the_header(write, separator):
    frame = read_frame(write(f"a{separator}b\n1{separator}2\n"))
    assert frame.columns.tolist() == ["a", "b"]


def test_a_given_separator_wins(write):
    assert read_frame(write("a,x;b\n1;2\n"), separator=";").columns.tolist() == ["a,x", "b"]
    with pytest.raises(ConfigError, match="separator"):
        read_frame(write("a,b\n1,2\n"), separator="::")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_line_ends(write, end, quote):
    frame = read_frame(write(f"a,b{end}{quote}1{quote},2{end}3,4{end}{end}"))
    assert frame.to_numpy().tolist() == [["1", "2"], ["3", "4"]]


def test_quoted_cells(write):
    frame = read_frame(write('a,b\n"x,\ny","say ""hi"""\n1,\n'))
    assert frame["a"].tolist() == ["x,\ny", "1"]
    assert frame["b"][0] == 'say "hi"'


def test_one_column_keeps_its_empty_rows(write):
    assert read_frame(write("a\n1\n\n3\n"))["a"].isna().tolist() == [False, True, False]


def test_byte_order_mark_is_accepted(write):
    assert read_frame(write(b"\xef\xbb\xbfa,b\n1,2\n")).columns.tolist() == ["a", "b"]


def test_absent_folder_empty(write, tmp_path):
    refused(tmp_path / "no.csv", "does not exist")
    refused(tmp_path, "is a folder")
    refused(write(b""), "is empty")
    refused(write(b"\xef\xbb\xbf"), "is empty")
    refused(write("\n\n"), "is empty")
    refused(write("\na,b\n1,2\n"), "first line .* is empty")
    refused(write("a,b\n"), "no rows")
    refused(write("a,b"), "no rows")


def test_encodings(write):
    latin = write(f"name,b\nJosé {CANARY},1\n".encode("latin-1"))
    refused(latin, "'encoding' option")
    assert read_frame(latin, encoding="latin-1")["name"][0].startswith("José")
    wide = write(f"a,b\n{CANARY},2\n".encode("utf-16"))
    refused(wide, "'encoding' option|NUL")
    assert read_frame(wide, encoding="utf-16")["b"].tolist() == ["2"]
    refused(write(f"a,b\n{CANARY}\0,2\n"), "NUL")
    for encoding in ("no-such-code", "zlib"):
        with pytest.raises(ConfigError, match="encoding"):
            read_frame(write("a,b\n1,2\n"), encoding=encoding)


def test_compressed_and_binary_files_are_not_unpacked(write, tmp_path):
    data = f"a,b\n{CANARY},2\n".encode()
    for packed, kind in [
        (gzip.compress(data), "gzip"),
        (bz2.compress(data), "bzip2"),
        (lzma.compress(data), "xz"),
        (b"\x28\xb5\x2f\xfd" + data, "zstd"),
        (b"PAR1" + data, "parquet"),
    ]:
        refused(write(packed), f"compressed or binary \\({kind}\\)")
    with zipfile.ZipFile(tmp_path / "bomb.csv", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.csv", bytes(10_000_000))
    refused(tmp_path / "bomb.csv", "zip")


@pytest.mark.parametrize("quote", ["", '"q"'])
def test_rows_with_a_wrong_number_of_fields(write, quote):
    sound = f"a,b,c\n1,2,3\n{quote},2,3\n"
    refused(write(sound + f"{CANARY},2\n4,5,6\n{CANARY}\n"), "2 rows .* not 3.* line 4 with 2 fields")
    refused(write(sound + f"{CANARY},2,3,4\n"), "1 rows .* line 4 with 4 fields")
    refused(write(sound + CANARY), "1 rows .* line 4 with 1 fields")  # truncated


def test_line_numbers_count_lines_within_quotes_and_empty_ones(write):
    refused(write('a,b\n"x\ny",1\n\nz\n'), "line 5 with 1 fields")
    refused(write("a,b\n\n1,2\nz\n"), "line 4 with 1 fields")


def test_blocks_of_lines_count_alike(write, monkeypatch):
    monkeypatch.setattr(csv_checks, "_BLOCK", 16)
    rows = "".join(f"{i},{i},{i}\n" for i in range(100))
    assert len(read_frame(write("a,b,c\n" + rows))) == 100
    refused(write("a,b,c\n" + rows + "1,2\n" + rows), "1 rows .* line 102 with 2 fields")


def test_damaged_quotes(write):
    refused(write(f'a,b\n1,2\n"{CANARY},3\n4,5\n'), "unclosed quote in the record that begins on line 3")
    refused(write(f'a,"{CANARY}\n'), "quote in its first line")
    refused(write(f'a,b\n"{CANARY}"x,2\n'), "damaged or unclosed quote")


class EndlessLine:
    """A file of one line that never ends."""

    def __init__(self):
        self.read_bytes = 0

    def read(self, size):
        self.read_bytes += size
        return b"x" * size


def test_a_line_without_end_is_refused_before_it_is_held(tmp_path):
    file = EndlessLine()
    with pytest.raises(DataError, match="line longer than 1 MiB"):
        list(csv_checks._checked_chunks(file, "endless.csv", wide=False))
    assert file.read_bytes <= 2 * 2**20
    path = tmp_path / "line.csv"
    path.write_bytes(b"a,b\n1," + b"x" * 2**20)
    refused(path, "line longer than 1 MiB")


def test_a_long_line_within_the_limit_is_read(write):
    assert len(read_frame(write("a,b\n" + "x" * 1_000_000 + ",2\n" + "y" * 1_000_000 + ",3\n"))) == 2


def test_column_names(write):
    refused(write(f"{CANARY},b,{CANARY}\n1,2,3\n"), "columns 1 and 3 .* same name")
    refused(write("a,,c\n1,2,3\n"), "1 columns without a name, the first is column 2")
    refused(write(",".join(f"c{i}" for i in range(16385)) + "\n"), "16385 columns")


def test_read_table_checks_the_schema(write, schema):
    table = read_table(write("id,age,ward,diagnosis,note\n1,30,onco,a,x\n2,31,ortho,b,\n"), schema)
    assert len(table) == 2
    assert "id" not in table.frame
    with pytest.raises(SchemaError, match="'age' has 1 missing"):
        read_table(write("id,age,ward,diagnosis,note\n1,,onco,a,x\n"), schema)
    assert (
        read_table(write("id,age,ward,diagnosis,note\n1,,onco,a,x\n"), schema, missing="wildcard").missing == "wildcard"
    )


def test_a_forgotten_header_is_not_quoted(write, schema):
    path = write(f"1,30,{CANARY},a,x\n2,31,ortho,b,y\n")
    with pytest.raises(SchemaError, match="lack 5 declared columns") as caught:
        read_table(path, schema)
    assert CANARY not in str(caught.value)


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_what_pandas_writes_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    frame = pd.DataFrame(rows, columns=["a", "b"]).replace("", np.nan)
    frame.to_csv(path, index=False, quoting=1)
    read = read_frame(path)
    assert read.fillna("").to_numpy().tolist() == frame.fillna("").to_numpy().tolist()
