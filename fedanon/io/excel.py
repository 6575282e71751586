"""Excel workbooks at the border: one sheet as a table, and one clear error for whatever is wrong with a file.

Numbers are numbers and dates ISO text; of a formula the value that was stored with it counts. Text is written as text,
whatever it begins with, and no file tells when it was written.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import pandas as pd

from fedanon.data.readers import READERS
from fedanon.data.schema import Schema
from fedanon.errors import ConfigError, DataError, FedanonError
from fedanon.io.typed_columns import typed_frame

ENDINGS = (".xlsx", ".xlsm")
MAX_UNPACKED = 2**30
MAX_ROWS = 2**20
#: how the container of protected and of old workbooks begins, and a name inside the protected ones
_CONTAINER, _PROTECTED = b"\xd0\xcf\x11\xe0", "EncryptedPackage".encode("utf-16-le")


def is_excel(path: str | Path | None) -> bool:
    """Whether a file is an Excel workbook by its name."""
    return path is not None and Path(path).suffix.lower() in ENDINGS


def openpyxl() -> ModuleType:
    """The library, which is no dependency of the core."""
    try:
        import openpyxl
    except ModuleNotFoundError:
        raise ConfigError("Excel files need openpyxl: pip install 'fedanon[excel]'.") from None
    return openpyxl  # type: ignore[no-any-return]


# ---- reading -------------------------------------------------------------------------------------


@READERS.register("xlsm")
@READERS.register("xlsx")
def read_excel(
    path: Path,
    schema: Schema | None,
    encoding: str,  # noqa: ARG001  no text file
    *,
    sheet: str = "",
    header: bool = True,
) -> pd.DataFrame:
    """All columns of a sheet; see :func:`fedanon.data.readers.read_table`.

    Parameters
    ----------
    path : the workbook.
    schema : says which numbers mean missing.
    encoding : of no use here.
    sheet : name of the sheet; needed where several have cells.
    header : whether its first row names the columns; else they are called c1, c2 and so on.
    """
    data = _read_bytes(path)
    with _workbook(data, path.name) as book:
        page = _sheet(book, sheet, path.name)
        where = f"The sheet {page.title!r} of {path.name}"
        _refuse_merged(data, page, where)
        rows = list(_rows(page, where))
        used = max((i + 1 for _, row in rows for i, value in enumerate(row) if value is not None), default=0)
        names = _names(rows, used, where) if header else [f"c{i}" for i in range(1, used + 1)]
    del rows[: int(header)]
    if not rows:
        raise DataError(f"{where} has no rows{' but its header' if header else ''}.")
    columns = [[row[i] if i < len(row) else None for _, row in rows] for i in range(used)]
    if _has_formulas(data):
        _refuse_unknown_results(data, page.title, dict(rows), where)
    return typed_frame(dict(zip(names, columns, strict=True)), schema)


def _read_bytes(path: Path) -> bytes:
    """The file, refused where it is no workbook or unpacks to too much."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"The file {path} does not exist.") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, not a file.") from None
    except OSError as error:
        raise DataError(f"The file {path} cannot be read: {error.strerror}.") from None
    if data.startswith(_CONTAINER):
        if _PROTECTED in data:
            raise DataError(f"The workbook {path.name} is protected by a password. Save a copy without one.")
        raise DataError(f"The file {path.name} is an old Excel file (.xls). Save it as .xlsx or CSV.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
    except (zipfile.BadZipFile, ValueError, OSError):
        raise _damaged(path.name) from None
    if size > MAX_UNPACKED:
        raise DataError(f"The workbook {path.name} unpacks to more than {MAX_UNPACKED // 2**30} GiB; export it to CSV.")
    return data


def _damaged(name: str) -> DataError:
    return DataError(f"The file {name} is not an Excel workbook, or it is damaged. Open it and save it again.")


@contextmanager
def _workbook(data: bytes, name: str, *, values: bool = True) -> Iterator[Any]:
    """The workbook with the stored values of its formulas, or the formulas; foreign errors may quote cells."""
    library, book = openpyxl(), None
    try:
        book = library.load_workbook(io.BytesIO(data), read_only=True, data_only=values)
        yield book
    except FedanonError:
        raise
    except Exception:  # a damaged part of the archive may fail anywhere in the parser
        raise _damaged(name) from None
    finally:
        if book is not None:
            book.close()


def _sheet(book: Any, wanted: str, name: str) -> Any:
    for page in book.worksheets:
        page.reset_dimensions()  # what a file says of its size may be wrong
    if wanted:
        found = [page for page in book.worksheets if page.title == wanted]
        if not found:
            raise ConfigError(f"The workbook {name} has no sheet {wanted!r}. Its sheets: {_titles(book.worksheets)}.")
        return found[0]
    pages = [page for page in book.worksheets if any(any(row) for row in page.iter_rows(values_only=True))]
    if not pages:
        raise DataError(f"The workbook {name} is empty.")
    if len(pages) > 1:
        raise ConfigError(f"The workbook {name} has several sheets: {_titles(pages)}. Choose one with --sheet.")
    return pages[0]


def _titles(pages: Sequence[Any]) -> str:
    return ", ".join(str(page.title) for page in pages[:10])


def _rows(page: Any, where: str) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """The number and the values of every row that is not empty."""
    errors, wrong = frozenset(openpyxl().cell.cell.ERROR_CODES), list[int]()
    for number, values in enumerate(page.iter_rows(values_only=True), 1):
        if any(value is not None for value in values):
            wrong += [] if errors.isdisjoint(values) else [number]
            yield number, values
    if wrong:
        raise DataError(
            f"{where} has {len(wrong)} rows with an error of Excel in a cell (such as #N/A), the first is row "
            f"{wrong[0]}. Correct or empty them."
        )


def _refuse_merged(data: bytes, page: Any, where: str) -> None:
    """Refuse areas that share one value; a sheet that is read row by row does not list them."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        text = packed.read(page._worksheet_path.lstrip("/"))
    ranges = [found.decode() for found in re.findall(rb'<mergeCell [^>]*ref="([A-Z]+\d+:[A-Z]+\d+)"', text)]
    if ranges:
        first = min(ranges, key=lambda each: int(re.sub(r"\D", "", each.partition(":")[0])))
        in_header = re.fullmatch(r"[A-Z]+1:[A-Z]+\d+", first) is not None
        raise DataError(
            f"{where} has {len(ranges)} merged areas, the first in its {'header row' if in_header else 'rows'}: "
            f"{first}. Unmerge them, so that every cell has its own value."
        )


def _names(rows: Sequence[tuple[int, tuple[Any, ...]]], used: int, where: str) -> list[str]:
    """The names of the columns, from the first row, which may not be empty; empty columns at the end are none."""
    if not rows or rows[0][0] != 1:
        raise DataError(f"The first row of {where[0].lower()}{where[1:]} is empty; it has to name the columns.")
    header = [*rows[0][1], *[None] * used][:used]
    nameless = [i for i, value in enumerate(header, 1) if value is None or not str(value).strip()]
    if nameless:
        raise DataError(
            f"{where} has {len(nameless)} columns without a name, the first is column {_letters(nameless[0])}. The "
            "first row has to name all columns, in one cell each."
        )
    names = [str(value).strip() for value in header]
    if len(set(names)) < len(names):
        raise DataError(f"{where} has several columns of the same name.")
    return names


def _letters(column: int) -> str:
    return str(openpyxl().utils.get_column_letter(column))


def _has_formulas(data: bytes) -> bool:
    """Whether any sheet has one; only then the workbook has to be parsed twice."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        sheets = [entry for entry in packed.namelist() if entry.startswith("xl/worksheets/sheet")]
        return any(re.search(rb"<f[ >/]", packed.read(entry)) for entry in sheets)


def _refuse_unknown_results(data: bytes, title: str, known: Mapping[int, tuple[Any, ...]], where: str) -> None:
    """A formula whose value was never stored would look like an empty cell."""
    left: Counter[int] = Counter()
    with _workbook(data, where, values=False) as book:
        for number, cells in enumerate(book[title].iter_rows(), 1):
            row = known.get(number, ())
            left.update(
                i for i, cell in enumerate(cells) if cell.data_type == "f" and (i >= len(row) or row[i] is None)
            )
    if left:
        column, count = min(left.items())
        raise DataError(
            f"{where} has {count} formulas without a stored value in column {_letters(column + 1)}. Open the workbook "
            "in Excel and save it, or paste the values."
        )


# ---- writing -------------------------------------------------------------------------------------


def write_excel(file: BinaryIO, frame: pd.DataFrame) -> None:
    """Write a table as the only sheet of a workbook, numbers as numbers, all other cells as text."""
    library = openpyxl()
    if len(frame) >= MAX_ROWS:
        raise ConfigError(f"A sheet holds at most {MAX_ROWS - 1:,} rows; write the release as .csv or .parquet.")
    columns = [frame.iloc[:, i].astype(object) for i in range(frame.shape[1])]
    illegal = library.cell.cell.ILLEGAL_CHARACTERS_RE
    if any(isinstance(value, str) and illegal.search(value) for column in columns for value in column):
        raise DataError("The release has control characters that Excel cannot hold; write it as .csv.")
    book = library.Workbook(write_only=True)
    page = book.create_sheet("release")
    special = ("=", *library.cell.cell.ERROR_CODES)
    for row in ([str(name) for name in frame.columns], *zip(*columns, strict=True)):
        page.append([_cell(page, value, special) for value in row])
    packed = io.BytesIO()
    book.save(packed)
    _write_timeless(packed, file)


def _cell(page: Any, value: Any, special: tuple[str, ...]) -> Any:
    """A value as it is appended; texts that openpyxl takes for a formula or an error are marked as text."""
    if isinstance(value, str):
        if not value.startswith(special):
            return value
        from openpyxl.cell import WriteOnlyCell

        cell = WriteOnlyCell(page, value=value)
        cell.data_type = "s"
        return cell
    if pd.isna(value):
        return None
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _write_timeless(packed: io.BytesIO, file: BinaryIO) -> None:
    """Copy the parts of a workbook without the times at which they were written."""
    with zipfile.ZipFile(packed) as source, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "docProps/core.xml":
                data = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"2000-01-01T00:00:00Z", data)
            entry = zipfile.ZipInfo(name, (2000, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(entry, data)
