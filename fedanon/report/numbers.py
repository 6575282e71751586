"""Numbers as text, with the same precision everywhere in a report."""

from __future__ import annotations

import math
from typing import Any

from fedanon.report.document import TableCell

NOTHING, MINUS = "\u2013", "\u2212"


def number(value: Any) -> str:
    """Format four significant digits, thousands separated, no exponents; a dash if there is no number."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    value = float(value)
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if not math.isfinite(value):
        return str(value)
    return _fixed(value, max(0, 3 - math.floor(math.log10(abs(value)))))


def with_interval(mean: float, half: float) -> str:
    """Format '0.824 ± 0.003': two significant digits of the interval, at least three of the mean."""
    if math.isnan(mean) or not half > 0:
        return number(mean)
    places = 1 - math.floor(math.log10(half))
    of_mean = 2 - math.floor(math.log10(abs(mean))) if mean else 0
    places = max(places, of_mean, 0)
    return f"{_fixed(mean, places)} ± {_fixed(half, places)}"


def signed(text: str) -> str:
    """Format a difference with its sign; minus is a true minus."""
    return text.replace("-", MINUS, 1) if text.startswith("-") else text if text in ("0", NOTHING) else f"+{text}"


def cell(value: Any) -> TableCell:
    """Return a number as a cell that sorts by it."""
    known = value is not None and not (isinstance(value, float) and math.isnan(value))
    return TableCell(number(value), float(value) if known else None)


def _fixed(value: float, places: int) -> str:
    return f"{value:,.{min(places, 7)}f}"
