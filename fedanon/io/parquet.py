"""Parquet files at the border: columns by name, rows in batches, and one clear error for whatever is wrong with a file.

Parquet is typed, so numbers arrive as numbers; a null and NaN are missing. Nothing is read but the columns asked for.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.types import IndexArray

#: rows of a batch, and so of a row group of what is written
BATCH = 2**15
#: bytes of a column that are held at a time while rows are read in batches
BUFFER = 2**20
#: rows that are held while they change their order, and into how many parts a file is divided for it at most
PART, MOST_PARTS = 2**17, 256


def is_parquet(path: str | Path | None) -> bool:
    """Whether a file is Parquet by its name."""
    return path is not None and Path(path).suffix.lower() == ".parquet"


def pyarrow() -> ModuleType:
    """The library, which is no dependency of the core."""
    try:
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise ConfigError("Parquet files need pyarrow: pip install 'fedanon[harness]'.") from None
    return pyarrow  # type: ignore[no-any-return]


# ---- reading -------------------------------------------------------------------------------------


def column_types(path: Path) -> tuple[list[tuple[str, Any]], int]:
    """Names and types of all columns and the number of rows, from the end of the file alone."""
    with _open(path) as file:
        return [(field.name, field.type) for field in file.schema_arrow], file.metadata.num_rows


def read_columns(
    path: Path, names: Sequence[str], *, categories: Iterable[str] = (), tokens: Iterable[str] = ()
) -> pd.DataFrame:
    """Some columns.

    Parameters
    ----------
    path : the file.
    names : of the columns, which the file must have.
    categories : the columns with few values; of these a text is held once.
    tokens : text that means missing; among numbers, those that are numbers do.
    """
    with _open(path, read_dictionary=list(categories)) as file:
        columns = file.read(columns=list(names))
    absent = [number for token in tokens if (number := _number(token)) is not None]
    nested = [name for name in names if pyarrow().types.is_nested(columns.column(name).type)]
    if nested:
        raise SchemaError(f"Columns of lists or records can only pass from Parquet to Parquet: {', '.join(nested)}.")
    return pd.DataFrame({name: _series(columns.column(name), name in categories, absent) for name in names})


def read_frame(path: str | Path) -> pd.DataFrame:
    """All columns, as :func:`read_columns` gives them."""
    path = Path(path)
    names = [name for name, _ in column_types(path)[0]]
    if len(set(names)) < len(names):
        raise SchemaError(f"The file {path.name} has several columns of the same name.")
    return read_columns(path, names)


def plain_columns(path: Path) -> list[str]:
    """The columns that can be held: not those of lists or records."""
    return [name for name, kind in column_types(path)[0] if not pyarrow().types.is_nested(kind)]


def batches(path: Path, names: Sequence[str]) -> Iterator[Any]:
    """The rows of some columns, batch by batch."""
    with _open(path, buffer_size=BUFFER) as file:
        for batch in file.iter_batches(BATCH, columns=list(names)):
            yield batch.select(list(names))


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds texts."""
    types = pyarrow().types
    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value))


def is_number(kind: Any) -> bool:
    """Whether a column of this type holds numbers, or nothing."""
    types = pyarrow().types
    value = kind.value_type if types.is_dictionary(kind) else kind
    numeric = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    return any(fits(value) for fits in numeric)


@contextmanager
def _open(path: Path, **options: Any) -> Iterator[Any]:
    """The file; pyarrow's own errors, inside the block too, become one that quotes nothing."""
    arrow = pyarrow()
    try:
        with arrow.parquet.ParquetFile(path, page_checksum_verification=True, **options) as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"The file {path} does not exist.") from None
    except (OSError, ValueError, MemoryError, arrow.ArrowException):
        if path.is_dir():
            raise DataError(f"{path} is a folder, not a file.") from None
        raise DataError(f"The file {path.name} is not a Parquet file, or it is damaged.") from None


