"""Step: one method of a chain, on the columns of its list; methods that take whole tables are handed one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.data.cells import Cells, Intervals, Nodes, Numbers, is_suppressed
from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Attribute, Categorical, Numeric, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import build, listed
from fedanon.release.release import Release
from fedanon.sdc.methods.base import Columns, Details, Perturbative
from fedanon.sdc.methods.keys import KeyMethod
from fedanon.sdc.methods.missing import completed, with_numbers
from fedanon.sdc.methods.suppression import suppress
from fedanon.sdc.variables import Part, part_of_table
from fedanon.types import AnyArray, BoolArray, Rng

#: parameters of methods that list columns to change, and columns that are looked at
CHANGED_PARAMETERS, SEEN_PARAMETERS = ("periods",), ("given", "strata")


class StepResult(NamedTuple):
    """What a step did.

    Parameters
    ----------
    columns : all columns after it.
    suppressed : rows of which nothing is to be published.
    remarks : what a reader of the release has to know.
    details : what the manifest keeps of how it came about.
    """

    columns: Columns
    suppressed: BoolArray
    remarks: tuple[str, ...]
    details: Details = {}  # noqa: RUF012  never changed


@dataclass(frozen=True)
class Step:
    """A registered method, its settings (texts or values) and the columns it changes; none means all that fit."""

    method: str
    columns: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        """Names of the columns the step changes, as far as it names them."""
        return [*self.columns, *self._listed(CHANGED_PARAMETERS)]

    @property
    def looked_at(self) -> list[str]:
        """Names of the columns the step looks at and leaves as they are."""
        return self._listed(SEEN_PARAMETERS)

    def _listed(self, parameters: tuple[str, ...]) -> list[str]:
        columns = [str(self.settings.get(parameter, "")).replace(";", ",") for parameter in parameters]
        return listed(",".join(columns))

    def anonymizer(self) -> Anonymizer:
        """Return the method with its settings, which are checked."""
        component = ANONYMIZERS[self.method]
        if "columns" in self.settings:
            raise ConfigError("The columns of a step are listed after its method, not as a parameter.")
        if issubclass(component, Perturbative):
            return build(component, {**self.settings, "columns": ",".join(self.columns)})
        return build(component, self.settings)

    @property
    def takes(self) -> Part:
        """The list of columns it works on unless it names some."""
        component = ANONYMIZERS[self.method]
        return component.takes if issubclass(component, Perturbative) else "keys"

    @property
    def makes_keys(self) -> bool:
        """Whether the columns it names are keys: it recodes or suppresses them."""
        component = ANONYMIZERS[self.method]
        return issubclass(component, Perturbative) and component.takes == "keys"

    def apply(self, table: Table, current: Columns, names: list[str], rng: Rng) -> StepResult:
        """Change some of the columns ``names``; ``table`` is the original."""
        method = self.anonymizer()
        if isinstance(method, Perturbative):
            part, before = part_of_table(table, names), {name: current[name] for name in names}
            changed, details = method.change_with_details(part, before, rng)
            remarks = method.remarks(part, before, {**before, **changed}) if isinstance(method, KeyMethod) else ()
            return StepResult({**current, **changed}, np.zeros(len(table), dtype=bool), remarks, details)
        return _of_table_method(method, table, current, list(self.columns) or names, rng)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest: every parameter, given or not."""
        parameters = asdict(self.anonymizer())
        parameters.pop("columns", None)
        return {"method": self.method, "columns": list(self.columns), "parameters": parameters}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Step:
        """The inverse of :meth:`to_dict`."""
        return cls(document["method"], tuple(document["columns"]), dict(document["parameters"]))


# ---- the grammar of a step -----------------------------------------------------------------------
#
# Columns come first. A parameter's value runs to the next NAME=, so it may hold commas; nothing needs quotes::
#     pram:sex,race,keep=0.9
#     local_suppression:sex,race,education,k=3,importance=sex,race
#     mondrian:k=5


def parse_step(text: str) -> Step:
    """Parse a step."""
    method, _, rest = text.partition(":")
    columns: list[str] = []
    settings: dict[str, str] = {}
    name = None
    for item in rest.split(",") if rest.strip() else []:
        head, equals, value = item.partition("=")
        if equals:
            name = _new_name(head.strip(), settings, method)
            settings[name] = value.strip()
        elif name is None:
            columns.append(item.strip())
        else:
            settings[name] += f",{item.strip()}"
    if not method.strip() or not all(columns):
        raise ConfigError("A step is METHOD[:COLUMN,...][,NAME=VALUE,...], such as pram:sex,race,keep=0.9.")
    return Step(method.strip(), tuple(columns), settings)


def _new_name(name: str, settings: dict[str, str], method: str) -> str:
    if name in settings:
        raise ConfigError(f"The step {method!r} gives the parameter {name!r} twice.")
    return name


