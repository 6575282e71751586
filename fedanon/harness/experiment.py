"""Experiment: a TOML file, read and checked before anything runs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, takes_k
from fedanon.errors import ConfigError, DataError
from fedanon.fields import build, default_of, with_current_names
from fedanon.harness.cells import Cell
from fedanon.harness.comparison import Published, read_published
from fedanon.harness.findings import StatedFinding, read_finding, read_remark
from fedanon.harness.own_data import with_source, without_places
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import MethodTask, Task
from fedanon.sdc.methods.base import Perturbative
from fedanon.sdc.sweeps import combinations, grid_entries

KEYS = frozenset({"title", "about", "baseline", "finding", "remarks", "defaults", "grid", "published"})


@dataclass(frozen=True)
class Experiment:
    """What an experiment asks for.

    Parameters
    ----------
    name : the file's name without its ending.
    title, about : what it is, for people.
    baseline : label of the method the others are compared with, seed by seed; empty if there is none.
    findings : what its numbers say: sentences that are computed and checked.
    remarks : sentences that explain and state no number.
    cells : everything to be computed, in the order of the file.
    published : numbers of others to stand beside ours.
    text : the file itself.
    """

    name: str
    title: str
    about: str
    baseline: str
    findings: tuple[StatedFinding, ...]
    remarks: tuple[str, ...]
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


def read_cells(text: str, folder: Path) -> list[Cell]:
    """The cells alone that an experiment's text asks for."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"The experiment is not TOML: {error}.") from None
    defaults = content.get("defaults", {})
    return [cell for grid in content.get("grid", []) for cell in expand({**defaults, **grid}, folder)]


def _experiment(content: dict[str, Any], text: str, name: str, folder: Path) -> Experiment:
    remarks = content.get("remarks", content.pop("findings", []))  # sentences of a file of version 0.1
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
        findings=tuple(read_finding(entry) for entry in content.get("finding", [])),
        remarks=tuple(read_remark(str(remark)) for remark in remarks),
        cells=tuple(cell for grid in grids for cell in expand({**defaults, **grid}, folder)),
        published=published,
        text=without_places(text, [defaults, *grids]),
    )


# ---- A grid of a TOML file becomes cells ---------------------------------------------------------
#
# The methods are the outermost axis; each may override any other key of its grid (its own list of k, fewer seeds). A
# method without k gives one cell whatever the list of k. ``methods = "all"`` means every registered one but the
# perturbative ones, ``"mixed"`` those of them that also take categorical columns, ``"perturbative"`` those that
# change values and run without settings; ``adjust`` lists those of the group that need settings. ``"sweeps"`` means
# every method for numbers at several values (:mod:`fedanon.sdc.sweeps`), in all the ``variants`` listed. A list among
# a method's settings is an axis too. ``data`` and ``schema`` name an own table in place of ``dataset``; a list of files
# is one per node.


#: keys of a grid that are not a parameter of its task
OWN_KEYS = frozenset({"name", "task", "methods", "adjust", "variants", "seeds"})
#: keys of a method that are not a parameter of its task
METHOD_KEYS = frozenset({"name", "label", "set", "seeds"})
#: names for several methods at once
GROUPS = ("all", "mixed", "perturbative")
SWEPT = "sweeps"


def expand(grid: Mapping[str, Any], folder: Path = Path()) -> list[Cell]:
    """All cells of a grid, in the order of the file; ``folder`` is where an own table is looked for."""
    name = str(grid.get("name", "grid"))
    kind = grid.get("task")
    if not isinstance(kind, str):
        raise ConfigError(f"The grid {name!r} names no task. Tasks: {', '.join(TASKS.names())}.")
    task = TASKS[kind]
    grid = with_current_names(task, with_source(grid, task, folder))
    _refuse_unknown(name, set(grid) - OWN_KEYS, task)
    cells = []
    for method in _methods(name, task, grid):
        method = with_current_names(task, method)
        _refuse_unknown(name, set(method) - METHOD_KEYS, task)
        try:
            cells += [Cell(name, kind, _label(method), one) for one in _tasks(task, grid, method)]
        except ConfigError as error:
            raise ConfigError(f"Grid {name!r}: {error}") from None
    return cells


def _methods(name: str, task: type[Task], grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not issubclass(task, MethodTask):
        if "methods" in grid:
            raise ConfigError(f"The grid {name!r} lists methods, but its task has none.")
        return [{}]
    given = grid.get("methods")
    adjusted = {entry["name"]: entry for entry in grid.get("adjust", [])}
    if given == SWEPT:
        return grid_entries(grid.get("variants", ["plain"]), adjusted)
    if given in GROUPS:
        given = [adjusted.get(n, n) for n, method in ANONYMIZERS.items() if _is_in(given, method, n in adjusted)]
    if not isinstance(given, list) or not given:
        groups = ", ".join((*GROUPS, SWEPT))
        raise ConfigError(f"The grid {name!r} needs a list of methods, or methods = one of: {groups}.")
    methods = [{"name": entry} if isinstance(entry, str) else entry for entry in given]
    if any(not isinstance(entry, dict) or not isinstance(entry.get("name"), str) for entry in methods):
        raise ConfigError(f"Grid {name!r}: a method is a name, or a table with a name.")
    return methods


def _is_in(group: str, method: type[Anonymizer], adjusted: bool) -> bool:
    """Whether a method belongs to a group."""
    if issubclass(method, Perturbative):
        return group == "perturbative" and (
            adjusted or not any(default_of(entry) is MISSING for entry in fields(method))
        )
    return group == "all" or (group == "mixed" and not method.numeric_only)


def _refuse_unknown(grid: str, given: set[str], task: type[Task]) -> None:
    known = {entry.name for entry in fields(task)} - {"method", "method_settings", "seed"}
    unknown = sorted(given - known)
    known = (known - {"source"}) | {"data", "schema"}
    if unknown:
        raise ConfigError(f"Grid {grid!r}: unknown key {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")


def _label(method: Mapping[str, Any]) -> str:
    return str(method.get("label", method.get("name", "")))


def _tasks(task: type[Task], grid: Mapping[str, Any], method: Mapping[str, Any]) -> Iterator[Task]:
    values = {key: value for key, value in {**grid, **method}.items() if key not in OWN_KEYS | METHOD_KEYS}
    known = {entry.name: entry for entry in fields(task)}
    axes = {key: _axis(known[key], value) for key, value in values.items()}
    axes["seed"] = _seeds(method.get("seeds", grid.get("seeds", 1)))
    fixed: dict[str, Any] = {}
    if issubclass(task, MethodTask) and method:
        fixed = {"method": method["name"]}
        axes["method_settings"] = list(combinations(method.get("set", {})))
        if not takes_k(task.registry(method["name"])[method["name"]]):
            axes["k"] = [None]
    for chosen in product(*axes.values()):
        yield build(task, fixed | dict(zip(axes, chosen, strict=True)))


def _axis(entry: Field[Any], value: Any) -> list[Any]:
    """The values of one axis; a field tagged ``joined`` takes a whole list as one value."""
    if not isinstance(value, list):
        return [value]
    if entry.metadata.get("joined"):
        return [",".join(value)]
    if not value:
        raise ConfigError(f"The list {entry.name} is empty.")
    return value


def _seeds(value: Any) -> list[int]:
    """A number of seeds, counted from 0, or a list of them."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return list(range(value))
    if isinstance(value, list) and value and all(isinstance(seed, int) for seed in value):
        return value
    raise ConfigError("seeds must be a number of seeds >= 1 or a list of whole numbers.")
