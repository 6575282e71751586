"""Rules for columns nobody has described yet: formats of dates, ICD codes, forms of postal codes."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.attributes import Attribute, Categorical, Numeric, Role
from fedanon.data.detectors.headers import header_words, names_postal_codes
from fedanon.data.rules import CodeRule, DateRule, IcdRule, PrefixRule
from fedanon.data.rules.dates import day_of

#: tried in this order, each alone, on every distinct value
FORMATS = (
    *("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%Y%m%d", "%d/%m/%y", "%m/%d/%y"),
    *("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d %b %Y", "%d %B %Y"),
)
#: dates lie between these, lest numbers of eight digits be taken for some
EARLIEST, LATEST = date(1850, 1, 1).toordinal(), date(2100, 1, 1).toordinal()
#: words of a name that stand for diagnoses
DIAGNOSES = frozenset({"icd", "icd10", "cid", "cid10", "diag", "diagnosis", "diagnostico", "cie", "cie10", "dx"})
_MOST_PREFIXES = 5


def propose_rule(name: str, role: Role, cells: pd.Series[Any]) -> Attribute | None:
    """The column by a rule that every value fits; None where there is none.

    Parameters
    ----------
    name : of the column.
    role : proposed for it.
    cells : its values that are not missing, as text.
    """
    values = [str(value) for value in cells.unique()]
    dates = _dates(values)
    if dates is not None:
        rule, days = dates
        # whole years, and one more, so that the next months fit
        first, last = date(day_of(days.min()).year, 1, 1), date(day_of(days.max()).year + 1, 12, 31)
        return Numeric(name, role, float(first.toordinal()), float(last.toordinal()), integer=True, rule=rule)
    codes = _codes(name, values)
    return None if codes is None else Categorical.by_rule(name, role, codes)


def _dates(values: list[str]) -> tuple[DateRule, Any] | None:
    for form in FORMATS:
        rule = DateRule((form,))
        if np.isnan(rule.read(values[:1])[0]):
            continue
        if form == "%Y%m%d" and any(len(value.strip()) != 8 for value in values):
            continue  # without zeros, numbers of six digits would pass
        days = rule.read(values)
        if ((days >= EARLIEST) & (days <= LATEST)).all():
            return rule, days
    return None


def is_ambiguous(attribute: Attribute, cells: pd.Series[Any]) -> bool:
    """Whether all dates would be dates too if day and month had changed places."""
    rule = attribute.rule if isinstance(attribute, Numeric) else None
    if not isinstance(rule, DateRule) or not rule.formats[0].startswith(("%d/%m", "%m/%d")):
        return False
    form = rule.formats[0]
    swapped = DateRule((form.replace("%d/%m", "%m/%d") if form.startswith("%d") else form.replace("%m/%d", "%d/%m"),))
    return not np.isnan(swapped.read(str(value) for value in cells.unique())).any()


def _codes(name: str, values: list[str]) -> CodeRule | None:
    if DIAGNOSES & header_words(name):
        for rule in (IcdRule("icd10"), IcdRule("icd9")):
            if all(rule.path(value) is not None for value in values) and not all(map(_is_small, values)):
                return rule
    if not names_postal_codes(name):
        return None
    forms = {re.sub("[A-Z]", "A", re.sub("[0-9]", "9", value.strip().upper())) for value in values}
    size = {sum(sign.isalnum() for sign in form) for form in forms}
    if len(size) > 1 or any(re.search("[^9A -]", form) for form in forms):
        return None
    form = max(sorted(forms), key=len)  # signs may be left out
    if len({re.sub("[^9A]", "", one) for one in forms}) > 1 or not 2 <= (n := size.pop()) <= 12:
        return None
    return PrefixRule(form, tuple(range(1, n))[:_MOST_PREFIXES])


def _is_small(value: str) -> bool:
    """Whether a value may be the number of a category rather than an ICD-9 code."""
    return value.strip().isdigit() and len(value.strip()) < 3
