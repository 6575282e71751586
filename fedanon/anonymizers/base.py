"""Anonymizer: a table goes in, a verified release comes out.

A method implements :meth:`Anonymizer.plan` or, if it forms classes of at least k people, only
:meth:`KAnonymizer.partition`. Everything else happens here: repair, publication, claim and verification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fedanon._version import __version__
from fedanon.anonymizers.enforcement import keep_requirements, merge_short_groups, refuse_broken
from fedanon.anonymizers.person_series import join_series, slot_name, split_series
from fedanon.data.cells import Cells, Intervals, Nodes, Numbers, whole_range
from fedanon.data.columns import reading_notes
from fedanon.data.groups import Groups
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import CodedColumn, Table
from fedanon.errors import ConfigError, InfeasibleError, PrivacyViolationError
from fedanon.fields import check_fields, parameter
from fedanon.privacy.base import Claim, PrivacyModel
from fedanon.privacy.combined import Combined
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.privacy.requirements import parse_requirements
from fedanon.privacy.sensitive import SensitiveModel
from fedanon.release.gate import verify
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance, Recoding, Release, release_of
from fedanon.types import IntArray, Rng


@dataclass(frozen=True)
class ReleasePlan:
    """The groups and cells a method wants to publish, before they are verified and become a release.

    ``made`` is what a search did whose budget was wall time; see :class:`fedanon.release.release.Provenance`.
    """

    groups: Groups
    cells: Mapping[str, Cells]
    recoding: Recoding
    notes: tuple[str, ...] = ()
    made: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Anonymizer(ABC):
    """Base of all methods; parameters are keyword-only dataclass fields, stored as given."""

    name: ClassVar[str]
    #: every kept original lies inside its published cell
    truthful: ClassVar[bool] = True
    #: another order of the rows may give another release
    row_order_matters: ClassVar[bool] = False
    #: numeric quasi-identifiers only
    numeric_only: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    def for_table(self, table: Table) -> Self:
        """The method with every setting decided that it leaves to the table; by default there is none."""
        return self

    def anonymize(self, table: Table, *, rng: Rng | int) -> Release:
        """Publish ``table``; the release has passed verification. ``rng`` is a generator or a seed."""
        decided = self.for_table(table)
        if decided is not self:
            return decided.anonymize(table, rng=rng)
        generator = np.random.default_rng(rng)
        self._refuse_unfit(table)
        if table.schema.pseudonym is None:
            plan = self.enforce_requirements(table, self.plan(table, generator))
        else:
            plan = self._plan_series(table, generator)
        release = release_of(
            table,
            plan.groups,
            plan.cells,
            claim=self.claim(),
            provenance=self.provenance(table, generator, plan),
            recoding=plan.recoding,
        )
        try:
            return verify(release, table)
        except PrivacyViolationError:
            if not release.has_pseudonyms or not getattr(self, "required", ()):
                raise
            # each row of a series was compared with those of series as long, the gate compares it with all
            asked = " and ".join(map(str, getattr(self, "required", ())))
            raise InfeasibleError(
                f"The series of people cannot keep {asked}: require less, or leave out pseudonyms."
            ) from None

    @abstractmethod
    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """The groups and cells to publish."""

    def enforce_requirements(self, table: Table, plan: ReleasePlan) -> ReleasePlan:
        """The plan with all that is required of its classes; here nothing is."""
        return plan

    def enforce_on_people(self, wide: Table, plan: ReleasePlan, slots: int) -> ReleasePlan:
        """The plan of people with ``slots`` rows each, with all that is required of each row; here nothing is."""
        return plan

    def _plan_series(self, table: Table, rng: Rng) -> ReleasePlan:
        """The groups and cells of a table that publishes pseudonyms: people with the same series share all of it."""
        strata = split_series(table, getattr(self, "k", 1))
        plans = []
        for stratum in strata:
            slots = stratum.rows.shape[1]
            plans.append(self.enforce_on_people(stratum.wide, self.plan(stratum.wide, rng), slots))
        groups, cells = join_series(table, strata, [(plan.groups, plan.cells) for plan in plans])
        notes = tuple(dict.fromkeys(note for plan in plans for note in plan.notes))
        cut = len(table) - sum(stratum.rows.size for stratum in strata)
        if cut:
            notes += (f"{cut} rows are suppressed because too few people have as many rows as theirs.",)
        made = join_made([plan.made for plan in plans])
        return ReleasePlan(groups, cells, NearestGroup(), notes, made)

    def claim(self) -> Claim | None:
        """What the release promises; nothing unless a method says otherwise."""
        return None

    def _refuse_unfit(self, table: Table) -> None:
        table.schema.refuse_undecided()
        if not table.columns:
            raise ConfigError("The schema declares no quasi-identifying columns; there is nothing to anonymize.")
        categorical = [c.name for c in table.columns if isinstance(c.attribute, Categorical)]
        if self.numeric_only and categorical:
            raise ConfigError(
                f"The method {self.name!r} takes numeric quasi-identifiers only. Categorical: {', '.join(categorical)}."
            )
        missing = [c.name for c in table.columns if c.has_missing]
        if self.numeric_only and missing:
            raise ConfigError(f"The method {self.name!r} takes no missing values. Columns: {', '.join(missing)}.")

    def provenance(self, table: Table, rng: Rng, plan: ReleasePlan) -> Provenance:
        """Where a release by ``plan`` comes from."""
        entropy: Any = getattr(rng.bit_generator.seed_seq, "entropy", None)
        return Provenance(
            method=self.name,
            parameters=asdict(self),
            seed=entropy if isinstance(entropy, int) else None,
            version=__version__,
            data_sha256=table.sha256,
            schema_sha256=table.schema.sha256,
            notes=(*plan.notes, *reading_notes(table.schema)),
            made=plan.made,
        )


@dataclass(frozen=True, kw_only=True)
class KAnonymizer(Anonymizer):
    """Base of the methods that publish classes of at least k people."""

    k: int = parameter(help="minimum number of people in an equivalence class", at_least=2)
    require: str = parameter("", help="what classes must satisfy beyond k, such as l=2:income,t=0.3:income")

    def __post_init__(self) -> None:
        super().__post_init__()
        other = [m.min_people for m in self._models if m.min_people not in (0, self.k)]
        if other:
            raise ConfigError(f"The 'require' parameter asks for k={other[0]}, the 'k' parameter for k={self.k}.")

    @cached_property
    def required(self) -> tuple[PrivacyModel, ...]:
        """The models that are required beyond k."""
        return tuple(m for m in self._models if not m.min_people)

    @cached_property
    def _models(self) -> list[PrivacyModel]:
        return parse_requirements(self.require)

    def claim(self) -> Claim:
        """k-anonymity, and what else is required."""
        k = KAnonymity(k=self.k)
        return Combined(k=k, models=self.required) if self.required else k

    def _refuse_unfit(self, table: Table) -> None:
        super()._refuse_unfit(table)
        refuse_few_people(table, self.k)
        blind = [str(model) for model in self.required if model.needs_truth and not self.truthful]
        if blind:
            raise ConfigError(
                f"The method {self.name!r} publishes values that are not true; {blind[0]} cannot be checked on them."
            )
        claim = self.claim()
        if isinstance(claim, Combined) and table.persons is None:
            # a monotone model that does not hold for all rows together holds for no division of them
            whole = Groups(np.zeros(len(table), dtype=np.int32), 1)
            refuse_broken(table, whole, publish_smallest_cells(table, whole), claim.monotone())

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Partition the rows, merge what holds too few people, publish the groups."""
        groups = merge_short_groups(table, Groups.from_labels(self.partition(table, rng)), KAnonymity(k=self.k))
        return ReleasePlan(groups, self.publish_groups(table, groups), NearestGroup())

    def publish_groups(self, table: Table, groups: Groups) -> Mapping[str, Cells]:
        """The cells that stand for the groups; the smallest truthful ones unless a method says otherwise."""
        return publish_smallest_cells(table, groups)

    def enforce_requirements(self, table: Table, plan: ReleasePlan) -> ReleasePlan:
        """Merge the classes that do not satisfy what is required beyond k."""
        claim = self.claim()
        if not isinstance(claim, Combined):
            return plan
        groups, cells = keep_requirements(
            table, plan.groups, plan.cells, claim, lambda merged: self.republish(table, merged, plan)
        )
        return replace(plan, groups=groups, cells=cells)

    def enforce_on_people(self, wide: Table, plan: ReleasePlan, slots: int) -> ReleasePlan:
        """Merge groups of people until each of their rows satisfies what is required beyond k."""
        if not self.required:
            return plan
        of_slots = []
        for model in self.required:
            if not isinstance(model, SensitiveModel):
                raise ConfigError(
                    f"A release with pseudonyms cannot be required to keep {model}, which names no column."
                )
            of_slots += [replace(model, column=slot_name(model.column, slot)) for slot in range(slots)]
        claim = Combined(k=KAnonymity(k=self.k), models=tuple(of_slots))
        groups, cells = keep_requirements(
            wide, plan.groups, plan.cells, claim, lambda merged: self.republish(wide, merged, plan)
        )
        return replace(plan, groups=groups, cells=cells)

    def republish(self, table: Table, groups: Groups, plan: ReleasePlan) -> Mapping[str, Cells]:
        """The cells of groups that were merged from those of a plan."""
        return self.publish_groups(table, groups)

    def partition(self, table: Table, rng: Rng) -> Any:
        """Group number of every row, each group with at least k rows; -1 suppresses a row."""
        raise TypeError(f"{type(self).__name__} must define partition() or plan().")


