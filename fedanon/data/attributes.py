"""Attributes: what one column is (numbers, values of a taxonomy, text), read from a schema and written to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from fedanon.data.hierarchy import Hierarchy, read_arx_hierarchy
from fedanon.data.rules import (
    BandRule,
    CodeRule,
    DateRule,
    Domain,
    IcdRule,
    NumberRule,
    PrefixRule,
    RuleError,
    bind_codes,
    take_only,
)
from fedanon.data.rules.prefixes import atc_rule
from fedanon.errors import SchemaError


class Role(StrEnum):
    """The role of a column, in ARX's terms; nothing is published while one is undecided."""

    IDENTIFYING = "identifying"
    QUASI_IDENTIFYING = "quasi_identifying"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Numeric:
    """A numeric column with its declared range (both ends included), which only a quasi-identifier has to state.

    ``hierarchy`` is an optional taxonomy of the values as text, for methods that treat the column as categorical;
    ``rule`` says how cells become numbers, if they are not written as such, and how fine they are published.
    """

    name: str
    role: Role
    low: float
    high: float
    integer: bool = False
    hierarchy: Hierarchy | None = None
    rule: NumberRule | None = None

    @property
    def has_range(self) -> bool:
        """Whether a range is declared."""
        return math.isfinite(self.high - self.low)

    @property
    def width(self) -> float:
        """Length of the declared range; 1 for a range of one point, so that dividing by it is safe."""
        return (self.high - self.low) or 1.0

    @property
    def domain(self) -> Domain:
        """The declared range, as rules take it."""
        return Domain(self.low, self.high, self.integer)

    @property
    def unit(self) -> str:
        """What its numbers are counted in, if the schema says so."""
        return self.rule.unit if isinstance(self.rule, BandRule) else ""


@dataclass(frozen=True)
class Categorical:
    """A categorical column with the taxonomy of its values.

    Where a ``rule`` says what its values are, the taxonomy holds those at hand: in a schema one for each part of the
    outline, in a table those that occur. Build one with :meth:`by_rule`.
    """

    name: str
    role: Role
    hierarchy: Hierarchy
    rule: CodeRule | None = None

    @classmethod
    def by_rule(cls, name: str, role: Role, rule: CodeRule) -> Categorical:
        """A column whose values a rule knows."""
        paths = [rule.path(sample) for sample in rule.samples]
        tree = bind_codes(rule, [path for path in paths if path is not None], name=name)
        return cls(name, role, tree, rule)


@dataclass(frozen=True)
class FreeText:
    """A column that is carried along or dropped, with no domain declared.

    ``pseudonym`` publishes a keyed pseudonym for every value of the column that names a person.
    """

    name: str
    role: Role
    pseudonym: bool = False


Attribute = Numeric | Categorical | FreeText


def type_name(attribute: Attribute) -> str:
    """The type as a schema file names it."""
    if isinstance(attribute, FreeText):
        return "text"
    if isinstance(attribute, Categorical):
        return "categorical" if attribute.rule is None else attribute.rule.type_name
    return "date" if is_date(attribute) else "numeric"


def is_date(attribute: Attribute) -> bool:
    """Whether the cells of a column are dates, be it that ages are made of them."""
    rule = attribute.rule if isinstance(attribute, Numeric) else None
    return isinstance(rule, DateRule) or (isinstance(rule, BandRule) and rule.age_at is not None)


# ---- reading -------------------------------------------------------------------------------------

_EVERY = ("role", "type")
_LISTED = (*_EVERY, "range", "integer", "values", "taxonomy", "hierarchy", "root")
_BANDED = ("bands", "round_to", "top", "bottom")
_LEVELED = (*_EVERY, "level", "distinct_at")
#: the keys an attribute may have, by its type
KEYS: Mapping[str, tuple[str, ...]] = {
    "numeric": (*_LISTED, *_BANDED, "unit"),
    "categorical": _LISTED,
    "text": (*_LISTED, "pseudonym"),
    "date": (*_EVERY, "format", "range", "level", "shift_days", "age_at", *_BANDED),
    "code": (*_LEVELED, "form", "prefixes"),
    "icd10": _LEVELED,
    "icd9": _LEVELED,
    "atc": _LEVELED,
}
#: ages, where the schema does not say more
AGES = (0.0, 120.0)


