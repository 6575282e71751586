"""What a key does to a table before anything else sees it: people become pseudonyms, and their dates move together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.columns import missing_mask, numbers, texts
from fedanon.data.person_key import PersonKey
from fedanon.data.rules import DateRule
from fedanon.data.schema import Numeric, Schema
from fedanon.errors import DataError


def protect_people(frame: pd.DataFrame, schema: Schema, key: PersonKey) -> pd.DataFrame:
    """The frame with a pseudonym for every person and with shifted dates, where ``schema`` declares them.

    All dates of a person move by the same number of days, so that what lies between them stays.
    """
    assert schema.person_id is not None
    people = pd.Categorical(texts(frame[schema.person_id]))
    names = [str(name) for name in people.categories]
    changed: dict[str, pd.Series[Any]] = {}
    if schema.pseudonym is not None:
        pseudonyms = np.array([*map(key.pseudonym, names), None], dtype=object)
        if len(set(pseudonyms[:-1])) < len(names):
            raise DataError("Two people have the same pseudonym; make another key with `fedanon keys new`.")
        changed[schema.pseudonym] = pd.Series(pseudonyms[people.codes], index=frame.index, dtype=object)
    for attribute in schema.shifted:
        assert isinstance(attribute.rule, DateRule)
        most = attribute.rule.shift_days
        offsets = np.array([*(key.offset(name, most) for name in names), 0])[people.codes]
        changed[attribute.name] = _shifted(frame[attribute.name], attribute, offsets, schema)
    return frame.assign(**changed)


def _shifted(column: pd.Series[Any], attribute: Numeric, offsets: Any, schema: Schema) -> pd.Series[Any]:
    rule = attribute.rule
    assert isinstance(rule, DateRule)
    # the true dates lie in the declared range, which is narrower than that of the shifted ones
    declared = replace(attribute, low=attribute.low + rule.shift_days, high=attribute.high - rule.shift_days)
    absent = missing_mask(column, schema)
    days = numbers(column, declared, absent) + offsets
    written = {day: rule.write_day(day) for day in np.unique(days[~absent]).tolist()}
    shown = [written.get(day, cell) for day, cell in zip(days.tolist(), column.tolist(), strict=True)]
    return pd.Series(shown, index=column.index, dtype=object)