def refuse_few_people(table: Table, k: int) -> None:
    """Raise InfeasibleError if a table holds fewer than k people."""
    if table.n_units < k:
        held = f"{table.n_units} {table.schema.unit}"
        raise InfeasibleError(f"The table holds {held}, fewer than k={k}: nothing can be published.")


def join_made(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several searches did, one after another; see :class:`fedanon.release.release.Provenance`."""
    searched = [part for part in parts if part]
    if len(searched) < 2:
        return dict(searched[0]) if searched else {}
    names = [name for name in searched[0] if all(name in part for part in searched)]
    return {name: [entry for part in searched for entry in part[name]] for name in names}


def takes_k(method: type[Anonymizer]) -> bool:
    """Whether a method has a k."""
    return any(entry.name == "k" for entry in fields(method))


# ---- From groups of rows to the cells that stand for them ----------------------------------------


def publish_smallest_cells(table: Table, groups: Groups) -> dict[str, Cells]:
    """Intervals and lowest common ancestors: the least general truthful cells."""
    low, high = groups.minimum(table.codes), groups.maximum(table.codes)
    return {c.name: smallest_cells(table, c, low[:, i], high[:, i]) for i, c in enumerate(table.columns)}


def smallest_cells(table: Table, column: CodedColumn, low: IntArray, high: IntArray) -> Cells:
    """Cells that cover the codes low..high of one column."""
    wildcard = table.missing == "wildcard" and column.has_missing
    if isinstance(column.attribute, Numeric):
        return _intervals(column, low, high, wildcard=wildcard)
    nodes = column.hierarchy.common_ancestor(low, high)
    if wildcard:
        nodes = np.where(nodes == column.hierarchy.n_leaves - 1, column.hierarchy.root, nodes).astype(np.int32)
    return Nodes(nodes, column.hierarchy)


def _intervals(column: CodedColumn, low: IntArray, high: IntArray, *, wildcard: bool) -> Intervals:
    assert isinstance(column.attribute, Numeric)
    assert column.values is not None
    cells = Intervals(column.values[low], column.upper[high])
    if not column.has_missing:
        return cells
    everything = whole_range(column.attribute, len(low))
    open_ = np.isnan(cells.high) & (wildcard | ~np.isnan(cells.low))
    return Intervals(np.where(open_, everything.low, cells.low), np.where(open_, everything.high, cells.high))


def own_cells(table: Table, column: CodedColumn) -> Cells:
    """A cell for every code of a column that publishes the code itself."""
    codes = np.arange(column.size, dtype=np.int32)
    return smallest_cells(table, column, codes, codes)


def publish_means(table: Table, groups: Groups) -> dict[str, Cells]:
    """Group means of numeric columns, which are no record's true value."""
    cells: dict[str, Cells] = {}
    for i, column in enumerate(table.columns):
        assert column.values is not None
        cells[column.name] = Numbers(groups.mean(column.values[table.codes[:, i]]))
    return cells
