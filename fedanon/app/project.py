"""Project: the folder in which the work of a steward lies, so that it can be copied, kept and gone on with.

project.toml     which table, how it is read, what was asked for last, language and theme
schema.toml      the columns and their roles
data/            files that were dropped onto the page
measured/        the risk of the table and the methods that were compared on it
releases/001/    a release with its manifest, its facts, its attacks and its reports
secret/          which row of a release shows which record, the key of pseudonyms, the ledger of a series: never to be
                 handed on
federations/     results of simulations
audit.jsonl      what was done, line by line
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedanon.errors import ConfigError, DataError
from fedanon.io.atomic import atomic_write

if TYPE_CHECKING:
    from fedanon.data.schema import Schema

FILE, SCHEMA, AUDIT, SECRET, MEASURED = "project.toml", "schema.toml", "audit.jsonl", "secret", "measured"
#: how a table is read, by the options of the commands
READING = {
    "encoding": "--encoding",
    "separator": "--separator-in",
    "decimal": "--decimal-in",
    "sheet": "--sheet",
    "query": "--query",
}
NO_TABLE = "Open a table first."
#: names of files that are kept as they are; all else in a name becomes a dash
_SAFE = re.compile(r"[^\w .()-]+")
_NUMBER = re.compile(r"[0-9]{3,6}")
#: what may be opened, by the ending of its name
ENDINGS = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".parquet", ".ndjson")
LANGUAGES, THEMES = ("en", "pt"), ("auto", "light", "dark")
#: what a project says of itself before anything was chosen
DEFAULTS: dict[str, dict[str, Any]] = {
    "look": {"language": "en", "theme": "auto"},
    "source": {},
    "protect": {"method": "mondrian", "k": 5, "seed": 0},
    "keys": {"person": "secret/person.key"},
    "steps": {},
    "report": {},
    "federation": {},
    "experiments": {},
}


@dataclass
class Project:
    """A folder and what its project.toml says.

    Parameters
    ----------
    folder : where everything lies; made when the first thing is kept.
    settings : tables of project.toml by name.
    """

    folder: Path
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path) -> Project:
        """The project in a folder, or a new one."""
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is a file; name a folder for the project.")
        file = folder / FILE
        known: dict[str, Any] = {}
        if file.exists():
            try:
                known = tomllib.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise DataError(f"{file} cannot be read; mend it, or begin in another folder.") from None
        elif folder.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder} holds other files and no {FILE}; name a new folder for the project.")
        tables = {name: {**usual, **_table(known.get(name))} for name, usual in DEFAULTS.items()}
        return cls(folder.absolute(), tables)

    def save(self, table: str, **values: Any) -> None:
        """Change a table of project.toml; None takes a value out."""
        kept = {**self.settings[table], **values}
        self.settings[table] = {name: value for name, value in kept.items() if value is not None}
        self.folder.mkdir(parents=True, exist_ok=True)
        blocks = ["# A project of `fedanon app`; paths are relative to this folder."]
        for name, entries in self.settings.items():
            lines = [f"{key} = {_written(value)}" for key, value in entries.items()]
            blocks.append("\n".join([f"[{name}]", *lines]))
        atomic_write(self.folder / FILE, "\n\n".join(blocks) + "\n")

    # ---- the table ------------------------------------------------------------------------------

    @property
    def source(self) -> dict[str, Any]:
        """Where the table is and how it is read, as the library's data source takes it; empty before one is opened."""
        return dict(self.settings["source"])

    @property
    def schema(self) -> Path:
        """The file of the schema."""
        return self.folder / SCHEMA

    @property
    def has_schema(self) -> bool:
        """Whether roles were proposed."""
        return bool(self.source) and self.schema.exists()

    def read_schema(self) -> Schema:
        """The schema of the table that is open."""
        return read_schema(self.schema)

    @property
    def missing(self) -> str:
        """What happens to missing quasi-identifiers."""
        return str(self.settings["protect"].get("missing", "error"))

    @property
    def key(self) -> str:
        """The file of the key of pseudonyms and shifted dates."""
        return str(self.settings["keys"]["person"])

    @property
    def needs_key(self) -> bool:
        """Whether the schema declares pseudonyms or shifted dates."""
        return self.has_schema and self.read_schema().needs_key

    @property
    def series(self) -> SeriesFolder:
        """The series of releases of the project, which may not have begun."""
        return SeriesFolder(self.folder)

    def table_words(self, schema: str = SCHEMA, *, publishes: bool = False) -> list[str]:
        """How a command names the table that is open with its schema, and the key if it publishes rows."""
        words = [*source_options(self.source), "--schema", schema, *missing_options(self.missing)]
        return [*words, "--key", self.key] if publishes and self.needs_key else words

    def secret_folder(self) -> Path:
        """The folder of what is never handed on."""
        folder = self.folder / SECRET
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        return folder

    def new_data_file(self, name: str) -> Path:
        """A free place in data/ for a file of this name, of which only harmless characters are kept."""
        plain = Path(name.replace("\\", "/")).name
        stem, ending = Path(plain).stem, Path(plain).suffix.lower()
        if ending not in ENDINGS:
            raise ConfigError(f"Files that end in {', '.join(ENDINGS)} can be opened.")
        stem = _SAFE.sub("-", stem).strip(" .-")[:80] or "table"
        folder = self.folder / "data"
        folder.mkdir(parents=True, exist_ok=True)
        tries = (folder / f"{stem}{f'-{i}' if i else ''}{ending}" for i in range(10_000))
        return next(path for path in tries if not path.exists())

    # ---- what was measured of the table as it is ----

    @property
    def table_identity(self) -> str:
        """Another one as soon as another table is open, or it has other roles or rules."""
        schema = self.schema.read_bytes() if self.has_schema else b""
        return hashlib.sha256(json.dumps([self.source, self.missing]).encode() + schema).hexdigest()

    def measured(self, name: str) -> dict[str, Any] | None:
        """What was measured last, if it was measured of the table as it is now."""
        kept = read_json(self.folder / MEASURED / f"{name}.json")
        return kept["found"] if kept.get("table") == self.table_identity else None

    def keep_measured(self, name: str, table: str, found: dict[str, Any]) -> None:
        """Keep what was measured of the table of an identity, which may be another one by now."""
        (self.folder / MEASURED).mkdir(exist_ok=True)
        atomic_write(self.folder / MEASURED / f"{name}.json", json.dumps({"table": table, "found": found}))

    # ---- releases -------------------------------------------------------------------------------

    def releases(self) -> list[ReleaseFolder]:
        """The releases of the project that were made to the end, the newest first."""
        folder = self.folder / "releases"
        found = sorted(folder.iterdir(), reverse=True) if folder.is_dir() else []
        return [one for one in map(ReleaseFolder, found) if _NUMBER.fullmatch(one.path.name) and one.is_complete]

    def release(self, number: str) -> ReleaseFolder | None:
        """The release of this number, if there is one."""
        return next((one for one in self.releases() if one.number == number), None)

    def new_release(self) -> ReleaseFolder:
        """An empty folder for the next release."""
        folder = self.folder / "releases"
        folder.mkdir(parents=True, exist_ok=True)
        self.secret_folder()
        taken = [int(one.name) for one in folder.iterdir() if _NUMBER.fullmatch(one.name)]
        path = folder / f"{max(taken, default=0) + 1:03}"
        path.mkdir()
        return ReleaseFolder(path)

    @property
    def release_ending(self) -> str:
        """The ending of a release: that of the input where a release can be written so."""
        ending = Path(str(self.source["data"][0])).suffix.lower()
        return ending if ending in (".xlsx", ".parquet", ".tsv") else ".csv"

    def relative(self, path: Path) -> str:
        """A path as the commands of this project name it."""
        return path.relative_to(self.folder).as_posix()


