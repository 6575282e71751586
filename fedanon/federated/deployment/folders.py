"""Private folders: only their owner may look inside, and nothing in them is overwritten by accident."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedanon.data.atomic import atomic_write
from fedanon.errors import ConfigError, DataError

FOLDER_MODE = 0o700
FILE_MODE = 0o600


def private_folder(folder: Path) -> Path:
    """Make the folder, closed to others; one that exists is closed as well."""
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise DataError(f"The folder {folder.name} cannot be made: {error.strerror or 'unknown reason'}.") from None
    return folder


def new_private_folder(folder: Path) -> Path:
    """Make a folder that must not hold anything yet."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder.name} exists and is not an empty folder; nothing was changed.")
    return private_folder(folder)


def write_private(path: Path, data: bytes | str) -> None:
    """Write a file whole or not at all, closed to others from its first byte on."""
    atomic_write(path, data, mode=FILE_MODE)


def toml_text(values: Mapping[str, Any]) -> str:
    """Scalars as TOML; the strings of JSON are strings of TOML."""
    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())
