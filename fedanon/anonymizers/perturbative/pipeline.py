"""Pipeline: several methods in a row on one table, and a release that knows the whole chain.

A step may name a column that is no quasi-identifier, such as an income. From that step on the column is *masked*: it is
handled and measured as a quasi-identifier. Steps that name no columns take those that fit among the quasi-identifiers
and what was masked up to them. So no step depends on a later one, its random numbers included, and a chain without its
last step is the chain that was there before it: that is how a step is undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedanon._version import __version__
from fedanon.anonymizers.perturbative.base import Columns, draft_of, own_columns
from fedanon.anonymizers.perturbative.step import Step
from fedanon.data.groups import Groups
from fedanon.data.key_choice import with_quasi_identifiers
from fedanon.data.release import Provenance, Release, release_of
from fedanon.data.schema import FreeText, Role
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError
from fedanon.privacy.verification import verify

NO_CLAIM = "A chain of methods promises nothing by itself, whatever one of them claims alone; its risks are measured."


@dataclass(frozen=True)
class Pipeline:
    """Steps that are run in order."""

    name = "pipeline"

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        if not self.steps:
            raise ConfigError("A pipeline needs at least one step.")

    def without_last(self) -> Pipeline:
        """The chain before its last step."""
        if len(self.steps) == 1:
            raise ConfigError("The pipeline has one step; without it nothing is left to run.")
        return Pipeline(self.steps[:-1])

    def masked_table(self, table: Table) -> Table:
        """The table with every column the steps name as a quasi-identifier: what the release is measured against."""
        return with_masked(table, [name for step in self.steps for name in step.named])

    def anonymize(self, table: Table, *, rng: int) -> Release:
        """Run the steps; ``rng`` is the seed, from which every step gets a generator of its own."""
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
        """The pipeline a manifest describes."""
        try:
            return cls(tuple(Step.from_dict(step) for step in provenance["parameters"]["steps"]))
        except (KeyError, TypeError):
            raise DataError("The manifest does not describe a pipeline.") from None


def with_masked(table: Table, names: Sequence[str]) -> Table:
    """A copy in which ``names`` are quasi-identifiers too; never the target, whose true value models learn."""
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
    """One seed a step: the i-th does not depend on how many there are."""
    return np.random.SeedSequence(seed).spawn(count)


def _changed(before: Columns, after: Columns) -> dict[str, int]:
    """Number of cells a step changed, of the columns in which it changed any."""
    differs = {
        n: int((before[n].keys() != after[n].keys()).any(axis=1).sum()) for n in after if after[n] is not before[n]
    }
    return {name: count for name, count in differs.items() if count}


def _release(
    table: Table, seen: Table, columns: Columns, suppressed: Any, chain: list[Any], notes: list[str], seed: int
) -> Release:
    draft = draft_of(seen, columns, ())
    groups = Groups.of(np.where(suppressed, -1, draft.groups.labels))
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
    cells = {name: column.take(groups.first_rows) for name, column in columns.items()}
    return verify(release_of(seen, groups, cells, claim=None, provenance=provenance, recoding=draft.recoding), seen)
