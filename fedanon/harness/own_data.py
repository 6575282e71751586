"""An own table in an experiment: the keys of its TOML file that say where it lies, and a new file that has them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedanon.data.schema import Schema
from fedanon.datasets.source import DataSource
from fedanon.errors import ConfigError
from fedanon.federated.sources import default_partition
from fedanon.fields import default_of
from fedanon.harness.tasks.base import Task
from fedanon.io.sql import is_database, public_name
from fedanon.learning.settings import RunSettings

#: keys of a grid about an own table; names of files are relative to the experiment's
KEYS = ("data", "schema", "key", "missing", "encoding", "header", "sheet", "query", "views")


def with_source(grid: Mapping[str, Any], task: type[Task], folder: Path) -> dict[str, Any]:
    """A grid whose keys about an own table became the settings of its task."""
    rest = {key: value for key, value in grid.items() if key not in KEYS}
    given = {key: value for key, value in grid.items() if key in KEYS}
    if "source" in rest:
        raise ConfigError("unknown key source. An own table is named by data and schema.")
    if not given:
        return rest
    if "data" not in given or "dataset" in rest:
        raise ConfigError(
            f"{', '.join(given)}: an own table is named by data, a data set by dataset; give one of them."
        )
    source = _source(given).absolute(folder)
    if source.is_named:
        return {"dataset": source.name, **rest}
    if not source.schema:
        raise ConfigError("an own table needs a schema; `fedanon schema infer` proposes one.")
    settings = source.to_settings()
    own = {"dataset": source.name, "source": settings}
    partition = next((entry for entry in fields(task) if entry.name == "partition"), None)
    if partition is not None and default_of(partition) == RunSettings.partition:
        own["partition"] = default_partition(settings)
    return own | rest


def _source(given: Mapping[str, Any]) -> DataSource:
    lists = {
        key: [given[key]] if isinstance(given[key], str) else given[key] for key in ("data", "views") if key in given
    }
    texts = [value for values in lists.values() for value in (values if isinstance(values, list) else [None])]
    texts += [value for key, value in given.items() if key not in (*lists, "header")]
    if not all(isinstance(text, str) for text in texts) or not isinstance(given.get("header", True), bool):
        raise ConfigError("data and views are texts or lists of texts, header is true or false, other keys are texts.")
    return DataSource.from_settings({**given, **lists})


def without_places(text: str, grids: Iterable[Mapping[str, Any]]) -> str:
    """The text of an experiment as its results state it: no folder outside its own, and no address of a database."""
    for grid in grids:
        for key in ("data", "schema", "key", "views"):
            given = grid.get(key, [])
            for place in [given] if isinstance(given, str) else given:
                if is_database(place):
                    text = text.replace(place, public_name(place))
                elif Path(place).is_absolute() or ".." in Path(place).parts:
                    text = text.replace(place, Path(place).name)
    return text


# ---- a new experiment ----------------------------------------------------------------------------


def new_experiment(source: DataSource, schema: Schema, folder: Path, *, partition: str, nodes: int) -> str:
    """A commented TOML file in ``folder`` that compares methods on an own table, alone and in a federation.

    Parameters
    ----------
    source : the table.
    schema : of the table; without a target nothing can be learned, and the federation is left out.
    folder : where the file will lie.
    partition, nodes : how rows are dealt out to the nodes of the federation.
    """
    federation = FEDERATION.format(partition=json.dumps(partition), nodes=nodes)
    if schema.target is None:
        federation = (
            "# The schema names no target, so nothing can be learned. With one, this is a federation:\n"
            + "".join(f"# {line}".rstrip() + "\n" for line in federation.splitlines())
        )
    return TEXT.format(name=source.name, places="\n".join(_places(source, folder)), federation=federation)


def _places(source: DataSource, folder: Path) -> list[str]:
    known = source.absolute().to_settings()
    for key in ("data", "views"):
        if key in known:
            places = [each if is_database(each) else os.path.relpath(each, folder) for each in known[key]]
            known[key] = places[0] if len(places) == 1 else places
    for key in ("schema", "key"):
        if key in known:
            known[key] = os.path.relpath(known[key], folder)
    # a JSON text, number, list or truth value is one of TOML too
    return [f"{key} = {json.dumps(known[key], ensure_ascii=False)}" for key in KEYS if key in known]


TEXT = """\
# An experiment on an own table. Run it with: fedanon experiment run THIS_FILE
# A list is an axis, and every combination of axes is a cell. Cells run in parallel and survive a kill; a finished
# experiment is instant, and cells are computed again only where the table, its schema or a setting has changed.
title = "{name}: what anonymization costs"
about = "Loss and risk of releases of the whole table, and what a federation of nodes learns from its own releases."
baseline = "original"          # the label the others are compared with, seed by seed

[defaults]
# where the table lies, relative to this file; the results state hashes alone
{places}
seeds = 3                      # how often every cell is run; a list names the seeds themselves

[[grid]]
name = "releases"
task = "release"               # anonymize the whole table, then measure
metrics = ["k_reached", "ncp", "linkage_expected_share", "truthfulness"]
k = [5, 10, 20]
# `fedanon methods` lists them; one with settings of its own is written {{ name = "...", set = {{ ... }} }}
methods = ["mondrian", "gfkmc"]

{federation}"""

FEDERATION = """\
[[grid]]
name = "federation"
task = "federation"            # every node anonymizes its own training rows; models are tested on raw rows
# iid, dirichlet:ALPHA, quantity:ALPHA, by:COLUMN, or stored (a file per node); a column or files decide on the nodes
partition = {partition}
nodes = {nodes}
model = ["lr", "xgb"]
rounds = 20
k = [5, 10]
methods = [{{ name = "identity", label = "original" }}, "mondrian"]
"""