@dataclass(frozen=True)
class SeriesFolder:
    """The series of a project: its schema and, beside it, the ledger of what was shown of whom."""

    project: Path

    @property
    def folder(self) -> Path:
        """Where both lie."""
        return self.project / SECRET / "series"

    @property
    def schema(self) -> Path:
        """The schema of all its releases."""
        return self.folder / SCHEMA

    @property
    def has_begun(self) -> bool:
        """Whether it has a release."""
        return self.schema.exists() and bool(self.manifests())

    def manifests(self) -> list[str]:
        """The manifests of its releases, as commands name them."""
        found = sorted((self.project / "releases").glob("*/release*.manifest.json"))
        return [one.relative_to(self.project).as_posix() for one in found if _is_of_series(one)]

    def is_of(self, columns: list[str]) -> bool:
        """Whether a table with these columns may be its next: next month's file."""
        return self.has_begun and set(read_schema(self.schema).names) == set(columns)

    def fits(self, schema: Schema) -> bool:
        """Whether a table of this schema can be its next."""
        return self.has_begun and read_schema(self.schema).sha256 == schema.sha256


def _is_of_series(manifest: Path) -> bool:
    claim = read_json(manifest).get("claim") or {}
    return "series" in claim


@dataclass(frozen=True)
class ReleaseFolder:
    """A release and what is known of it."""

    path: Path

    @property
    def number(self) -> str:
        """Its number, as text."""
        return self.path.name

    @property
    def is_complete(self) -> bool:
        """Whether it was made to the end."""
        return (self.path / "release.json").exists()

    @property
    def made(self) -> dict[str, Any]:
        """How it was made."""
        usual = {"schema": self.relative(SCHEMA), "key": "", "series": False, "previous": []}
        return {**usual, **self.read("release")}

    def relative(self, name: str) -> str:
        """A file of its folder, as the commands of the project name it."""
        return f"releases/{self.number}/{name}"

    @property
    def file(self) -> str:
        """The released file, as commands name it."""
        return self.relative(str(self.made["file"]))

    @property
    def row_key(self) -> Path:
        """Which row shows which record."""
        return self.path.parents[1] / SECRET / f"{self.number}.key"

    def read(self, name: str) -> dict[str, Any]:
        """A file of facts; empty if there is none."""
        return read_json(self.path / f"{name}.json")

    def original_words(self) -> list[str]:
        """How a command names the table it was made from, the file or the address first."""
        made = self.made
        words = [*source_options(made["source"]), "--schema", made["schema"], *missing_options(made["missing"])]
        words += ["--row-key", f"{SECRET}/{self.number}.key"]
        words += ["--key", made["key"]] if made["key"] else []
        return [*words, *(word for one in made["previous"] for word in ("--previous", one))]

    def write(self, name: str, facts: dict[str, Any]) -> None:
        """Keep facts."""
        atomic_write(self.path / f"{name}.json", json.dumps(facts, indent=1, ensure_ascii=False))

    def downloads(self) -> list[str]:
        """The names of the files that may be handed on."""
        kinds = (".csv", ".tsv", ".xlsx", ".parquet", ".manifest.json", ".html", ".pdf", "evidence.json")
        names = [one.name for one in self.path.iterdir() if one.is_file() and one.name.endswith(kinds)]
        return sorted(name for name in names if not name.startswith("."))


def read_schema(path: Path) -> Schema:
    """The schema of a file; imported here, since the first page needs none and numpy takes its time."""
    from fedanon.data.schema import Schema

    return Schema.read(path)


def read_json(path: Path) -> dict[str, Any]:
    """An object of a file; an empty one if there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def source_options(given: Mapping[str, Any]) -> list[str]:
    """How a command names a table: the file or the address first."""
    if not given:
        raise ConfigError(NO_TABLE)
    words = list(given["data"])
    for name, option in READING.items():
        words += [option, {"\t": "tab"}.get(given[name], given[name])] if given.get(name) else []
    if "header" in given:
        words.append("--header" if given["header"] else "--no-header")
    for view in given.get("views", ()):
        words += ["--view", view]
    return words


def missing_options(policy: str) -> list[str]:
    """How a command says what happens to missing quasi-identifiers."""
    return [] if policy == "error" else ["--missing", policy]


def _table(given: Any) -> dict[str, Any]:
    return dict(given) if isinstance(given, dict) else {}


def _written(value: Any) -> str:
    from fedanon.data.schema_toml import toml_value

    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return toml_value(list(value) if isinstance(value, tuple) else value)
