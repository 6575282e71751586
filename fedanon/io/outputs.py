"""Where a command may write: never over what it reads, and over what is there only if it is told to."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path

from fedanon.errors import ConfigError

MANIFEST = ".manifest.json"
#: the endings of a released table
RELEASES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".ndjson")
#: what a refusal says of endings that are not written
ADVICE = {".xls": " Excel opens .xlsx.", ".xlsm": " Excel opens .xlsx."}


def release_kind(path: str | Path) -> str:
    """The format of a released file by its name: parquet, xlsx, ndjson, else csv."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return ending if ending in ("parquet", "xlsx", "ndjson") else "csv"


def manifest_path(path: str | Path) -> Path:
    """Where the manifest of the release at ``path`` lies."""
    return Path(f"{path}{MANIFEST}")


def check_output(
    path: Path | None, *, inputs: Iterable[Path | None] = (), endings: Collection[str] = (), force: bool = False
) -> None:
    """Raise ConfigError unless a command may write the file ``path``; None is no file.

    Parameters
    ----------
    path : what is to be written.
    inputs : what the command reads. They and their manifests are never written over, by whatever name: links of both
        kinds are followed.
    endings : those the name may have, in lower case with their point; any if there are none.
    force : whether a file that exists may be replaced.
    """
    if path is None:
        return
    if path.is_dir():
        raise ConfigError(f"The output {path} is a folder; name a file.")
    if endings and path.suffix.lower() not in endings:
        advice = ADVICE.get(path.suffix.lower(), "")
        raise ConfigError(f"The name of the output {path.name} must end in {' or '.join(endings)}.{advice}")
    read = [each for each in inputs if each is not None]
    for each in (*read, *map(manifest_path, read)):
        if _is_same(path, each):
            raise ConfigError(f"The output {path} is a file the command reads ({each}); it is never written over.")
    if os.path.lexists(path) and not force:
        raise ConfigError(f"The output {path} exists; --force replaces it.")


def check_release_output(path: Path | None, *, inputs: Iterable[Path | None] = (), force: bool = False) -> None:
    """:func:`check_output` of a released table and of the manifest beside it."""
    if path is not None:
        read = list(inputs)
        check_output(path, inputs=read, endings=RELEASES, force=force)
        check_output(manifest_path(path), inputs=read, force=force)


def schema_files(schema: Path | None) -> list[Path]:
    """A schema file and the files of hierarchies it names, as far as it can be read."""
    if schema is None:
        return []
    try:
        columns = tomllib.loads(schema.read_text(encoding="utf-8-sig"))["attributes"].values()
        named = [column["hierarchy"] for column in columns if "hierarchy" in column]
        return [schema, *(schema.parent / str(name) for name in named)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [schema]  # whoever reads it says what is wrong


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()
