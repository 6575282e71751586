"""Where the files of a data set are: in the package, in the folder FEDANON_DATA, or in the user's cache."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

from fedanon.data.schema import Schema
from fedanon.errors import DataError

FOLDER_VARIABLE = "FEDANON_DATA"
MAX_UNPACKED = 64 * 2**20

#: SHA-256 of the uncompressed bytes of the bundled tables
BUNDLED = {
    "adult.data.xz": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test.xz": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "randhie.csv.xz": "3c8d4dabd987d4e822be3ca43b624f2eea208d61b65164c598e6d81b1b3e95b4",
    "diabetes_130.csv.xz": "0689e7ec031237dc63031b938805c48377748761a3b26acab621567afa24df97",
    "nhanes.csv.xz": "8da45bc8fcb8dc6025406f35765546e1a63ad008ee01e2469134b9729369e4ab",
}


@dataclass(frozen=True)
class Source:
    """A file that can be downloaded."""

    url: str
    sha256: str


def bundled_bytes(name: str) -> bytes:
    """The uncompressed bytes of a bundled table, checked against their pinned hash."""
    packed = files("fedanon.datasets").joinpath("bundled", name).read_bytes()
    data = unpack(packed, name)
    if hashlib.sha256(data).hexdigest() != BUNDLED[name]:
        raise DataError(f"The bundled file {name} is damaged: its SHA-256 is not the pinned one.")
    return data


def unpack(packed: bytes, name: str, *, limit: int = MAX_UNPACKED) -> bytes:
    """Decompress xz bytes, giving up beyond ``limit`` bytes."""
    try:
        decompressor = lzma.LZMADecompressor()
        data = decompressor.decompress(packed, max_length=limit + 1)
    except lzma.LZMAError:
        raise DataError(f"The file {name} is damaged: it cannot be unpacked.") from None
    if len(data) > limit:
        raise DataError(f"The file {name} unpacks to more than {limit // 2**20} MiB.")
    if not decompressor.eof:
        raise DataError(f"The file {name} is damaged: it ends too early.")
    return data


def bundled_schema(name: str) -> Schema:
    """A schema that comes with the package."""
    text = files("fedanon.datasets").joinpath("bundled", f"{name}.toml").read_text(encoding="utf-8")
    return Schema.from_dict(tomllib.loads(text))


def text_frame(data: bytes, names: list[str] | None = None) -> pd.DataFrame:
    """A table of known bytes, all columns as text; with ``names`` the bytes have no header."""
    return pd.read_csv(
        io.BytesIO(data),
        names=names,
        header=0 if names is None else None,
        dtype=str,
        keep_default_na=False,
        na_values=[""],
        skipinitialspace=True,
    )


def cache_folder() -> Path:
    """The user's cache of downloaded files."""
    import pooch

    return Path(pooch.os_cache("fedanon"))


def find(file: str) -> Path | None:
    """The path of a file that does not come with the package, if it is at hand; '*' in its name stands for anything."""
    named = os.environ.get(FOLDER_VARIABLE)
    folders = [*([Path(named)] if named else []), cache_folder()]
    found = (path for folder in folders for path in sorted(folder.glob(file)) if path.is_file())
    return next(found, None)


def need(file: str, *, dataset: str, fetchable: bool = False) -> Path:
    """The path of a file; where it is not at hand, an error says what to do."""
    path = find(file)
    if path is None:
        hint = f"Set the environment variable {FOLDER_VARIABLE} to the folder that holds it"
        more = f", or run: fedanon data fetch {dataset}" if fetchable else ""
        raise DataError(f"The data set {dataset!r} needs the file {file}, which is not at hand. {hint}{more}.")
    return path


def download(file: str, source: Source) -> Path:
    """Get a file into the user's cache and check its pinned SHA-256."""
    import pooch

    try:
        found = pooch.retrieve(source.url, known_hash=f"sha256:{source.sha256}", fname=file, path=cache_folder())
    except (OSError, ValueError):  # no network or no such page; another hash
        raise DataError(f"The file {file} could not be downloaded from {source.url} with the pinned SHA-256.") from None
    return Path(found)
