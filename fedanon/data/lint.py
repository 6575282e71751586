"""A second look at a schema with its data: what a steward may have overlooked. Names and counts only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.detectors.columns import Judgment, Sign, agreement, judge_column
from fedanon.data.detectors.headers import Kind, kinds_of_name
from fedanon.data.groups import Groups
from fedanon.data.schema import Attribute, Categorical, Role, Schema
from fedanon.data.table import Table, missing_mask, texts
from fedanon.types import IndexArray

DETERMINED = 0.95
WIDE_FLAT_TREE = 20
#: the roles of columns that are published as they are
CARRIED = (Role.SENSITIVE, Role.INSENSITIVE)


@dataclass(frozen=True)
class Suspect:
    """A column that is published although it looks like more than its role says.

    Parameters
    ----------
    column : its name.
    role : what the schema says of it.
    judgment : what its name and values say.
    """

    column: str
    role: Role
    judgment: Judgment

    @property
    def warning(self) -> str:
        """A sentence for people."""
        what = "an identifier" if self.judgment.role is Role.IDENTIFYING else "a quasi-identifier"
        kind = self.judgment.kind
        harbor = f" (HIPAA Safe Harbor: {kind.name})" if kind is not None else ""
        return f"The {self.role} column {self.column!r} looks like {what}{harbor}: {self.judgment.reason}."


def suspects(table: Table) -> list[Suspect]:
    """The published columns that look like identifiers, or, published as they are, like quasi-identifiers."""
    found = []
    for attribute in table.schema.attributes:
        if attribute.name in table.frame and attribute.name != table.schema.pseudonym:
            judgment = _judged(attribute.name, table.frame, table.schema)
            if _is_suspect(attribute.role, judgment):
                found.append(Suspect(attribute.name, attribute.role, judgment))
    return sorted(found, key=lambda suspect: suspect.judgment.role is not Role.IDENTIFYING)


def _judged(name: str, frame: pd.DataFrame, schema: Schema) -> Judgment:
    cells = frame[name][~missing_mask(frame[name], schema)]
    return judge_column(name, texts(cells), rows=len(frame))


def _is_suspect(role: Role, judgment: Judgment) -> bool:
    if role is Role.QUASI_IDENTIFYING:
        return judgment.role is Role.IDENTIFYING and judgment.sign == "shape"
    if judgment.role is Role.IDENTIFYING or judgment.sign == "unique":
        return True
    # what is sensitive may be known to others too; a date is a date whatever its name
    return judgment.role is Role.QUASI_IDENTIFYING and (role is Role.INSENSITIVE or judgment.sign == "shape")


def lint_schema(table: Table, suspected: Sequence[Suspect] | None = None) -> list[str]:
    """Warnings about a table's schema, the graver ones first; ``suspected`` are its suspects where they are known.

    Looked for are: published columns that look like identifiers or quasi-identifiers (:func:`suspects`), or that give a
    quasi-identifier away; a schema without a sensitive column; long flat taxonomies.
    """
    carried = [a for a in table.schema.attributes if a.role in CARRIED]
    warnings = [suspect.warning for suspect in (suspects(table) if suspected is None else suspected)]
    for attribute in carried:
        if attribute.name != table.schema.target:
            warnings += _determined(attribute, _codes(table.frame[attribute.name]), table)
    if not table.schema.sensitive:
        warnings.append("No column is sensitive; l-diversity and t-closeness then protect nothing.")
    return [*warnings, *_flat_trees(table)]


def _codes(column: pd.Series[Any]) -> IndexArray:
    """The values of a column as numbers; missing is a value too."""
    return np.asarray(pd.factorize(column, use_na_sentinel=False)[0], dtype=np.int64)


def _determined(attribute: Attribute, codes: IndexArray, table: Table) -> Iterator[str]:
    groups = Groups.from_labels(codes)
    # small groups agree by chance
    judged = groups.sizes[groups.labels] >= 3
    if groups.count < 2 or judged.mean() < 0.2:
        return
    for i, column in enumerate(table.columns):
        quasi = table.codes[judged, i].astype(np.int64)
        known = agreement(codes[judged], quasi)
        guessed = agreement(np.zeros_like(quasi), quasi)
        if known >= DETERMINED and 1 - known <= (1 - guessed) / 2 and guessed < 1:
            yield (
                f"The {attribute.role} column {attribute.name!r} determines the quasi-identifier {column.name!r} "
                f"on {known:.0%} of the rows, and so undoes its generalization."
            )


def _flat_trees(table: Table) -> Iterator[str]:
    for attribute in table.schema.quasi_identifiers:
        if isinstance(attribute, Categorical):
            tree = attribute.hierarchy
            if int(tree.height[tree.root]) == 1 and tree.n_leaves > WIDE_FLAT_TREE:
                yield (
                    f"The quasi-identifier {attribute.name!r} has {tree.n_leaves} values in a flat taxonomy: "
                    "two of them can only be generalized to everything."
                )


# ---- HIPAA Safe Harbor's 18 kinds of identifiers, and the columns that look like one -------------


@dataclass(frozen=True)
class Lookalike:
    """A column that looks like an identifier.

    Parameters
    ----------
    kind : which.
    column : its name.
    role : what the schema says of it.
    sign : its name, the shape of its values, or that nearly every record has a value of its own.
    """

    kind: Kind
    column: str
    role: Role
    sign: Sign

    @property
    def published(self) -> bool:
        """Whether the column is published as it is."""
        return self.role in CARRIED


def safe_harbor(schema: Schema, frame: pd.DataFrame | None = None) -> list[Lookalike]:
    """The columns of a schema that look like one of the 18 kinds, in the order of the list.

    Parameters
    ----------
    schema : of the table.
    frame : its columns, as many as are at hand; quasi-identifiers are judged by their names alone.
    """
    found = [look for attribute in schema.attributes for look in _looks(attribute, schema, frame)]
    return sorted(found, key=lambda look: (look.kind.letter, schema.names.index(look.column)))


def _looks(attribute: Attribute, schema: Schema, frame: pd.DataFrame | None) -> Iterable[Lookalike]:
    name, role = attribute.name, attribute.role
    named = kinds_of_name(name)
    yield from (Lookalike(kind, name, role, "name") for kind in named)
    if frame is None or name not in frame or role is Role.QUASI_IDENTIFYING:
        return
    judgment = _judged(name, frame, schema)
    if judgment.kind is not None and judgment.kind not in named and judgment.sign is not None:
        yield Lookalike(judgment.kind, name, role, judgment.sign)
