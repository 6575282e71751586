"""The target: the schema's target column as 0 and 1."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Categorical, Numeric, Schema
from fedanon.data.table import Table, missing_mask, numbers, texts
from fedanon.errors import ConfigError, SchemaError
from fedanon.release.release import Release
from fedanon.types import BoolArray, TargetArray


def target(rows: Table | Release | pd.DataFrame, schema: Schema) -> TargetArray:
    """1 where the target is the last of its declared values in sorted order ('>50K', 'yes', 1), else 0.

    Parameters
    ----------
    rows : a table, a frame, or a release, whose suppressed rows are left out.
    schema : names the target; a categorical one declares two values, a numeric one the range [0, 1].

    Raises
    ------
    ConfigError
        If the schema names no target.
    SchemaError
        If the target is not binary, or some of its cells are missing or undeclared.
    """
    if schema.target is None:
        raise ConfigError("The schema names no target column; there is nothing to predict.")
    column = _target_column(rows, schema.target)
    attribute = schema[schema.target]
    absent = missing_mask(column, schema)
    if isinstance(attribute, Numeric):
        values = numbers(column, attribute, absent)
        known, positive = np.isin(values, (0.0, 1.0)), values == 1.0
    elif isinstance(attribute, Categorical):
        negative_label, positive_label = _two_values(attribute)
        words = texts(column)
        positive = (words == positive_label).to_numpy(dtype=bool, na_value=False)
        known = positive | (words == negative_label).to_numpy(dtype=bool, na_value=False)
    else:
        raise SchemaError(f"The target {schema.target!r} must be declared categorical with two values or numeric.")
    _refuse_unknown(known & ~absent, schema.target)
    return np.asarray(positive, dtype=np.int8)


def class_values(schema: Schema) -> tuple[str, str]:
    """The values of the target that 0 and 1 stand for."""
    attribute = schema[schema.target] if schema.target is not None else None
    return _two_values(attribute) if isinstance(attribute, Categorical) else ("0", "1")


def _target_column(rows: Table | Release | pd.DataFrame, name: str) -> pd.Series:
    if isinstance(rows, Release):
        return rows.passthrough.loc[~rows.suppressed, name]
    return rows.frame[name] if isinstance(rows, Table) else rows[name]


def _two_values(attribute: Categorical) -> tuple[str, str]:
    leaves = attribute.hierarchy.labels[: attribute.hierarchy.n_leaves]
    values = sorted(leaf for leaf in leaves if leaf != MISSING)
    if len(values) != 2:
        raise SchemaError(f"The target {attribute.name!r} must have two values to be predicted. It has {len(values)}.")
    return values[0], values[1]


def _refuse_unknown(known: BoolArray, name: str) -> None:
    bad = int((~known).sum())
    if bad:
        raise SchemaError(f"The target {name!r} has {bad} cells that are missing or neither of its two values.")
