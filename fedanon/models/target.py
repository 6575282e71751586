"""The target: the schema's target column as the numbers a model learns.

What is predicted follows from the schema alone, so that all nodes mean the same. A categorical column with two values
is binary, one with more is multi-class. A numeric column is a number to predict, unless its range is [0, 1] or it
declares none: then its values are 0 and 1.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Categorical, Numeric, Schema
from fedanon.data.table import Table, missing_mask, numbers, texts
from fedanon.errors import ConfigError, SchemaError
from fedanon.models.outcome import BINARY, MAX_CLASSES, REGRESSION, Outcome
from fedanon.release.release import Release
from fedanon.types import BoolArray, FloatArray, TargetArray


def outcome_of(schema: Schema) -> Outcome:
    """What a model of tables with this schema predicts.

    Raises
    ------
    ConfigError
        If the schema names no target.
    SchemaError
        If its target cannot be predicted.
    """
    attribute = _attribute(schema)
    if isinstance(attribute, Numeric):
        is_binary = not attribute.has_range or (attribute.low, attribute.high) == (0.0, 1.0)
        return BINARY if is_binary else REGRESSION
    return Outcome(len(_values(attribute)))


def target(rows: Table | Release | pd.DataFrame, schema: Schema) -> TargetArray:
    """The target of every row: the place of its value among the declared ones in sorted order, or in its range.

    Of two values the last ('>50K', 'yes', 1) is 1, the other 0. A number is scaled to (x - low) / (high - low).

    Parameters
    ----------
    rows : a table, a frame, or a release, whose suppressed rows are left out.
    schema : names the target.

    Raises
    ------
    ConfigError
        If the schema names no target.
    SchemaError
        If the target cannot be predicted, or some of its cells are missing or undeclared.
    """
    attribute = _attribute(schema)
    column = _target_column(rows, attribute.name)
    absent = missing_mask(column, schema)
    if not isinstance(attribute, Numeric):
        return _class_numbers(column, _values(attribute), absent, attribute.name)
    values = numbers(column, attribute, absent)
    if outcome_of(schema) == BINARY:
        _refuse_unknown(np.isin(values, (0.0, 1.0)) & ~absent, attribute.name, "neither 0 nor 1")
        return np.asarray(values == 1.0, dtype=np.int8)
    _refuse_unknown(~absent, attribute.name, "no numbers")
    return np.asarray((values - attribute.low) / attribute.width)


def binary_target(rows: Table | Release | pd.DataFrame, schema: Schema) -> TargetArray:
    """The target as 0 and 1; ConfigError where it is neither."""
    outcome = outcome_of(schema)
    if outcome != BINARY:
        raise ConfigError(f"Only a target of two classes fits here; {schema.target!r} is {outcome}.")
    return target(rows, schema)


def class_values(schema: Schema) -> tuple[str, ...]:
    """The values of the target that 0, 1, ... stand for; none for a number."""
    attribute = _attribute(schema)
    if isinstance(attribute, Numeric):
        return ("0", "1") if outcome_of(schema) == BINARY else ()
    return _values(attribute)


def in_units(places: FloatArray, schema: Schema) -> FloatArray:
    """Predicted places in the range of a numeric target as numbers of the column itself."""
    attribute = _attribute(schema)
    assert isinstance(attribute, Numeric)
    return attribute.low + places * attribute.width


def unit_of(schema: Schema) -> float:
    """What the length 1 of a scaled target is in units of the column; 1 where classes are predicted."""
    attribute = _attribute(schema)
    return attribute.width if isinstance(attribute, Numeric) and outcome_of(schema) == REGRESSION else 1.0


def _attribute(schema: Schema) -> Numeric | Categorical:
    if schema.target is None:
        raise ConfigError(
            'The schema names no target column; there is nothing to predict. Write target = "COLUMN" at its top, with '
            "a column that is no quasi-identifier."
        )
    attribute = schema[schema.target]
    if not isinstance(attribute, Numeric | Categorical):
        raise SchemaError(f"The target {schema.target!r} must be declared categorical with its values, or numeric.")
    return attribute


def _target_column(rows: Table | Release | pd.DataFrame, name: str) -> pd.Series:
    if isinstance(rows, Release):
        return rows.passthrough.loc[~rows.suppressed, name]
    return rows.frame[name] if isinstance(rows, Table) else rows[name]


def _class_numbers(column: pd.Series, values: tuple[str, ...], absent: BoolArray, name: str) -> TargetArray:
    places = pd.Index(values).get_indexer(pd.Index(texts(column)))
    _refuse_unknown((places >= 0) & ~absent, name, "none of its declared values")
    return np.asarray(places, dtype=np.int8)


def _values(attribute: Categorical) -> tuple[str, ...]:
    leaves = attribute.hierarchy.labels[: attribute.hierarchy.n_leaves]
    values = sorted(leaf for leaf in leaves if leaf != MISSING)
    if not 2 <= len(values) <= MAX_CLASSES:
        raise SchemaError(
            f"The target {attribute.name!r} must have 2 to {MAX_CLASSES} values to be predicted. It has {len(values)}."
        )
    return tuple(values)


def _refuse_unknown(known: BoolArray, name: str, otherwise: str) -> None:
    bad = int((~known).sum())
    if bad:
        raise SchemaError(f"The target {name!r} has {bad} cells that are missing or {otherwise}.")