def _series(column: Any, is_category: bool, absent: list[float]) -> pd.Series[Any]:
    arrow = pyarrow()
    if arrow.types.is_dictionary(column.type) and not (is_category and is_text(column.type)):
        column = column.cast(column.type.value_type)
    if arrow.types.is_decimal(column.type):
        column = column.cast(arrow.float64())
    series: pd.Series[Any] = column.to_pandas(types_mapper=_whole_types().get)
    if absent and pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
        series = series.mask(series.isin(absent).to_numpy(dtype=bool, na_value=False))
    return series


@cache
def _whole_types() -> dict[Any, Any]:
    """The nullable types, which keep whole numbers whole beside nulls."""
    names = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    return {getattr(pyarrow(), name.lower())(): pd.api.types.pandas_dtype(name) for name in names}


def _number(token: str) -> float | None:
    try:
        return float(token)
    except ValueError:
        return None


# ---- writing -------------------------------------------------------------------------------------


def write_batches(file: BinaryIO, parts: Iterable[Any]) -> None:
    """Write record batches of the same columns, at least one, each as a row group."""
    parts = iter(parts)
    first = next(parts)
    with pyarrow().parquet.ParquetWriter(file, first.schema, compression="zstd") as writer:
        for part in chain([first], parts):
            writer.write_batch(part)


def reordered(parts: Iterable[Any], order: IndexArray, folder: Path) -> Iterator[Any]:
    """The rows of record batches in another order, of which a part at a time is held in memory.

    Every row is sent to the temporary file of the part it will lie in; then the parts are read one after the other.

    Parameters
    ----------
    parts : record batches of the same columns.
    order : for every row of the result, the number of the row of ``parts``.
    folder : where temporary files are made.
    """
    arrow = pyarrow()
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    bucket = place // max(PART, -(-len(order) // MOST_PARTS))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fedanon-") as temporary:
        _spill(parts, bucket, Path(temporary))
        for number in range(int(bucket.max(initial=-1)) + 1):
            with arrow.ipc.open_stream(Path(temporary) / str(number)) as stream:
                held = stream.read_all()
            # rows came in their old order, and leave in the new one
            yield from held.take(np.argsort(place[bucket == number])).combine_chunks().to_batches(BATCH)


def _spill(parts: Iterable[Any], bucket: IndexArray, folder: Path) -> None:
    arrow = pyarrow()
    begin = 0
    with ExitStack() as files:
        writers: dict[int, Any] = {}
        for part in parts:
            here = bucket[begin : begin + len(part)]
            begin += len(part)
            for number in np.unique(here).tolist():
                if number not in writers:
                    stream = arrow.ipc.new_stream(folder / str(number), part.schema)
                    writers[number] = files.enter_context(stream)
                writers[number].write_batch(part.take(arrow.array(np.flatnonzero(here == number))))


def write_frame(file: BinaryIO, frame: pd.DataFrame) -> None:
    """Write a DataFrame without its index."""
    arrow = pyarrow()
    try:
        parts = arrow.Table.from_pandas(frame, preserve_index=False).to_batches(BATCH)
    except arrow.ArrowException:
        # its message may quote a cell
        raise DataError("The table has a column of mixed types, which Parquet cannot hold.") from None
    write_batches(file, (record_batch(dict(zip(part.schema.names, part.columns, strict=True))) for part in parts))


def record_batch(columns: Mapping[str, Any]) -> Any:
    """A record batch that shows the given values and nothing else of where they come from.

    Dictionaries are resolved, since that of a batch also lists values of other rows, suppressed ones among them.
    Descriptions of the columns are left behind: pandas writes the names of all columns of the source there.
    """
    arrays = [_resolved(name, values) for name, values in columns.items()]
    return pyarrow().record_batch(arrays, names=list(columns))


def _resolved(name: str, values: Any) -> Any:
    if pyarrow().types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if "dictionary<" in str(values.type):
        raise SchemaError(f"The column {name!r} has dictionaries within its values, which cannot be published safely.")
    return values


def hidden(values: Any, rows: NDArray[np.bool_]) -> Any:
    """The values with null in some rows."""
    return values.take(pyarrow().array(np.arange(len(rows)), mask=rows)) if rows.any() else values
