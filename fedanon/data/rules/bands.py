"""Numbers with a unit, in bands, rounded, with open ends; and ages, which are numbers made from dates of birth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from fedanon.data.hierarchy import ROOT
from fedanon.data.rules.base import ANYTHING, Bounds, Domain, Ends, RuleError
from fedanon.data.rules.dates import check_format, day_of, read_date
from fedanon.types import FloatArray

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_INTERVAL = re.compile(
    rf"\[(?P<low>{_NUMBER}), (?P<high>{_NUMBER})\]|(?P<point>{_NUMBER})|(?P<from>{_NUMBER})\+"
    rf"|<(?P<below>{_NUMBER})|<=(?P<until>{_NUMBER})",
    re.ASCII,
)
_PLAIN = re.compile(_NUMBER, re.ASCII)
#: what is written between a number and its unit
_BLANKS = " \t\u00a0"


@dataclass(frozen=True)
class BandRule:
    """Numbers that are published no finer than declared.

    Parameters
    ----------
    cuts : where bands begin, in order; a value below the first is in a band of its own.
    width : of bands that begin at its multiples; 0 for none.
    round_to : values are rounded to a multiple when they are read; 0 for not.
    top : values from here on are published as one, such as '90+', however large.
    bottom : values below it are published as one, such as '<18', however small.
    unit : may stand behind a number; any other unit is refused.
    formats, age_at : cells are dates of birth, and the number is the age in full years on that day.
    """

    cuts: tuple[float, ...] = ()
    width: float = 0.0
    round_to: float = 0.0
    top: float | None = None
    bottom: float | None = None
    unit: str = ""
    formats: tuple[str, ...] = ()
    age_at: date | None = None

    def __post_init__(self) -> None:
        for form in self.formats:
            check_format(form)
        if sum([bool(self.cuts), self.width > 0, self.round_to > 0]) > 1:
            raise RuleError("Of bands and round_to give one.")
        if list(self.cuts) != sorted(set(self.cuts)):
            raise RuleError("The cut points of bands must grow.")
        if self.width < 0 or self.round_to < 0:
            raise RuleError("bands and round_to must be above 0.")
        if None not in (self.top, self.bottom) and not self.bottom < self.top:  # type: ignore[operator]
            raise RuleError("bottom must lie below top.")

    @property
    def recodes(self) -> bool:
        """Whether anything but a unit is declared."""
        return self.age_at is not None or bool(self.round_to) or self._is_banded

    @property
    def whole(self) -> bool:
        """Any number can be written."""
        return False

    @property
    def _is_banded(self) -> bool:
        return bool(self.cuts) or self.width > 0 or self.top is not None or self.bottom is not None

    def check_range(self, low: float, high: float) -> None:
        """Raise RuleError unless the coded ends lie in the declared range."""
        inside = [end for end in (self.top, self.bottom) if end is not None and low < end <= high]
        if len(inside) < sum(end is not None for end in (self.top, self.bottom)):
            raise RuleError("top and bottom must lie in the range, above its lower end.")

    # ---- reading --------------------------------------------------------------------------------

    def read(self, texts: Iterable[str]) -> FloatArray:
        """The numbers, ages where birth dates are declared; NaN for what is none, or has another unit.

        Ages are read as such only where no cell is a date: a column is read before it is published, or after.
        """
        cells = list(texts)
        values = np.array([self._number(text) for text in cells], dtype=np.float64)
        if self.age_at is not None:
            ages = np.array([_age(read_date(text, self.formats), self.age_at) for text in cells], dtype=np.float64)
            return values if np.isnan(ages).all() else ages
        return values

    def _number(self, text: str) -> float:
        published = self.parse(text, ANYTHING) if self.recodes else None
        if published is not None:
            low, high = published
            # what lies below the bottom: any number of that band
            return low if np.isfinite(low) else high - 1
        number = text.strip().removesuffix(self.unit).rstrip(_BLANKS)
        return float(number) if _PLAIN.fullmatch(number) else np.nan

    def misfit(self) -> str:
        """Without any of the texts."""
        if self.age_at is not None:
            return f"that are no dates of birth until {self.age_at} in the format {' or '.join(self.formats)}"
        return f"that are no numbers in {self.unit}" if self.unit else "that are not numbers"

    def clip(self, values: FloatArray, domain: Domain) -> FloatArray:
        """Values beyond an end that is coded lie at it."""
        values = values if self.top is None else np.minimum(values, domain.high)
        return values if self.bottom is None else np.maximum(values, domain.low)

    def settle(self, values: FloatArray, domain: Domain) -> FloatArray:
        """Multiples of what values are rounded to; rounding does not lead out of the range."""
        if not self.round_to:
            return values
        # halves go up, as people round; the second rounding takes off what the multiplication adds
        multiples = np.round(np.floor(values / self.round_to + 0.5) * self.round_to, 12)
        return np.clip(multiples, domain.low, domain.high)

    # ---- cells ----------------------------------------------------------------------------------

    def grain(self, values: FloatArray, domain: Domain) -> Ends | None:
        """The band of each number."""
        if not self._is_banded:
            return None
        return self._bands(values, self.width, domain)

    def _bands(self, values: FloatArray, width: float, domain: Domain) -> Ends:
        """Cuts, or multiples of a width; beyond bottom and top everything is one band."""
        low, high, integer = domain
        edges = self._edges(width, low, high)
        edges = np.unique(np.ceil(edges)) if integer else edges
        if not self.cuts and not width:
            first, last = values.copy(), values.copy()
        else:
            at = np.searchsorted(edges, values, side="right") - 1
            step = 1.0 if integer else 0.0
            first = edges[np.clip(at, 0, len(edges) - 1)]
            last = np.append(edges[1:] - step, high)[np.clip(at, 0, len(edges) - 1)]
            # the last band, or that of a real number, may end beyond what it can hold
            last = np.maximum(first, last)
        if self.bottom is not None:
            below = values < self.bottom
            first = np.where(below, low, np.maximum(first, self.bottom))
            last = np.where(below, _before(self.bottom, integer=integer), last)
        if self.top is not None:
            above = values >= self.top
            first = np.where(above, self.top, first)
            last = np.where(above, high, np.minimum(last, _before(self.top, integer=integer)))
        absent = np.isnan(values)
        return np.where(absent, np.nan, first), np.where(absent, np.nan, last)

    def _edges(self, width: float, low: float, high: float) -> FloatArray:
        """Where the bands begin, the first at the lower end of the range."""
        if width:
            starts = np.arange(np.floor(low / width) + 1, np.ceil(high / width) + 1) * width
        else:
            starts = np.array(self.cuts, dtype=np.float64)
        inside = starts[(starts > low) & (starts <= high)]
        return np.concatenate([[low], inside])

    def steps(self, values: FloatArray, domain: Domain) -> Iterator[Ends]:
        """Bands of twice the width, four times, and so on; cut points have no wider levels."""
        low, high, integer = domain
        width = self.width or self.round_to or (0.0 if self.cuts else (high - low) / 16)
        if integer and width:
            width = max(np.ceil(width), 1.0)
        while width and width * 2 < high - low:
            width *= 2
            yield self._bands(values, width, domain)

    def write(self, ends: Bounds, domain: Domain) -> str:
        """'37', '[18, 39]', '90+' where the top is coded, '<18' where the bottom is ('<=18' unless whole numbers)."""
        (first, last), (low, high, integer) = ends, domain
        until_top, from_bottom = self.top is not None and last >= high, self.bottom is not None and first <= low
        if until_top:
            return ROOT if from_bottom else f"{_text(first)}+"
        if from_bottom:
            return f"<{_text(last + 1)}" if integer else f"<={_text(last)}"
        return _text(first) if first == last else f"[{_text(first)}, {_text(last)}]"

    def parse(self, text: str, domain: Domain) -> Bounds | None:
        """The numbers of a text of :meth:`write`."""
        found = _INTERVAL.fullmatch(text)
        if found is None:
            return None
        if found["from"] is not None:
            bounds = float(found["from"]), domain.high
        elif found["below"] is not None:
            bounds = domain.low, float(found["below"]) - 1
        elif found["until"] is not None:
            bounds = domain.low, float(found["until"])
        elif found["point"] is not None:
            bounds = float(found["point"]), float(found["point"])
        else:
            bounds = float(found["low"]), float(found["high"])
        return bounds if bounds[0] <= bounds[1] else None

    def to_dict(self) -> dict[str, Any]:
        """As a schema file writes it."""
        document: dict[str, Any] = {}
        if self.age_at is not None:
            document["format"] = self.formats[0] if len(self.formats) == 1 else list(self.formats)
            document["age_at"] = self.age_at.isoformat()
        if self.cuts or self.width:
            document["bands"] = list(self.cuts) or self.width
        stated = {"round_to": self.round_to or None, "top": self.top, "bottom": self.bottom, "unit": self.unit or None}
        return document | {key: value for key, value in stated.items() if value is not None}


def _before(value: float, *, integer: bool) -> float:
    return value - 1 if integer else value


def _age(born: float, reference: date) -> float:
    """Full years on the day of reference; NaN where the birth is unknown or later."""
    if np.isnan(born) or born > reference.toordinal():
        return np.nan
    day = day_of(born)
    return float(reference.year - day.year - ((reference.month, reference.day) < (day.month, day.day)))


def _text(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))
