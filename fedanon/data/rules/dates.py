"""Dates: any strptime format, counted in days; intervals are written as dates, or as a whole month, quarter or year."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from fedanon.data.rules.base import ANYTHING, Bounds, Domain, Ends, RuleError
from fedanon.types import FloatArray

DateLevel = Literal["day", "month", "quarter", "year", "decade"]
LEVELS: tuple[DateLevel, ...] = get_args(DateLevel)

_UNIT = re.compile(
    r"(?P<day>\d{4}-\d{2}-\d{2})|(?P<quarter>\d{4}-Q[1-4])|(?P<month>\d{4}-\d{2})|(?P<decade>\d{3}0s)|(?P<year>\d{4})",
    re.ASCII,
)
#: to see what a format tells of a date
_SAMPLE = datetime(2019, 11, 23, 21, 43)
_PAIR = re.compile(r"\[(\d{4}-\d{2}-\d{2}), (\d{4}-\d{2}-\d{2})\]", re.ASCII)


@dataclass(frozen=True)
class DateRule:
    """Dates as days; build it with formats that :meth:`datetime.strptime` takes.

    Parameters
    ----------
    formats : tried in this order; a time of day is left out.
    level : the finest that is published.
    shift_days : how far the dates of a person are moved at most, all by the same number of days, with a key.
    """

    formats: tuple[str, ...] = ("%Y-%m-%d",)
    level: DateLevel = "day"
    shift_days: int = 0

    def __post_init__(self) -> None:
        for form in self.formats:
            check_format(form)
        if not self.formats:
            raise RuleError("A date needs a format, such as %d/%m/%Y.")
        if self.level not in LEVELS:
            raise RuleError(f"The level of a date must be one of: {', '.join(LEVELS)}.")
        if self.shift_days and self.level != "day":
            raise RuleError("Dates that are shifted by days are published by days; leave out level or shift_days.")
        if self.shift_days and read_date(_SAMPLE.strftime(self.formats[0]), self.formats[:1]) != _SAMPLE.toordinal():
            raise RuleError(f"The date format {self.formats[0]!r} does not say the day, by which dates are shifted.")

    @property
    def recodes(self) -> bool:
        """Whether less than the day is published."""
        return self.level != "day"

    @property
    def whole(self) -> bool:
        """Days are whole."""
        return True

    def read(self, texts: Iterable[str]) -> FloatArray:
        """Days since the year 1; NaN for what no format reads.

        Months and the like are read as such only where no cell is a date: a column is read before it is published, or
        after.
        """
        cells = list(texts)
        days = np.array([read_date(text, self.formats) for text in cells], dtype=np.float64)
        if not self.recodes or not np.isnan(days).all():
            return days
        published = [self.parse(text, ANYTHING) for text in cells]
        return np.array([np.nan if ends is None else ends[0] for ends in published], dtype=np.float64)

    def misfit(self) -> str:
        """Without any of the texts."""
        return f"that are no dates in the format {' or '.join(self.formats)}"

    def clip(self, values: FloatArray, domain: Domain) -> FloatArray:
        """The days as they are, as long as there are dates for them: the range of a date has no open end."""
        return np.clip(values, date.min.toordinal(), date.max.toordinal())

    def settle(self, values: FloatArray, domain: Domain) -> FloatArray:
        """The days as they are."""
        return values

    def grain(self, values: FloatArray, domain: Domain) -> Ends | None:
        """The month, quarter, year or decade of each day, as far as it lies in the range."""
        return None if self.level == "day" else _units(values, self.level, domain)

    def steps(self, values: FloatArray, domain: Domain) -> Iterator[Ends]:
        """The calendar from the level above the finest up to decades."""
        for level in LEVELS[LEVELS.index(self.level) + 1 :]:
            yield _units(values, level, domain)

    def write(self, ends: Bounds, domain: Domain) -> str:
        """'2024-01-31', '2024-01', '2024-Q1', '2024', '2020s', or '[2024-01-03, 2024-02-17]' for what is no unit."""
        first, last = (day_of(end) for end in ends)
        if first == last:
            return first.isoformat()
        for level in LEVELS[1:]:
            if _unit(first, level) == (first, last):
                return _label(first, level)
        return f"[{first.isoformat()}, {last.isoformat()}]"

    def parse(self, text: str, domain: Domain) -> Bounds | None:
        """The days of a text of :meth:`write`."""
        try:
            pair = _PAIR.fullmatch(text)
            if pair is not None:
                first, last = (date.fromisoformat(end) for end in pair.groups())
            else:
                found = _UNIT.fullmatch(text)
                if found is None:
                    return None
                level = next(name for name in LEVELS if found[name])
                first, last = _unit(_first_day(text, level), level)
        except ValueError:
            return None
        bounds = float(first.toordinal()), float(last.toordinal())
        return bounds if bounds[0] <= bounds[1] else None

    def write_day(self, day: float) -> str:
        """A single date in the first format, as the cells of a table are written."""
        return day_of(day).strftime(self.formats[0])

    def to_dict(self) -> dict[str, Any]:
        """As a schema file writes it."""
        document: dict[str, Any] = {"format": self.formats[0] if len(self.formats) == 1 else list(self.formats)}
        document |= {"level": self.level} if self.level != "day" else {}
        return document | ({"shift_days": self.shift_days} if self.shift_days else {})


def check_format(form: str) -> None:
    """Raise RuleError unless a format says which year and month a date lies in."""
    try:
        again = datetime.strptime(_SAMPLE.strftime(form), form)
    except (ValueError, re.error):
        raise RuleError(f"The date format {form!r} is none that strptime takes.") from None
    if (again.year, again.month) != (_SAMPLE.year, _SAMPLE.month):
        raise RuleError(f"The date format {form!r} does not say year and month.")


@lru_cache(maxsize=200_000)
def read_date(text: str, formats: tuple[str, ...]) -> float:
    """The day of a text by the first format that reads it; NaN if none does."""
    for form in formats:
        try:
            return float(datetime.strptime(text.strip(), form).toordinal())
        except ValueError:
            continue
    return np.nan


def day_of(value: float) -> date:
    """The date of a number of days."""
    return date.fromordinal(round(value))


def _units(values: FloatArray, level: DateLevel, domain: Domain) -> Ends:
    days, at = np.unique(np.nan_to_num(values, nan=domain.low), return_inverse=True)
    ends = np.array([[end.toordinal() for end in _unit(day_of(day), level)] for day in days], dtype=np.float64)
    first, last = np.clip(ends.reshape(-1, 2), domain.low, domain.high)[at].T
    absent = np.isnan(values)
    return np.where(absent, np.nan, first), np.where(absent, np.nan, last)


def _unit(day: date, level: DateLevel) -> tuple[date, date]:
    """First and last day of the unit a day lies in."""
    if level == "day":
        return day, day
    if level in ("year", "decade"):
        years = 10 if level == "decade" else 1
        first = max(day.year - day.year % years, 1)
        return date(first, 1, 1), date(min(day.year - day.year % years + years - 1, 9999), 12, 31)
    months = 3 if level == "quarter" else 1
    start = (day.month - 1) // months * months + 1
    return date(day.year, start, 1), _end_of_month(day.year, start + months - 1)


def _end_of_month(year: int, month: int) -> date:
    return date(year, 12, 31) if month == 12 else date(year, month + 1, 1) - timedelta(days=1)


def _label(day: date, level: DateLevel) -> str:
    if level == "month":
        return f"{day.year:04}-{day.month:02}"
    if level == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return f"{day.year // 10:03}0s" if level == "decade" else f"{day.year:04}"


def _first_day(label: str, level: DateLevel) -> date:
    """A day of the unit with this label."""
    if level == "day":
        return date.fromisoformat(label)
    year = int(label[:4])
    month = int(label[5:]) if level == "month" else 3 * int(label[6]) if level == "quarter" else 1
    return date(max(year, 1), month, 1)
