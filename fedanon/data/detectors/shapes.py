"""What the values of a column look like: numbers with check digits, addresses, dates, names, free text.

A test looks at the distinct values and answers for the column: one value may pass by chance, but hardly most of them.
It may miss a column that a person would know, so an empty answer proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from stdnum import iban, luhn
from stdnum.br import cnpj, cpf
from stdnum.cl import rut
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.it import codicefiscale
from stdnum.mx import curp
from stdnum.pt import cc, nif

from fedanon.data.detectors.headers import KINDS, Kind, fold, given_names
from fedanon.data.schema import Role

#: share of the values that must have the shape
MOST = 0.5
#: distinct values that are looked at, and among them those that are tried first
LOOKED_AT, TRIED_FIRST = 1_000, 60
#: digits alone pass a test of one check digit by chance one time in ten
ENOUGH_DIGITS = 5
_KIND = {kind.letter: kind for kind in KINDS}


@dataclass(frozen=True)
class Shape:
    """A shape of values.

    Parameters
    ----------
    title : for people.
    kind : of identifiers, by HIPAA Safe Harbor's list.
    role : of a column that has it.
    pattern : matches a value as a whole.
    check : what else must hold of the value, such as its check digits.
    """

    title: str
    kind: Kind
    role: Role
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None

    def fits(self, value: str) -> bool:
        """Return whether a value has the shape."""
        return self.pattern.fullmatch(value) is not None and (self.check is None or self.check(value))


def _shape(title: str, letter: str, pattern: str, check: Callable[[str], bool] | None = None) -> Shape:
    role = Role.QUASI_IDENTIFYING if letter in "BC" and title != "coordinates" else Role.IDENTIFYING
    return Shape(title, _KIND[letter], role, re.compile(pattern, re.IGNORECASE | re.ASCII), check)


def _is_health_card(value: str) -> bool:
    """Return whether a value is the number of a Brazilian health card (CNS), whose weighted sum is a multiple of 11."""
    digits = [int(c) for c in value if c.isdigit()]
    return digits[0] in (1, 2, 7, 8, 9) and sum(d * (15 - i) for i, d in enumerate(digits)) % 11 == 0


def _is_luhn(value: str) -> bool:
    return luhn.is_valid(re.sub(r"\D", "", value)) and len(set(value)) > 2


_CLOCK = r"(?:[T ,]+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[ap]m)?(?: ?(?:z|utc|[+-]\d{2}:?\d{2}))?)?"
#: in three languages
_MONTH = r"(?:jan|feb|fev|mar|apr|abr|may|mai|jun|jul|aug|ago|sep|set|oct|out|nov|dec|dez|ene|dic)[a-z]*\.?"
_WRITTEN_DATE = re.compile(
    rf"\d{{1,2}}[ -]?(?:de )?{_MONTH}[ -]?(?:de )?\d{{2,4}}{_CLOCK}|{_MONTH} ?\d{{1,2}},? \d{{2,4}}"
    r"|(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:\d{4}(?:\d{2})?)?"
    r"|(?:19|20)\d{2}[-/](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])/(?:19|20)\d{2}",
    re.IGNORECASE | re.ASCII,
)
_DATE_OF_NUMBERS = re.compile(
    rf"(\d{{4}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_CLOCK}|(\d{{1,2}})([-/.])(\d{{1,2}})\6(\d{{2}}|\d{{4}}){_CLOCK}",
    re.IGNORECASE | re.ASCII,
)


def _is_date(value: str) -> bool:
    """Return whether a value is a date, however written; of numbers, one has to be a month and one a day."""
    found = _DATE_OF_NUMBERS.fullmatch(value)
    if found is None:
        return _WRITTEN_DATE.fullmatch(value) is not None
    year, _, month, day, first, _, second, last = found.groups()
    small = (int(month), int(day)) if year else (int(first), int(second))
    full = int(year or last)
    return 1 <= min(small) <= 12 and 1 <= max(small) <= 31 and (full < 100 or 1800 <= full < 2200)


#: tried in this order; where several fit equally well, the first is taken
SHAPES = (
    _shape("e-mail addresses", "F", r"[^@\s]+@[^@\s]+\.[a-z]{2,}"),
    _shape("web addresses", "N", r"(?:https?://|ftp://|www\.)\S+"),
    _shape("UUIDs", "R", r"(?:urn:uuid:|\w+/)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    _shape("MAC addresses", "M", r"(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}"),
    _shape(
        "IP addresses",
        "O",
        r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"
        r"|(?=.*::)(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}",
    ),
    _shape("coordinates", "B", r"-?\d{1,3}\.\d{4,}[,; ] ?-?\d{1,3}\.\d{4,}"),
    _shape("Brazilian CPF numbers", "G", r"\d{3}\.\d{3}\.\d{3}-\d{2}|\d{11}", cpf.is_valid),
    _shape("Brazilian CPF numbers", "G", r"\d{3}\.\d{3}\.\d{3}-\d{2}"),
    _shape("Brazilian CNPJ numbers", "G", r"\d{2}\.?\d{3}\.?\d{3}/?\d{4}-?\d{2}", cnpj.is_valid),
    _shape("Brazilian health card numbers", "H", r"\d{15}|\d{3} \d{4} \d{4} \d{4}", _is_health_card),
    _shape("US social security numbers", "G", r"\d{3}-\d{2}-\d{4}"),
    _shape("UK national insurance numbers", "G", r"[a-ceghj-prstw-z]{2} ?\d{2} ?\d{2} ?\d{2} ?[a-d]"),
    _shape("NHS numbers", "H", r"\d{3}[ -]?\d{3}[ -]?\d{4}", nhs.is_valid),
    _shape(
        "Spanish identity numbers",
        "G",
        r"\d{8}-?[a-z]|[xyz]-?\d{7}-?[a-z]",
        lambda v: dni.is_valid(v) or nie.is_valid(v),
    ),
    _shape("Portuguese identity numbers", "G", r"\d{8} ?\d ?[a-z]{2}\d", cc.is_valid),
    _shape("Portuguese tax numbers", "G", r"[1-35689]\d{2} ?\d{3} ?\d{3}", nif.is_valid),
    _shape("French social security numbers", "G", r"[12] ?\d{2} ?\d{2} ?\d[\dab] ?\d{3} ?\d{3} ?\d{2}", nir.is_valid),
    _shape("German tax numbers", "G", r"\d{2} ?\d{3} ?\d{3} ?\d{3}", idnr.is_valid),
    _shape("Italian tax codes", "G", r"[a-z]{6}\d{2}[a-z]\d{2}[a-z]\d{3}[a-z]", codicefiscale.is_valid),
    _shape("Mexican CURP numbers", "G", r"[a-z]{4}\d{6}[hm][a-z]{5}[a-z0-9]\d", curp.is_valid),
    _shape("Chilean RUT numbers", "G", r"\d{1,2}\.?\d{3}\.?\d{3}-[\dk]", rut.is_valid),
    _shape("IBAN account numbers", "J", r"[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){3,7}(?: ?[a-z0-9]{1,3})?", iban.is_valid),
    _shape("payment card numbers", "J", r"[2-6]\d{3}([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{13}", _is_luhn),
    _shape("IMEI numbers", "M", r"[0138]\d{14}", _is_luhn),
    _shape("vehicle numbers", "L", r"(?=.*\d)(?=.*[a-z])[a-hj-npr-z0-9]{17}"),
    _shape(
        "telephone numbers",
        "D",
        r"(?:\+\d{1,3}[ .-]?\(?\d{1,4}\)?|\(\d{2,4}\)|\d{2,3}[ .-])[ .-]?\d{3,5}[ .-]?\d{3,4}|\+\d{9,14}",
    ),
    _shape("postal codes", "B", r"\d{5}-\d{3,4}|[a-z]{1,2}\d[a-z\d]? ?\d[a-z]{2}|[a-z]\d[a-z] ?\d[a-z]\d"),
    _shape("dates", "C", r"[a-z0-9/.,:+ -]{6,40}", _is_date),
    _shape("times of day", "C", r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[ap]m)?"),
)

_SHORT_NUMBER = r"[+-]?\d{1,7}(?:[.,]\d*)?|[+-]?\d{1,3}(?:[.,]\d{3})*[.,]\d*|[+-]?\d*\.\d+(?:e[+-]?\d+)?"


def shape_of(cells: pd.Series[str]) -> Shape | None:
    """Return the shape that most values have, if any; ``cells`` are the values that are not missing, as text."""
    values = distinct_values(cells)
    if values.empty or values.str.fullmatch(_SHORT_NUMBER).all():
        return None
    first = values.iloc[:TRIED_FIRST]
    best, share = None, MOST
    for shape in SHAPES:
        if first.map(shape.fits).mean() <= MOST / 2:
            continue
        fitting = values[values.map(shape.fits)]
        by_chance = shape.check is not None and fitting.str.isdigit().all() and len(fitting) < ENOUGH_DIGITS
        if not by_chance and len(fitting) / len(values) > share:
            best, share = shape, len(fitting) / len(values)
    return best


def distinct_values(cells: pd.Series[str]) -> pd.Series[str]:
    """Return the distinct values, as many as are looked at, without blanks around them."""
    return pd.Series(cells.unique()[:LOOKED_AT], dtype=object).astype(str).str.strip()


# ---- texts ---------------------------------------------------------------------------------------

#: words of a value that make it a sentence
SENTENCE = 5
#: share of the distinct values that hold a frequent given name
ENOUGH_NAMES = 0.2
_NAME = re.compile(r"(?:[a-z][a-z'.-]*,? ?){1,7}", re.IGNORECASE)


def are_names(cells: pd.Series[str]) -> bool:
    """Return whether the values look like names of people: letters alone, and frequent given names among them."""
    values = distinct_values(cells).map(fold)
    if len(values) < 5 or values.map(lambda value: _NAME.fullmatch(value) is not None).mean() < 0.9:
        return False
    known = values.map(lambda value: not given_names().isdisjoint(re.findall(r"[a-z]+", value.lower())))
    return bool(known.mean() >= ENOUGH_NAMES)


def are_sentences(cells: pd.Series[str]) -> bool:
    """Return whether the values are free text: long and mostly distinct."""
    values = distinct_values(cells)
    return bool(
        len(values) >= min(MOST * len(cells), LOOKED_AT)
        and values.str.count(r"\S+").mean() >= SENTENCE
        and values.str.contains(r"[^\W\d_]{3}").mean() > MOST
    )


def are_numbers(cells: pd.Series[str]) -> bool:
    """Return whether all values are numbers, with a point or a comma before the decimals; '007' is a code."""
    values = cells.str.strip()
    plain = values.str.fullmatch(r"[+-]?(?:0|[1-9]\d*)(?:[.,]\d*)?(?:e[+-]?\d+)?|[+-]?[.,]\d+", case=False)
    grouped = values.str.fullmatch(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?|[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
    return bool((plain | grouped).all())


def are_whole_numbers(cells: pd.Series[str]) -> bool:
    """Return whether all values are whole numbers, however they are written: 3 and 3.0."""
    return bool(cells.str.strip().str.fullmatch(r"[+-]?\d+(?:[.,]0*)?").all())
