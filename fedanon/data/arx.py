"""ARX hierarchy files: one row a value, from the value itself to the root, separated by ';' or ','."""

from __future__ import annotations

import csv
from pathlib import Path

from fedanon.data.hierarchy import Hierarchy
from fedanon.errors import DataError, SchemaError

MAX_BYTES = 64 * 2**20


def read_arx_hierarchy(path: str | Path, *, name: str | None = None) -> Hierarchy:
    """Read a hierarchy in ARX's CSV format (no header, last level the root)."""
    path = Path(path)
    name = name or path.stem
    text = _text(path)
    delimiter = ";" if ";" in text else ","
    csv.field_size_limit(MAX_BYTES)
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines(), delimiter=delimiter) if row]
    if not rows:
        raise SchemaError(f"The hierarchy file of {name!r} is empty.")
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise SchemaError(f"The rows of the hierarchy of {name!r} have {len(widths)} different lengths.")
    if widths == {1}:
        raise SchemaError(f"The hierarchy of {name!r} has one column; a row needs a value and its ancestors.")
    return Hierarchy.from_paths(rows, name=name)


def write_arx_hierarchy(hierarchy: Hierarchy) -> str:
    """The text of an ARX hierarchy file; short paths are padded by repeating the leaf's parent."""
    paths = hierarchy.paths()
    depth = max(map(len, paths))
    rows = [path[:1] * (depth - len(path)) + path for path in paths]
    return "".join(";".join(row) + "\n" for row in rows)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"The hierarchy file {path.name} is larger than {MAX_BYTES // 2**20} MB.")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"The hierarchy file {path.name} does not exist.") from None
    except (OSError, UnicodeDecodeError):
        raise DataError(f"The hierarchy file {path.name} cannot be read as UTF-8 text.") from None