def read_attribute(name: str, entry: Any, folder: Path | None) -> Attribute:
    """The attribute that an entry of a schema declares; ``folder`` is where hierarchy files are looked for."""
    if not isinstance(entry, Mapping):
        raise SchemaError(f"The attribute {name!r} must be a table with a role and a type.")
    kind = entry.get("type", "text")
    if kind not in KEYS:
        raise SchemaError(f"The type of {name!r} must be one of: {', '.join(KEYS)}.")
    take_only(entry, KEYS[kind], f"The attribute {name!r}")
    try:
        role = Role(entry.get("role", "undecided"))
    except ValueError:
        raise SchemaError(f"The role of {name!r} must be one of: {', '.join(Role)}.") from None
    try:
        return _typed(kind, name, role, entry, folder)
    except RuleError as error:
        raise SchemaError(f"The column {name!r}: {error}") from None


def _typed(kind: str, name: str, role: Role, entry: Mapping[str, Any], folder: Path | None) -> Attribute:
    if kind == "numeric":
        return _numeric(name, role, entry, folder)
    if kind == "date":
        return _date(name, role, entry)
    if kind == "categorical":
        hierarchy = _hierarchy(name, entry, folder)
        if hierarchy is None:
            raise SchemaError(f"The categorical column {name!r} needs values, a taxonomy or a hierarchy.")
        return Categorical(name, role, hierarchy)
    if kind == "text":
        return FreeText(name, role, _flag(entry, "pseudonym"))
    return Categorical.by_rule(name, role, _code_rule(kind, entry))


def _code_rule(kind: str, entry: Mapping[str, Any]) -> CodeRule:
    levels: dict[str, Any] = {
        key: str(entry[key]) if isinstance(entry[key], int) else _text(entry, key)
        for key in ("level", "distinct_at")
        if key in entry
    }
    if kind in ("icd10", "icd9"):
        return IcdRule(kind, **levels)  # type: ignore[arg-type]
    if kind == "atc":
        return atc_rule(**levels)
    prefixes = entry.get("prefixes")
    if not isinstance(prefixes, list) or not all(_is_number(n) and n == int(n) for n in prefixes):
        raise RuleError("a code needs its prefixes, a list of whole numbers such as [2, 5].")
    return PrefixRule(_text(entry, "form"), tuple(int(n) for n in prefixes), **levels)


def _numeric(name: str, role: Role, entry: Mapping[str, Any], folder: Path | None) -> Numeric:
    integer, hierarchy, rule = bool(entry.get("integer", False)), _hierarchy(name, entry, folder), _bands(entry)
    bounds = entry.get("range")
    if bounds is None and role is not Role.QUASI_IDENTIFYING and not (rule is not None and rule.recodes):
        return Numeric(name, role, -math.inf, math.inf, integer, hierarchy, rule)
    low, high = _range(name, bounds)
    if rule is not None:
        rule.check_range(low, high)
    return Numeric(name, role, low, high, integer, hierarchy, rule)


def _range(name: str, bounds: Any) -> tuple[float, float]:
    sound = isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_number, bounds)) and bounds[0] <= bounds[1]
    if not sound:
        raise SchemaError(f"The numeric column {name!r} needs a range of two numbers, the lower first.")
    return float(bounds[0]), float(bounds[1])


def _bands(entry: Mapping[str, Any], **more: Any) -> BandRule | None:
    """The rule of a numeric column, if its entry declares one."""
    given: dict[str, Any] = dict(more)
    bands = entry.get("bands")
    if isinstance(bands, list) and bands and all(map(_is_number, bands)):
        given["cuts"] = tuple(float(cut) for cut in bands)
    elif bands is not None:
        if not _is_number(bands):
            raise RuleError("bands must be a width, or a list of numbers at which bands begin.")
        given["width"] = float(bands)
    for key in ("round_to", "top", "bottom"):
        if key in entry:
            if not _is_number(entry[key]):
                raise RuleError(f"{key} must be a number.")
            given[key] = float(entry[key])
    if "unit" in entry:
        given["unit"] = _text(entry, "unit")
    return BandRule(**given) if given else None


