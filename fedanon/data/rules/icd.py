"""Diagnoses by ICD-10 and ICD-9-CM: code below category, block and chapter, by the ranges of the classifications.

A code has its place by its category alone (the first three characters), so codes that came later, national ones, and
codes with or without the dot all fit. Categories that no block lists lie in a block of their own between its neighbors,
so that every category has a block, and every block's label holds what it says.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.resources import files
from itertools import product
from string import ascii_uppercase, digits
from typing import Any, Literal, NamedTuple, get_args

from fedanon.data.hierarchy import ROOT, Hierarchy
from fedanon.data.rules.base import RuleError

Edition = Literal["icd10", "icd9"]
IcdLevel = Literal["code", "category", "block", "chapter"]
LEVELS: tuple[IcdLevel, ...] = get_args(IcdLevel)
#: behind a category, as the WHO writes one whose codes are left open
OPEN = ".-"

_ICD10 = re.compile(r"([A-Z][0-9][0-9A-Z])(?:\.?([0-9A-Z]{1,4}))?[+*]?")
_ICD9 = re.compile(r"([0-9]{1,3}|V[0-9]{2}|E[0-9]{3})(?:\.([0-9]{1,2}))?|([0-9]{3}|V[0-9]{2}|E[0-9]{3})([0-9]{1,2})")
#: categories of ICD-10-CM with a letter, and the category whose block they belong to
_NATIONAL = {"C4A": "C44", "C7A": "C75", "C7B": "C79", "D3A": "D36", "M1A": "M10", "O9A": "O99", "Z3A": "Z39"}

#: where the categories with a letter begin, behind the numbers
_ICD9_STARTS = {"E": 1000, "V": 2000}


class _Range(NamedTuple):
    """Categories from one to another, as numbers."""

    first: int
    last: int
    label: str


class _Table(NamedTuple):
    """Chapters and blocks in the order of the categories, without gaps."""

    chapters: tuple[_Range, ...]
    blocks: tuple[_Range, ...]

    @property
    def size(self) -> int:
        """Number of categories."""
        return sum(chapter.last - chapter.first + 1 for chapter in self.chapters)


@dataclass(frozen=True)
class IcdRule:
    """Diagnoses of an edition.

    Parameters
    ----------
    edition : 'icd10', or 'icd9' for ICD-9-CM.
    level : the finest that is published.
    distinct_at : the level at which privacy models tell values apart.
    """

    edition: Edition
    level: IcdLevel = "code"
    distinct_at: IcdLevel = "code"

    def __post_init__(self) -> None:
        if self.level not in LEVELS or self.distinct_at not in LEVELS:
            raise RuleError(f"The levels of a diagnosis are: {', '.join(LEVELS)}.")

    @property
    def type_name(self) -> str:
        """The edition."""
        return self.edition

    def path(self, text: str) -> tuple[str, ...] | None:
        """Code, category, block, chapter; from the finest level that is published."""
        found = self._split(text)
        if found is None:
            return None
        category, rest = found
        chapter, block = self._place(category)
        written = f"{category}.{rest}" if rest else category
        full = (written, category + OPEN, block.label, chapter.label)
        return (*full[LEVELS.index(self.level) :], ROOT)

    def _split(self, text: str) -> tuple[str, str] | None:
        """Category and what follows it."""
        cleaned = text.strip().upper()
        if self.edition == "icd10":
            found = _ICD10.fullmatch(cleaned)
            return None if found is None else (found[1], found[2] or "")
        found = _ICD9.fullmatch(cleaned)
        if found is None:
            return None
        category, rest = (found[1], found[2]) if found[1] else (found[3], found[4])
        return category.zfill(3), rest or ""

    def _place(self, category: str) -> tuple[_Range, _Range]:
        table, number = _table(self.edition), _number(category, self.edition)
        return _holding(table.chapters, number), _holding(table.blocks, number)

    def path_through(self, label: str) -> tuple[str, ...] | None:
        """For a category, block or chapter the path of its first code."""
        table = _table(self.edition)
        known = {one.label: one.first for one in (*table.blocks, *table.chapters)}
        first = _category(known[label], self.edition) if label in known else label.removesuffix(OPEN)
        path = self.path(first)
        return path if path is not None and label in path else None

    def share(self, label: str) -> float:
        """Share of the categories of the edition; a category counts as one, a code as nothing."""
        if label == ROOT:
            return 1.0
        table = _table(self.edition)
        sizes = _sizes(self.edition)
        if label in sizes:
            return sizes[label] / table.size
        return 1 / table.size if label.endswith(OPEN) else 0.0

    def upper(self, label: str) -> str:
        """The chapter."""
        path = self.path_through(label)
        return ROOT if path is None or label == ROOT else path[-2]

    def at_level(self, text: str, level: str) -> str | None:
        """The label of a diagnosis at a level."""
        path = IcdRule(self.edition).path(text)
        return None if path is None else path[LEVELS.index(level)]

    def published_at(self, level: str) -> IcdRule:
        """The rule with another finest level."""
        return replace(self, level=level)  # type: ignore[arg-type]

    @cached_property
    def outline(self) -> Hierarchy:
        """The chapters."""
        return Hierarchy.flat([chapter.label for chapter in _table(self.edition).chapters])

    @property
    def samples(self) -> list[str]:
        """The first category of each chapter."""
        return [_category(chapter.first, self.edition) for chapter in _table(self.edition).chapters]

    def list_paths(self, most: int) -> list[tuple[str, ...]]:
        """All categories, national ones with a letter too; blocks or chapters where these are more than ``most``."""
        categories = _all_categories(self.edition)
        found: set[tuple[str, ...]] = set()
        for level in LEVELS[max(LEVELS.index(self.level), 1) :]:
            found = {path for each in categories if (path := self.published_at(level).path(each)) is not None}
            if len(found) <= most:
                break
        return sorted(found)

    def to_dict(self) -> dict[str, Any]:
        """As a schema file writes it."""
        stated = {"level": self.level, "distinct_at": self.distinct_at}
        return {key: value for key, value in stated.items() if value != "code"}


# ---- the tables ----------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _table(edition: Edition) -> _Table:
    """Read the ranges: one line per chapter, its number and range, then its blocks."""
    lines = (files("fedanon.data.rules") / f"{edition}.txt").read_text(encoding="utf-8").splitlines()
    chapters: list[_Range] = []
    blocks: list[_Range] = []
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        numeral, whole, *parts = line.split()
        chapter = _range(whole, f"{numeral}: {whole}", edition)
        chapters.append(chapter)
        blocks += _without_gaps(chapter, [_range(part, part, edition) for part in parts], edition)
    return _Table(tuple(sorted(chapters)), tuple(sorted(blocks)))


@lru_cache(maxsize=2)
def _sizes(edition: Edition) -> dict[str, int]:
    table = _table(edition)
    return {one.label: one.last - one.first + 1 for one in (*table.chapters, *table.blocks)}


def _without_gaps(chapter: _Range, blocks: list[_Range], edition: Edition) -> list[_Range]:
    found, begin = [], chapter.first
    for block in [*blocks, _Range(chapter.last + 1, chapter.last + 1, "")]:
        if block.first > begin:
            label = f"{_category(begin, edition)}-{_category(block.first - 1, edition)}"
            found.append(_Range(begin, block.first - 1, label))
        found += [block] if block.label else []
        begin = block.last + 1
    return found


def _all_categories(edition: Edition) -> list[str]:
    """Every category that a code can have, whether or not a chapter lists it."""
    if edition == "icd10":
        return ["".join(signs) for signs in product(ascii_uppercase, digits, digits + ascii_uppercase)]
    return [*(f"{n:03}" for n in range(1000)), *(f"E{n:03}" for n in range(1000)), *(f"V{n:02}" for n in range(100))]


def _range(text: str, label: str, edition: Edition) -> _Range:
    first, last = text.split("-")
    return _Range(_number(first, edition), _number(last, edition), label)


def _holding(ranges: tuple[_Range, ...], number: int) -> _Range:
    return ranges[bisect_right(ranges, number, key=lambda one: one.first) - 1]


def _number(category: str, edition: Edition) -> int:
    """The place of a category among all of its edition."""
    if edition == "icd10":
        category = _NATIONAL.get(category, category)
        # another national category with a letter lies behind the ten whose first digits it has
        tens, ones = category[1], category[2] if category[2].isdigit() else "9"
        return (ord(category[0]) - ord("A")) * 100 + int(tens + ones)
    return int(category) if category.isdigit() else _ICD9_STARTS[category[0]] + int(category[1:])


def _category(number: int, edition: Edition) -> str:
    """The inverse of :func:`_number`."""
    if edition == "icd10":
        return f"{chr(ord('A') + number // 100)}{number % 100:02}"
    kind, rest = divmod(number, 1000)
    return (f"{rest:03}", f"E{rest:03}", f"V{rest:02}")[kind]
