"""Pipeline: several methods in a row on one table, and a release that records the whole chain.

A step may name a column that is not a quasi-identifier, such as an income. From that step on the column is *masked*: it
is handled and measured as a quasi-identifier. Steps that name no columns take those that fit among quasi-identifiers
and the columns masked so far. So no step depends on a later one, its random numbers included, and a chain without its
last step is the chain as it was before: that is how a step is undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fedanon._version import __version__
from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.data.cells import Cells, Intervals, Nodes, is_suppressed
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import MISSING
from fedanon.data.key_choice import with_quasi_identifiers
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError, InfeasibleError
from fedanon.fields import build, listed
from fedanon.release.gate import verify
from fedanon.release.release import Provenance, Release, release_of
from fedanon.sdc.methods.base import Columns, Perturbative, own_columns, plan_of
from fedanon.sdc.methods.keys import KeyMethod
from fedanon.sdc.methods.suppression import suppress
from fedanon.types import AnyArray, BoolArray, Rng

#: parameters of methods that list columns of the table
COLUMN_PARAMETERS = ("given", "periods")

NO_CLAIM = "A chain of methods promises nothing by itself, whatever one of them claims alone; its risks are measured."


@dataclass(frozen=True)
class Pipeline:
    """Steps that run in order."""

    name = "pipeline"

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise ConfigError("A pipeline needs at least one step.")

    def without_last(self) -> Pipeline:
        """Return the chain without its last step."""
        if len(self.steps) == 1:
            raise ConfigError("The pipeline has only one step; without it nothing is left to run.")
        return Pipeline(self.steps[:-1])

    def masked_table(self, table: Table) -> Table:
        """Return the table the release is measured against: every column the steps name is a quasi-identifier."""
        return with_masked(table, [name for step in self.steps for name in step.named])

    def anonymize(self, table: Table, *, rng: int) -> Release:
        """Run the steps; ``rng`` is the seed from which every step gets a generator of its own."""
        if not table.columns and not any(step.named for step in self.steps):
            raise ConfigError("The schema declares no quasi-identifying columns, and no step names one.")
        seen, suppressed = table, np.zeros(len(table), dtype=bool)
        columns: Columns = own_columns(table)
        chain, notes = [], []
        for i, (step, seed) in enumerate(zip(self.steps, _seeds(rng, len(self.steps)), strict=True)):
            seen = with_masked(seen, step.named)
            before = {**own_columns(seen), **columns}
            columns, hidden, remarks = step.apply(seen, before, np.random.default_rng(seed))
            suppressed |= hidden
            chain.append({**step.to_dict(), "spawn_key": list(seed.spawn_key), "changed": _changed(before, columns)})
            notes += [f"Step {i + 1}, {step.method}: {remark}" for remark in remarks]
        return _release(table, seen, columns, suppressed, chain, notes, rng)

    @classmethod
    def from_provenance(cls, provenance: Mapping[str, Any]) -> Pipeline:
        """Return the pipeline a manifest describes."""
        try:
            return cls(tuple(Step.from_dict(step) for step in provenance["parameters"]["steps"]))
        except (KeyError, TypeError):
            raise DataError("The manifest does not describe a pipeline.") from None


def with_masked(table: Table, names: Sequence[str]) -> Table:
    """Return a copy in which ``names`` are quasi-identifiers too; rejects the target, whose true value models learn."""
    known = {a.name for a in table.schema.quasi_identifiers}
    added = [name for name in dict.fromkeys(names) if name not in known]
    for name in added:
        _refuse_unmaskable(table, name)
    return with_quasi_identifiers(table, [*known, *added]) if added else table


def _refuse_unmaskable(table: Table, name: str) -> None:
    attribute = table.schema[name]
    if name == table.schema.target:
        raise ConfigError(f"The column {name!r} is the target of the schema, which no step may change.")
    if attribute.role is Role.IDENTIFYING:
        raise ConfigError(f"The column {name!r} is identifying: it is dropped, so no step can change it.")
    if isinstance(attribute, FreeText):
        raise ConfigError(f"The column {name!r} is text; a step changes numeric and categorical columns.")


def _seeds(seed: int, count: int) -> list[np.random.SeedSequence]:
    """Return one seed per step: the i-th does not depend on how many there are."""
    return np.random.SeedSequence(seed).spawn(count)


def _changed(before: Columns, after: Columns) -> dict[str, int]:
    """Count the cells a step changed, for the columns in which it changed any."""
    differs = {
        n: int((before[n].keys() != after[n].keys()).any(axis=1).sum()) for n in after if after[n] is not before[n]
    }
    return {name: count for name, count in differs.items() if count}


def _release(
    table: Table, seen: Table, columns: Columns, suppressed: Any, chain: list[Any], notes: list[str], seed: int
) -> Release:
    plan = plan_of(seen, columns, ())
    groups = Groups.from_labels(np.where(suppressed, -1, plan.groups.labels))
    masked = [a.name for a in seen.schema.quasi_identifiers if table.schema[a.name].role is not a.role]
    if masked:
        notes = [
            *notes,
            f"Not quasi-identifying in the schema, but taken as such here: {', '.join(masked)}.",
        ]
    provenance = Provenance(
        method=Pipeline.name,
        parameters={"steps": chain, "masked": masked},
        seed=seed,
        version=__version__,
        data_sha256=table.sha256,
        schema_sha256=table.schema.sha256,
        notes=(*notes, NO_CLAIM),
    )
    cells = {name: column.select(groups.first_rows) for name, column in columns.items()}
    return verify(release_of(seen, groups, cells, claim=None, provenance=provenance, recoding=plan.recoding), seen)


# ---- one step ------------------------------------------------------------------------------------


class StepResult(NamedTuple):
    """What a step did.

    Parameters
    ----------
    columns : all columns after it.
    suppressed : rows of which nothing is to be published.
    remarks : what a reader of the release has to know.
    """

    columns: Columns
    suppressed: BoolArray
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A registered method, its settings (texts or values) and the columns it changes; none means all that fit."""

    method: str
    columns: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        """Names of the columns the step changes or looks at."""
        columns = [str(self.settings.get(parameter, "")).replace(";", ",") for parameter in COLUMN_PARAMETERS]
        return [*self.columns, *listed(",".join(columns))]

    def anonymizer(self) -> Anonymizer:
        """Return the method with its settings, which are checked."""
        component = ANONYMIZERS[self.method]
        if "columns" in self.settings:
            raise ConfigError("The columns of a step are listed after its method, not as a parameter.")
        if issubclass(component, Perturbative):
            return build(component, {**self.settings, "columns": ",".join(self.columns)})
        return build(component, self.settings)

    def apply(self, table: Table, current: Columns, rng: Rng) -> StepResult:
        """Change the columns; ``table`` is the original."""
        method = self.anonymizer()
        if isinstance(method, Perturbative):
            after = {**current, **method.change(table, current, rng)}
            remarks = method.remarks(table, current, after) if isinstance(method, KeyMethod) else ()
            return StepResult(after, np.zeros(len(table), dtype=bool), remarks)
        names = list(self.columns) or [column.name for column in table.columns]
        release = method.anonymize(current_table(table, current, names), rng=rng)
        return StepResult(
            {**current, **columns_from_release(release, table, names)}, release.suppressed, release.provenance.notes
        )

    def to_dict(self) -> dict[str, Any]:
        """For the manifest: every parameter, given or not."""
        parameters = asdict(self.anonymizer())
        parameters.pop("columns", None)
        return {"method": self.method, "columns": list(self.columns), "parameters": parameters}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Step:
        """The inverse of :meth:`to_dict`."""
        return cls(document["method"], tuple(document["columns"]), dict(document["parameters"]))


# ---- the bridge to methods that take a table -----------------------------------------------------
#
# They need exact values, so a column that an earlier step generalized is rejected; a suppressed cell is passed on as
# missing, with the policy 'wildcard'.


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
        attribute, low=min(attribute.low, low), high=max(attribute.high, high), integer=False, hierarchy=None
    )