def _date(name: str, role: Role, entry: Mapping[str, Any]) -> Numeric:
    formats = entry.get("format", "%Y-%m-%d")
    formats = tuple(formats) if isinstance(formats, list) else (formats,)
    if not formats or not all(isinstance(form, str) for form in formats):
        raise RuleError("format must be a text such as %d/%m/%Y, or a list of them.")
    if "age_at" in entry:
        take_only(entry, {*_EVERY, "format", "age_at", "range", *_BANDED}, f"The date {name!r} with age_at")
        low, high = _range(name, entry["range"]) if "range" in entry else AGES
        age = _bands(entry, formats=formats, age_at=_day(entry["age_at"]))
        assert age is not None
        age.check_range(low, high)
        return Numeric(name, role, low, high, integer=True, rule=age)
    take_only(entry, {*KEYS["date"]} - set(_BANDED), f"The date {name!r} without age_at")
    shift = entry.get("shift_days", 0)
    if not isinstance(shift, int) or isinstance(shift, bool) or not 0 <= shift <= 36500:
        raise RuleError("shift_days must be a whole number of days, at most 36500.")
    rule = DateRule(formats, _text(entry, "level") if "level" in entry else "day", shift)  # type: ignore[arg-type]
    bounds = entry.get("range")
    if bounds is None and role is not Role.QUASI_IDENTIFYING and not rule.recodes:
        return Numeric(name, role, -math.inf, math.inf, integer=True, rule=rule)
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise RuleError('a date needs a range of two dates, the earlier first: ["2020-01-01", "2029-12-31"].')
    first, last = (float(_day(bound).toordinal()) for bound in bounds)
    if first > last:
        raise RuleError("the range of a date begins with the earlier one.")
    # published dates may lie outside what is declared of the true ones by as much as they are shifted
    return Numeric(name, role, first - shift, last + shift, integer=True, rule=rule)


def _day(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise RuleError("a date in a schema is written as 2024-12-31.") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value:
        raise RuleError(f"{key} must be a text.")
    return value


def _flag(entry: Mapping[str, Any], key: str) -> bool:
    value = entry.get(key, False)
    if not isinstance(value, bool):
        raise RuleError(f"{key} must be true or false.")
    return value


def _hierarchy(name: str, entry: Mapping[str, Any], folder: Path | None) -> Hierarchy | None:
    given = [key for key in ("values", "taxonomy", "hierarchy") if key in entry]
    if len(given) > 1:
        raise SchemaError(f"The column {name!r} declares {' and '.join(given)}; give one of them.")
    if not given:
        return None
    if given == ["hierarchy"]:
        return read_arx_hierarchy(_inside(folder, entry["hierarchy"], name), name=name)
    return Hierarchy.from_nested(entry[given[0]], root=str(entry.get("root", "*")), name=name)


def _inside(folder: Path | None, file: Any, name: str) -> Path:
    """The path of a hierarchy file, which must lie in the schema's folder."""
    if folder is None or not isinstance(file, str):
        raise SchemaError(f"The hierarchy of {name!r} must be the name of a file beside the schema.")
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise SchemaError(f"The hierarchy file of {name!r} lies outside the schema's folder.")
    return path


# ---- writing -------------------------------------------------------------------------------------


def hide_values(attribute: Attribute) -> Attribute:
    """The attribute without values, unless it is a quasi-identifier; a rule stays, since it names none.

    A categorical column with a list of values becomes text, since it cannot be declared without them.
    """
    if attribute.role is Role.QUASI_IDENTIFYING or isinstance(attribute, FreeText):
        return attribute
    if isinstance(attribute, Numeric):
        rule = attribute.rule
        ends = (attribute.low, attribute.high) if rule is not None and rule.recodes else (-math.inf, math.inf)
        return Numeric(attribute.name, attribute.role, *ends, attribute.integer, rule=rule)
    if attribute.rule is not None:
        return Categorical.by_rule(attribute.name, attribute.role, attribute.rule)
    return FreeText(attribute.name, attribute.role)


def attribute_entry(attribute: Attribute) -> dict[str, Any]:
    """The entry :func:`read_attribute` reads; taxonomies are written out in full."""
    entry: dict[str, Any] = {"role": str(attribute.role), "type": type_name(attribute)}
    if isinstance(attribute, FreeText):
        return entry | ({"pseudonym": True} if attribute.pseudonym else {})
    if attribute.rule is not None:
        entry |= attribute.rule.to_dict()
    if isinstance(attribute, Numeric):
        entry |= _written_range(attribute)
        entry |= {} if is_date(attribute) else {"integer": attribute.integer}
    if attribute.hierarchy is not None and not (isinstance(attribute, Categorical) and attribute.rule is not None):
        entry["root"] = attribute.hierarchy.labels[-1]
        entry["taxonomy"] = attribute.hierarchy.to_nested()
    return entry


def _written_range(attribute: Numeric) -> dict[str, Any]:
    if not attribute.has_range:
        return {}
    rule = attribute.rule
    if isinstance(rule, DateRule):
        ends = (attribute.low + rule.shift_days, attribute.high - rule.shift_days)
        return {"range": [date.fromordinal(round(end)).isoformat() for end in ends]}
    # as floats, so that a range of whole numbers built in Python has the hash of the same one in a file
    return {"range": [float(attribute.low), float(attribute.high)]}
