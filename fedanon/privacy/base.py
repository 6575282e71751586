"""PrivacyModel: what must hold for every equivalence class of a release, beside or beyond k."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import PrivacyViolationError
from fedanon.fields import check_fields
from fedanon.release.release import Release
from fedanon.types import BoolArray

#: room for the rounding of shares and logarithms, and for nothing else
ROUNDING = 1e-9

#: makes the published cells, one a class; only models that look at cells call it
CellsOf = Callable[[], Mapping[str, Cells]]


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

    def people(self, groups: Groups) -> NDArray[np.int64]:
        """Number of people in every group."""
        return groups.sizes if self.persons is None else groups.distinct(self.persons)


@dataclass(frozen=True, kw_only=True)
class PrivacyModel(ABC):
    """Base of the models that ``require`` combines; parameters are keyword-only dataclass fields.

    A model implements :meth:`evaluator` and is named by ``str()``; in a requirement its first field is the
    subject, the column or file it is about, and its second the number (see :mod:`fedanon.privacy.requirements`).
    """

    #: the name in manifests
    title: ClassVar[str]
    #: merging classes in which it holds never breaks it, if every person has one row
    monotone: ClassVar[bool] = True
    #: it can be judged only if published cells hold the true values
    needs_truth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def evaluator(self, rows: Rows, published: BoolArray) -> Evaluator:
        """Prepare once, evaluate often: say which classes of ``rows`` satisfy the model.

        ``published`` marks the rows that are not suppressed; what a class is compared with are these. A monotone model
        may then be given groups of only some of them.
        """

    @abstractmethod
    def describe(self) -> str:
        """What holds for every class, as a clause for people."""

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {"model": self.title, **asdict(self)}

    def check(self, release: Release, table: Table) -> None:
        """Raise unless the model holds for every equivalence class of the release, as published."""
        satisfied = satisfied_classes(self, release, table)
        if not satisfied.all():
            broken = f"{int((~satisfied).sum())} of {len(satisfied)} equivalence classes do not keep it"
            raise PrivacyViolationError(f"The release claims {self}, but {broken}.")


def satisfied_classes(model: PrivacyModel, release: Release, table: Table) -> BoolArray:
    """Which equivalence classes of a release keep ``model``; sensitive values are those the release carries."""
    classes = release.classes
    rows = Rows(release.passthrough, release.schema, table.persons)

    def cells() -> Mapping[str, Cells]:
        of_class = release.groups.labels[classes.first_rows]
        return {name: cell.select(of_class) for name, cell in release.cells.items()}

    return model.evaluator(rows, ~release.suppressed).satisfied(classes, cells)
