"""PrivacyModel: what must hold for every equivalence class of a published table.

A model looks at a :class:`View`, which says what an observer sees; :class:`fedanon.release.view.PublishedView` is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.schema import Schema, Unit
from fedanon.errors import PrivacyViolationError
from fedanon.fields import check_fields
from fedanon.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.data.table import Table

#: room for the rounding of shares and logarithms, and for nothing else
ROUNDING = 1e-9

#: makes the published cells, one per class; only models that look at cells call it
CellsOf = Callable[[], Mapping[str, Cells]]


class View(Protocol):
    """What a claim is checked on."""

    @property
    def schema(self) -> Schema:
        """Of the table that was published."""

    @property
    def passthrough(self) -> pd.DataFrame:
        """The columns carried along unchanged."""

    @property
    def groups(self) -> Groups:
        """The rows that share the cells at one place of :attr:`cells`."""

    @property
    def cells(self) -> Mapping[str, Cells]:
        """Of every quasi-identifier, one cell per group."""

    @property
    def classes(self) -> Groups:
        """The equivalence classes: rows whose published quasi-identifiers are equal."""

    @property
    def class_cells(self) -> Mapping[str, Cells]:
        """What is published of every class."""

    @property
    def suppressed(self) -> BoolArray:
        """Which rows publish nothing."""

    @property
    def persons(self) -> IntArray | None:
        """Number of the person of each row, or None where rows are counted."""

    @property
    def in_group_order(self) -> bool:
        """Whether rows are published group by group."""


class Claim(Protocol):
    """What a release promises: a privacy model, or a property of the mechanism that made it."""

    def check(self, view: View, table: Table) -> None:
        """Raise PrivacyViolationError unless the release of ``table`` keeps the promise."""

    def to_dict(self) -> dict[str, Any]:
        """Name and parameters for the manifest."""

    def describe(self, unit: Unit) -> str:
        """One sentence for a reader; ``unit`` says whether people or records are counted."""


class Forecast:
    """What a model would say of merged classes, for choosing which to merge; it may err. This one sees no danger."""

    def satisfied(self, source: int, others: NDArray[np.int64]) -> BoolArray:
        """Whether the union of a class with each of others would satisfy it."""
        return np.ones(len(others), dtype=bool)

    def merge(self, source: int, into: int) -> None:
        """Take note that a class has been merged into another."""


class Evaluator(NamedTuple):
    """A model that has looked at a table.

    Parameters
    ----------
    satisfied : which classes satisfy the model.
    forecast : which unions of these classes would be.
    """

    satisfied: Callable[[Groups, CellsOf], BoolArray]
    forecast: Callable[[Groups], Forecast] = lambda _: Forecast()


class Rows(NamedTuple):
    """What a model sees of the rows.

    Parameters
    ----------
    frame : their columns; quasi-identifiers are not looked at.
    schema : the declaration of the columns.
    persons : number of the person of each row, or None where a row is a person.
    """

    frame: pd.DataFrame
    schema: Schema
    persons: NDArray[Any] | None

    @classmethod
    def from_table(cls, table: Table) -> Rows:
        """The rows of a table."""
        return cls(table.frame, table.schema, table.persons)

    @classmethod
    def from_view(cls, view: View) -> Rows:
        """The published rows."""
        return cls(view.passthrough, view.schema, view.persons)

    def people(self, groups: Groups) -> NDArray[np.int64]:
        """Number of people in every group."""
        return groups.count_people(self.persons)


@dataclass(frozen=True, kw_only=True)
class PrivacyModel(ABC):
    """Base of the models that ``require`` combines; parameters are keyword-only dataclass fields.

    A model implements :meth:`evaluator` and is named by ``str()``. Its first field that is not :attr:`subject` is the
    number of a requirement (see :mod:`fedanon.privacy.requirements`).
    """

    #: the name in manifests
    title: ClassVar[str]
    #: the field that says what the model is about, a column or a file; empty if it is about whole classes
    subject: ClassVar[str] = ""
    #: merging classes in which it holds never breaks it, if every person has one row
    monotone: ClassVar[bool] = True
    #: it can be evaluated only if published cells hold the true values
    needs_truth: ClassVar[bool] = False
    #: a class that breaks it while rows are counted breaks it all the more for people, who are no more than the rows
    refuted_by_rows: ClassVar[bool] = False
    #: where it holds, nobody can be sure whether a person is in the release
    hides_presence: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def min_people(self) -> int:
        """How many people it asks for in every class of a table; 0 if it asks for no number of people."""
        return 0

    @property
    def of_federation(self) -> bool:
        """Whether it is about the people of all nodes, of which one table or file shows nothing."""
        return False

    def needs_more_than(self, schema: Schema) -> bool:
        """Whether it needs values that ``schema`` does not declare, as that in a manifest may not."""
        return False

    @abstractmethod
    def evaluator(self, rows: Rows, published: BoolArray) -> Evaluator:
        """Prepare once, evaluate often: say which classes of ``rows`` satisfy the model.

        ``published`` marks the rows that are not suppressed; what a class is compared with are these. A monotone model
        may then be given groups of only some of them.
        """

    @abstractmethod
    def describe(self, unit: Unit) -> str:
        """What holds for every class, as a clause; ``unit`` says whether people or records are counted."""

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"model": self.title, **asdict(self)}

    def satisfied_classes(self, view: View) -> BoolArray:
        """Which equivalence classes satisfy the model, as published."""
        evaluator = self.evaluator(Rows.from_view(view), ~view.suppressed)
        return evaluator.satisfied(view.classes, lambda: view.class_cells)

    def check(self, view: View, table: Table) -> None:
        """Raise unless the model holds for every equivalence class, as published."""
        if not self.satisfied_classes(view).all():
            raise PrivacyViolationError(f"The release claims {self}, but {self.explain_failure(view)}.")

    def explain_failure(self, view: View) -> str:
        """How a view that breaks the model does, as a clause for people."""
        satisfied = self.satisfied_classes(view)
        return f"{int((~satisfied).sum())} of {len(satisfied)} equivalence classes do not keep it"
