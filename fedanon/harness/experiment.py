"""Experiment: a TOML file, read and checked before anything runs."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError, DataError
from fedanon.harness.cells import Cell
from fedanon.harness.grid import expand
from fedanon.harness.published import Published, read_published

KEYS = frozenset({"title", "about", "baseline", "findings", "defaults", "grid", "published"})


@dataclass(frozen=True)
class Experiment:
    """What an experiment asks for.

    Parameters
    ----------
    name : the file's name without its ending.
    title, about : what it is, for people.
    baseline : label of the method the others are compared with, seed by seed; empty if there is none.
    findings : what its numbers mean, sentences for the report.
    cells : everything to be computed, in the order of the file.
    published : numbers of others to stand beside ours.
    text : the file itself.
    """

    name: str
    title: str
    about: str
    baseline: str
    findings: tuple[str, ...]
    cells: tuple[Cell, ...]
    published: tuple[Published, ...] = field(default=())
    text: str = ""


def read_experiment(path: Path) -> Experiment:
    """Read a TOML file.

    Raises
    ------
    DataError
        If there is no such file or it is not TOML.
    ConfigError
        If a key, a component or a value is wrong; the message names it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise DataError(f"The experiment {path} cannot be read.") from None
    return parse_experiment(text, name=path.stem, folder=path.parent)


def parse_experiment(text: str, *, name: str, folder: Path) -> Experiment:
    """An experiment from TOML text; ``folder`` is where its published tables are."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"The experiment {name} is not TOML: {error}.") from None
    try:
        return _experiment(content, text, name, folder)
    except ConfigError as error:
        raise ConfigError(f"Experiment {name}: {error}") from None


def _experiment(content: dict[str, Any], text: str, name: str, folder: Path) -> Experiment:
    unknown = sorted(set(content) - KEYS)
    if unknown:
        raise ConfigError(f"unknown key {', '.join(unknown)}. Known: {', '.join(sorted(KEYS))}.")
    grids = content.get("grid")
    if not isinstance(grids, list) or not grids:
        raise ConfigError("it has no [[grid]].")
    names = [grid.get("name", "grid") for grid in grids]
    if len(set(names)) < len(names):
        raise ConfigError("two grids have the same name.")
    defaults = content.get("defaults", {})
    published = tuple(read_published(entry, folder) for entry in content.get("published", []))
    for entry in published:
        if entry.grid not in names:
            raise ConfigError(f"a published table belongs to the grid {entry.grid!r}, which does not exist.")
    return Experiment(
        name=name,
        title=str(content.get("title", name)),
        about=str(content.get("about", "")).strip(),
        baseline=str(content.get("baseline", "")),
        findings=tuple(str(finding).strip() for finding in content.get("findings", [])),
        cells=tuple(cell for grid in grids for cell in expand({**defaults, **grid})),
        published=published,
        text=text,
    )
