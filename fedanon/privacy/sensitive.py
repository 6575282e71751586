"""A sensitive column as small numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.hierarchy import IntArray
from fedanon.data.schema import Attribute, Numeric, Role, Schema
from fedanon.data.table import missing_mask, numbers, texts
from fedanon.errors import ConfigError
from fedanon.privacy.base import Rows


@dataclass(frozen=True, eq=False)
class Sensitive:
    """The values of a sensitive column.

    Parameters
    ----------
    attribute : its declaration.
    codes : number of the value of every row; numbers in their order, texts in alphabetical order.
    values : the value of every code, missing ones left out: if any row has none, the last code means missing.
    size : number of codes.
    """

    attribute: Attribute
    codes: IntArray
    values: pd.Index[Any]
    size: int

    @property
    def has_missing(self) -> bool:
        """Whether the last code means missing."""
        return self.size > len(self.values)


def sensitive_values(rows: Rows, name: str) -> Sensitive:
    """Encode a column; every distinct value is one of its own, and so is a missing one."""
    attribute = sensitive_attribute(rows.schema, name)
    column = rows.frame[name]
    absent = missing_mask(column, rows.schema)
    if isinstance(attribute, Numeric):
        column = pd.Series(numbers(column, attribute, absent))
    else:
        column = texts(column).where(~absent)
    codes, values = pd.factorize(column, sort=True)
    codes[codes < 0] = len(values)
    return Sensitive(attribute, codes.astype(np.int32), pd.Index(values), len(values) + bool(absent.any()))


def sensitive_attribute(schema: Schema, name: str) -> Attribute:
    """The declaration of a column a model is about: any that is published as it is."""
    if name not in schema.names:
        raise ConfigError(f"The requirement names the column {name!r}, which the schema does not declare.")
    attribute = schema[name]
    if attribute.role in (Role.IDENTIFYING, Role.QUASI_IDENTIFYING):
        raise ConfigError(f"The requirement is about the column {name!r}, whose role is {attribute.role}.")
    return attribute