# ---- the bridge to methods that take a table -----------------------------------------------------
#
# They need exact values, so a column that an earlier step generalized is rejected; a suppressed cell is passed on as
# missing, with the policy 'wildcard'. Methods for numbers take no missing ones: a record borrows them for the while.


def _of_table_method(method: Anonymizer, table: Table, current: Columns, names: list[str], rng: Rng) -> StepResult:
    attributes = {column.name: column.attribute for column in table.columns}
    if method.numeric_only and all(isinstance(attributes[name], Numeric) for name in names):
        values = np.column_stack([_exact(current[name], attributes[name]) for name in names])
        if np.isnan(values).any():
            return _of_numbers(method, table, current, names, rng)
    release = method.anonymize(current_table(table, current, names), rng=rng)
    changed = columns_from_release(release, table, names)
    return StepResult({**current, **changed}, release.suppressed, release.provenance.notes)


def _of_numbers(method: Anonymizer, table: Table, current: Columns, names: list[str], rng: Rng) -> StepResult:
    """Run a method for numbers on the records that have any; what they lack is missing afterwards too."""
    attributes = {column.name: column.attribute for column in table.columns}
    values = np.column_stack([_exact(current[name], attributes[name]) for name in names])
    rows, filled = completed(values, len(names), rng)
    part, numbers = table.select_rows(rows), {name: Numbers(filled[:, i]) for i, name in enumerate(names)}
    release = method.anonymize(current_table(part, numbers, names), rng=rng)
    changed = {}
    for i, (name, cells) in enumerate(columns_from_release(release, part, names).items()):
        assert not isinstance(cells, Nodes)
        new = np.full(len(table), np.nan)
        new[rows] = cells.midpoints()
        changed[name] = with_numbers(current[name], np.where(np.isnan(values[:, i]), np.nan, new))
    hidden = np.zeros(len(table), dtype=bool)
    hidden[rows] = release.suppressed
    return StepResult({**current, **changed}, hidden, release.provenance.notes)


def current_table(table: Table, current: Columns, names: list[str]) -> Table:
    """Return a table whose quasi-identifiers are ``names``, with the values earlier steps left; the people stay."""
    attributes = {column.name: column.attribute for column in table.columns}
    frame = pd.DataFrame({n: _exact(current[n], attributes[n]) for n in names}, index=table.frame.index)
    has_suppressed = any(is_suppressed(current[name], attributes[name]).any() for name in names)
    schema = Schema(tuple(_covering(attributes[name], frame[name]) for name in names), name=table.schema.name)
    made = Table.from_frame(frame, schema, missing="wildcard" if has_suppressed else table.missing)
    return replace(made, persons=table.persons, weights=table.weights, households=table.households)


def columns_from_release(release: Release, table: Table, names: list[str]) -> dict[str, Cells]:
    """Return the released cells, one per row; a row the method suppressed says nothing in its columns."""
    attributes = {column.name: column.attribute for column in table.columns}
    return {name: _row_cells(release, attributes[name]) for name in names}


def _row_cells(release: Release, attribute: Numeric | Categorical) -> Cells:
    if not release.groups.count:
        raise InfeasibleError(f"The method {release.provenance.method!r} suppressed every row.")
    cells = release.cells[attribute.name].select(release.groups.labels)
    if isinstance(cells, Nodes):
        assert isinstance(attribute, Categorical)
        # the taxonomy may have gained a leaf for missing values on the way; its labels did not change
        nodes = [attribute.hierarchy.nodes[label] for label in cells.texts()]
        cells = Nodes(np.array(nodes, dtype=np.int32), attribute.hierarchy)
    return suppress(cells, attribute, release.suppressed) if release.suppressed.any() else cells


def _exact(cells: Cells, attribute: Numeric | Categorical) -> AnyArray:
    """Return the values of a column, missing where it says nothing."""
    suppressed = is_suppressed(cells, attribute)
    if isinstance(cells, Nodes):
        _refuse_generalized((cells.nodes >= cells.hierarchy.n_leaves) & ~suppressed, attribute.name)
        texts = cells.texts()
        texts[suppressed | (texts == MISSING)] = None
        return texts
    if isinstance(cells, Intervals):
        _refuse_generalized((cells.low < cells.high) & ~suppressed, attribute.name)
    return np.where(suppressed, np.nan, cells.midpoints())


def _refuse_generalized(general: BoolArray, name: str) -> None:
    count = int(general.sum())
    if count:
        raise ConfigError(
            f"The column {name!r} has {count} cells that an earlier step generalized; this method takes exact values."
        )


def _covering(attribute: Numeric | Categorical, values: pd.Series[Any]) -> Attribute:
    """Return the declaration with its range widened to the values: noise leaves the range and is not a whole number."""
    if isinstance(attribute, Categorical):
        return attribute
    low, high = (float(bound) for bound in (values.min(), values.max()))
    return replace(
        attribute, low=min(attribute.low, low), high=max(attribute.high, high), integer=False, hierarchy=None, rule=None
    )
