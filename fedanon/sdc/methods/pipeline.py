"""Pipeline: several methods in a row on one table, and a release that records the whole chain.

A step may name a column that is not a quasi-identifier, such as an income. From that step on the column is *masked*:
its cells are the release's own. It is a number or a category (:mod:`~fedanon.sdc.variables`), and a key only if a step
for keys names it. Steps for keys see nothing but the keys; other steps that name no columns take those that fit among
their list or, if it was not given, among quasi-identifiers and the columns masked so far. So no step depends on a later
one, its random numbers included, and a chain without its last step is the chain as it was before: that is how a step is
undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedanon._version import __version__
from fedanon.data.cells import Nodes
from fedanon.data.groups import Groups
from fedanon.data.key_choice import with_quasi_identifiers
from fedanon.data.schema import FreeText, Role
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError
from fedanon.release.gate import verify
from fedanon.release.release import Provenance, Release, release_of
from fedanon.sdc.methods.base import Columns, own_columns, plan_of
from fedanon.sdc.methods.step import Step
from fedanon.sdc.variables import Variables
from fedanon.types import BoolArray

NO_CLAIM = "A chain of methods promises nothing by itself, whatever one of them claims alone; its risks are measured."


@dataclass(frozen=True)
class Pipeline:
    """Steps that run in order, on keys, numbers and categories that may be given beforehand."""

    name = "pipeline"

    steps: tuple[Step, ...]
    variables: Variables = Variables()

    def __post_init__(self) -> None:
        if not self.steps:
            raise ConfigError("A pipeline needs at least one step.")
        self.variables.refuse_shared()

    def without_last(self) -> Pipeline:
        """Return the chain without its last step."""
        if len(self.steps) == 1:
            raise ConfigError("The pipeline has only one step; without it nothing is left to run.")
        return replace(self, steps=self.steps[:-1])

    def masked_table(self, table: Table) -> Table:
        """Return the table the release is measured against: every column that is named is a quasi-identifier."""
        return with_masked(table, [*self.variables.named, *(name for step in self.steps for name in step.named)])

    def anonymize(self, table: Table, *, rng: int) -> Release:
        """Run the steps; ``rng`` is the seed from which every step gets a generator of its own."""
        if not table.columns and not self.variables.named and not any(step.named for step in self.steps):
            raise ConfigError("The schema declares no quasi-identifying columns, and no step names one.")
        seen, suppressed = with_masked(table, self.variables.named), np.zeros(len(table), dtype=bool)
        lists = _Lists.at_start(self.variables, table)
        columns: Columns = own_columns(seen)
        chain, notes = [], []
        for i, (step, seed) in enumerate(zip(self.steps, _seeds(rng, len(self.steps)), strict=True)):
            seen = with_masked(seen, step.named)
            before = {**own_columns(seen), **columns}
            names = lists.seen_by(step, seen)
            columns, hidden, remarks, details = step.apply(seen, before, names, np.random.default_rng(seed))
            suppressed |= hidden
            changed = _changed(before, columns)
            lists.note(step, {name: columns[name] for name in (*step.named, *changed)})
            chain.append({**step.to_dict(), "spawn_key": list(seed.spawn_key), "changed": changed, **details})
            notes += [f"Step {i + 1}, {step.method}: {remark}" for remark in remarks]
        variables = {"given": self.variables.to_dict(), "used": lists.used.to_dict()}
        masked = _masked(table, seen)
        roles = {name: str(table.schema[name].role) for name in masked}
        parameters = {"steps": chain, "variables": variables, "masked": masked, "roles": roles}
        return _release(table, seen, columns, suppressed, parameters, notes, rng)

    @classmethod
    def from_provenance(cls, provenance: Mapping[str, Any]) -> Pipeline:
        """Return the pipeline a manifest describes; before version 0.3 it names no lists."""
        try:
            parameters = provenance["parameters"]
            given = parameters.get("variables", {"given": {}})["given"]
            return cls(tuple(Step.from_dict(step) for step in parameters["steps"]), Variables.from_dict(given))
        except (KeyError, TypeError, AttributeError):
            raise DataError("The manifest does not describe a pipeline.") from None


@dataclass
class _Lists:
    """The three lists as the steps of a chain fill them; a key that was masked is a number or a category as well."""

    given: Variables
    keys: list[str]
    numbers: list[str]
    categories: list[str]

    @classmethod
    def at_start(cls, given: Variables, table: Table) -> _Lists:
        return cls(given, given.keys_of(table.schema), list(given.numbers), list(given.categories))

    @property
    def used(self) -> Variables:
        """The lists so far."""
        return Variables(tuple(self.keys), tuple(self.numbers), tuple(self.categories))

    def seen_by(self, step: Step, table: Table) -> list[str]:
        """Return the columns a step may work on; one for keys makes those keys that it names and no list holds."""
        masked = {*self.numbers, *self.categories}
        if step.makes_keys:
            self.keys += [name for name in step.columns if name not in masked and name not in self.keys]
        listed = {"keys": self.keys, "numbers": self.given.numbers, "categories": self.given.categories}[step.takes]
        names = [column.name for column in table.columns]
        seen = {*listed, *step.named, *step.looked_at}
        return [name for name in names if name in seen] if listed else names

    def note(self, step: Step, changed: Columns) -> None:
        """Note the columns a step has changed."""
        for name, cells in changed.items():
            mine = self.categories if isinstance(cells, Nodes) else self.numbers
            if name not in mine and not (step.takes == "keys" and name in self.keys):
                mine.append(name)


def _masked(table: Table, seen: Table) -> list[str]:
    """Return the columns that only the chain makes quasi-identifiers."""
    return [a.name for a in seen.schema.quasi_identifiers if table.schema[a.name].role is not a.role]


def with_masked(table: Table, names: Sequence[str]) -> Table:
    """Return a copy in which ``names`` are quasi-identifiers too; rejects the target, whose true value models learn."""
    known = {a.name for a in table.schema.quasi_identifiers}
    added = [name for name in dict.fromkeys(names) if name not in known]
    for name in added:
        _refuse_unmaskable(table, name)
    return with_chosen(table, [*known, *added]) if added else table


def with_chosen(table: Table, names: Sequence[str]) -> Table:
    """Return a copy in which exactly ``names`` are quasi-identifiers; what is missing of new ones stays so."""
    # the policy for missing values is about the quasi-identifiers of the schema, not about columns to mask
    policy = "category" if table.missing == "error" else table.missing
    return replace(with_quasi_identifiers(replace(table, missing=policy), names), missing=table.missing)


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
    table: Table,
    seen: Table,
    columns: Columns,
    suppressed: BoolArray,
    parameters: dict[str, Any],
    notes: list[str],
    seed: int,
) -> Release:
    plan = plan_of(seen, columns, ())
    groups = Groups.from_labels(np.where(suppressed, -1, plan.groups.labels))
    masked = ", ".join(parameters["masked"])
    if masked:
        notes = [*notes, f"Not quasi-identifying in the schema, but published with cells of their own: {masked}."]
    provenance = Provenance(
        method=Pipeline.name,
        parameters=parameters,
        seed=seed,
        version=__version__,
        data_sha256=table.sha256,
        schema_sha256=table.schema.sha256,
        notes=(*notes, *_masked_keys(parameters["variables"]["used"]), NO_CLAIM),
    )
    cells = {name: column.select(groups.first_rows) for name, column in columns.items()}
    return verify(release_of(seen, groups, cells, claim=None, provenance=provenance, recoding=plan.recoding), seen)


def _masked_keys(used: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Say which numbers are keys as well, where they make nearly every record unique."""
    both = [name for name in used["numbers"] if name in used["keys"]]
    if not both:
        return ()
    return (
        f"Masked as numbers, yet keys by the schema: {', '.join(both)}. Records are compared by the masked values; "
        "name such a column among the numbers to leave it out of the keys.",
    )
