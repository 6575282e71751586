"""A second look at a schema with its data: what a steward may have overlooked. Names and counts only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.column_names import IDENTIFYING, QUASI_IDENTIFYING, suggests
from fedanon.data.groups import Groups
from fedanon.data.safe_harbor import kind_of_shape, kinds_of_name
from fedanon.data.schema import Attribute, Categorical, Role
from fedanon.data.table import Table

DETERMINED = 0.95
NEARLY_UNIQUE = 0.9
ENOUGH_ROWS = 20
WIDE_FLAT_TREE = 20

Codes = NDArray[np.int64]


def lint_schema(table: Table) -> list[str]:
    """Warnings about a table's schema, the graver ones first.

    Looked for are: columns carried along that are nearly unique, that bear the name of an identifier or hold values of
    its shape (HIPAA Safe Harbor's 18 kinds), or that give a quasi-identifier away; a schema without a sensitive column;
    long flat taxonomies.
    """
    carried = [a for a in table.schema.attributes if a.role in (Role.INSENSITIVE, Role.SENSITIVE)]
    codes = {a.name: _codes(table.frame[a.name]) for a in carried}
    warnings = [*_nearly_unique(carried, codes, len(table)), *_telling_names(carried), *_telling_shapes(carried, table)]
    for attribute in carried:
        if attribute.name != table.schema.target:
            warnings += _determined(attribute, codes[attribute.name], table)
    if not table.schema.sensitive:
        warnings.append("No column is sensitive; l-diversity and t-closeness then protect nothing.")
    return [*warnings, *_flat_trees(table)]


def _codes(column: pd.Series[str]) -> Codes:
    """The values of a column as numbers; missing is a value too."""
    return np.asarray(pd.factorize(column, use_na_sentinel=False)[0], dtype=np.int64)


def _nearly_unique(carried: list[Attribute], codes: dict[str, Codes], rows: int) -> Iterator[str]:
    for attribute in carried:
        distinct = len(np.unique(codes[attribute.name]))
        if attribute.role is Role.INSENSITIVE and rows >= ENOUGH_ROWS and distinct >= NEARLY_UNIQUE * rows:
            yield (
                f"The insensitive column {attribute.name!r} has {distinct} values on {rows} rows: it may name "
                "a record. Should it be identifying?"
            )


def _telling_names(carried: list[Attribute]) -> Iterator[str]:
    for attribute in carried:
        if attribute.role is not Role.INSENSITIVE:
            continue
        if suggests(attribute.name, IDENTIFYING):
            kinds = "; ".join(kind.name for kind in kinds_of_name(attribute.name)) or "other identifiers"
            yield (
                f"The column {attribute.name!r} is insensitive, but its name is that of an identifier "
                f"(HIPAA Safe Harbor: {kinds})."
            )
        elif suggests(attribute.name, QUASI_IDENTIFYING):
            yield f"The column {attribute.name!r} is insensitive, but its name is that of a quasi-identifier."


def _telling_shapes(carried: list[Attribute], table: Table) -> Iterator[str]:
    for attribute in carried:
        kind = kind_of_shape(table.frame[attribute.name])
        if kind is not None:
            yield (
                f"The {attribute.role} column {attribute.name!r} is published as it is, and most of its values have "
                f"the shape of an identifier (HIPAA Safe Harbor: {kind.name})."
            )


def _determined(attribute: Attribute, codes: Codes, table: Table) -> Iterator[str]:
    groups = Groups.of(codes)
    # small groups agree by chance
    judged = groups.sizes[groups.labels] >= 3
    if groups.count < 2 or judged.mean() < 0.2:
        return
    for i, column in enumerate(table.columns):
        quasi = table.codes[judged, i].astype(np.int64)
        known = _agreement(codes[judged], quasi)
        guessed = _agreement(np.zeros_like(quasi), quasi)
        if known >= DETERMINED and 1 - known <= (1 - guessed) / 2 and guessed < 1:
            yield (
                f"The {attribute.role} column {attribute.name!r} tells the quasi-identifier {column.name!r} "
                f"on {known:.0%} of the rows, and so undoes its generalisation."
            )


def _agreement(groups: Codes, values: Codes) -> float:
    """Share of the rows whose value is the most frequent one of their group."""
    pairs = Groups.equal_rows(np.column_stack([groups, values]))
    largest = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, groups[pairs.first_rows], pairs.sizes)
    return float(largest.sum() / len(groups))


def _flat_trees(table: Table) -> Iterator[str]:
    for attribute in table.schema.quasi_identifiers:
        if isinstance(attribute, Categorical):
            tree = attribute.hierarchy
            if int(tree.height[tree.root]) == 1 and tree.n_leaves > WIDE_FLAT_TREE:
                yield (
                    f"The quasi-identifier {attribute.name!r} has {tree.n_leaves} values in a flat taxonomy: "
                    "two of them can only be generalised to everything."
                )
