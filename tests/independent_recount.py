"""A recount of a released CSV that shares no code with fedanon, and the sentences it denies.

`recount` reads nothing but the released file and, where people are to be counted, a list that names the person of every
row. `contradictions` holds what a command or a report printed, and its JSON conclusion, against it.
"""

from __future__ import annotations

import csv
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
#: a share is printed with one decimal
ROUNDING = 0.000_500_001


@dataclass(frozen=True)
class Recount:
    """What a released file holds.

    Parameters
    ----------
    rows, published, suppressed : rows of the file, and how many of them publish anything or nothing.
    records : rows of every class.
    people : distinct persons of every class; None where nobody said who is who.
    n_people : distinct persons of the published rows.
    unique_rows : published rows whose cells, all columns together, no other row has.
    unique_to_a_person : published rows whose cells no other person has.
    homogeneous : of every sensitive column, the classes in which it has one value.
    exposed_records, exposed_people : of every sensitive column, who is in these classes.
    """

    rows: int
    published: int
    suppressed: int
    records: tuple[int, ...]
    people: tuple[int, ...] | None
    n_people: int | None
    unique_rows: int
    unique_to_a_person: int | None
    homogeneous: dict[str, int] = field(default_factory=dict)
    exposed_records: dict[str, int] = field(default_factory=dict)
    exposed_people: dict[str, int] | None = None

    @property
    def classes(self) -> int:
        return len(self.records)

    @property
    def smallest_in_records(self) -> int:
        return min(self.records, default=0)

    @property
    def smallest_in_people(self) -> int | None:
        return None if self.people is None else min(self.people, default=0)

    def smallest(self, unit: str) -> int | None:
        """The smallest class in people or records; None where it is not known."""
        return self.smallest_in_people if unit == "people" else self.smallest_in_records

    def unique(self, unit: str) -> int | None:
        return self.unique_to_a_person if unit == "people" else self.unique_rows

    def exposed(self, unit: str) -> dict[str, int] | None:
        return self.exposed_people if unit == "people" else self.exposed_records


@dataclass(frozen=True)
class Declared:
    """What the schema in a manifest says of the columns."""

    roles: dict[str, str]
    numeric: frozenset[str]
    missing: frozenset[str]
    person_id: str | None
    one_row_per_person: bool | None


def declared(manifest: Path) -> Declared:
    """Read the schema text of a manifest."""
    schema = tomllib.loads(json.loads(manifest.read_text(encoding="utf-8"))["schema"])
    columns = schema["attributes"]
    return Declared(
        roles={name: entry.get("role", "undecided") for name, entry in columns.items()},
        numeric=frozenset(name for name, entry in columns.items() if entry.get("type") == "numeric"),
        missing=frozenset(schema.get("missing_values", [])),
        person_id=schema.get("person_id"),
        one_row_per_person=schema.get("one_row_per_person"),
    )


def recount(
    path: Path,
    roles: Mapping[str, str],
    persons: Sequence[Hashable] | None,
    separator: str = ",",
    *,
    numeric: Collection[str] = (),
    missing: Collection[str] = (),
) -> Recount:
    """Count the classes of a released CSV.

    Parameters
    ----------
    path : the released file.
    roles : of the columns, by name.
    persons : who each row belongs to, in the order of the file; None where that is not known.
    separator : of the file.
    numeric : columns whose values are compared as numbers.
    missing : texts that mean missing, all of them one value.
    """
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = list(csv.reader(file, delimiter=separator))
    names = [_plain(name) for name in head]
    rows = [dict(zip(names, map(_plain, line), strict=True)) for line in lines if line or len(names) == 1]
    quasi = [name for name in names if roles[name] == "quasi_identifying"]
    others = [name for name in names if name not in quasi]
    shown = [i for i, row in enumerate(rows) if not _hidden(row, quasi, others)]
    classes = defaultdict(list)
    whole = defaultdict(list)
    for i in shown:
        classes[tuple(rows[i][name] for name in quasi)].append(i)
        whole[tuple(rows[i][name] for name in names)].append(i)
    who = None if persons is None else list(persons)

    def value(name: str, text: str) -> Hashable:
        if text == "" or text in missing:
            return None
        return float(text) if name in numeric else text

    alike = {
        name: [group for group in classes.values() if len({value(name, rows[i][name]) for i in group}) == 1]
        for name in names
        if roles[name] == "sensitive"
    }
    return Recount(
        rows=len(rows),
        published=len(shown),
        suppressed=len(rows) - len(shown),
        records=tuple(len(group) for group in classes.values()),
        people=None if who is None else tuple(len({who[i] for i in group}) for group in classes.values()),
        n_people=None if who is None else len({who[i] for i in shown}),
        unique_rows=sum(len(group) == 1 for group in whole.values()),
        unique_to_a_person=None
        if who is None
        else sum(len(group) for group in whole.values() if len({who[i] for i in group}) == 1),
        homogeneous={name: len(groups) for name, groups in alike.items()},
        exposed_records={name: sum(map(len, groups)) for name, groups in alike.items()},
        exposed_people=None
        if who is None
        else {name: len({who[i] for group in groups for i in group}) for name, groups in alike.items()},
    )


def _plain(text: str) -> str:
    """The text without the apostrophe that keeps a spreadsheet from running it."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(FORMULAS) else text


def _hidden(row: Mapping[str, str], quasi: Sequence[str], others: Sequence[str]) -> bool:
    return bool(quasi) and all(row[name] == "*" for name in quasi) and all(row[name] == "" for name in others)


# ---- what the recount denies ---------------------------------------------------------------------

_NUMBER = r"([\d,]+)"
_SHARE = r"(> )?(\d+(?:\.\d+)?) %"
_SHARED = re.compile(rf"shared by at least {_NUMBER} (people|records)")
_SMALLEST = re.compile(rf"smallest class,? in (people|records)[^0-9]{{0,40}}?{_NUMBER}", re.IGNORECASE)
_SMALLEST_OF = re.compile(
    rf"smallest (?:class|equivalence class)[^.0-9]{{0,30}}?{_NUMBER} (people|records)", re.IGNORECASE
)
_UNIQUE = re.compile(rf"{_SHARE} of the published (rows|records) \({_NUMBER} of {_NUMBER}\) (are unique|hold values)")
#: what follows the name of a column, which may stand in quotes or apart from the colon
_EXPOSED = rf"[`'”]? ?: {_SHARE} of the published (people|records) \({_NUMBER} of {_NUMBER}\) are in a class"
_IN_CLASSES = (
    rf"[`'”]? ?: in {_NUMBER} classes all have the same value[^;]*; {_SHARE} of the (people|records) are in one"
)
_COUNTED = re.compile(rf"(?<![\w.]){_NUMBER} (people|rows|records|equivalence classes|suppressed rows)\b")
#: words before a sentence that say it is not claimed
_NOT_CLAIMED = re.compile(r"(?:Not kept|Not checked)[^.]*$")
#: signs after a promise in a table: kept, broken, left open
_VERDICT = re.compile(r"[✓✗?] ")


def contradictions(texts: str, conclusion: Mapping[str, Any], recount: Recount) -> list[str]:
    """The sentences in ``texts`` and the entries of ``conclusion`` that claim what the recount denies.

    Parameters
    ----------
    texts : what a command printed in English, or the words of a report's page.
    conclusion : the JSON field of that name.
    recount : of the released file.
    """
    return [*_in_texts(" ".join(texts.split()), recount), *_in_conclusion(conclusion, recount)]


def _in_texts(text: str, recount: Recount) -> Iterator[str]:
    for found in _SHARED.finditer(text):
        k, unit = _number(found[1]), found[2]
        if not _is_claimed(text, found):
            continue
        smallest = recount.smallest(unit)
        if smallest is None:
            yield f"{found[0]!r}: people are not known"
        elif recount.classes and smallest < k:
            yield f"{found[0]!r}: the smallest class has {smallest} {unit}"
    for found in _SMALLEST.finditer(text):
        yield from _deny(found[0], _number(found[2]), recount.smallest(found[1]))
    for found in _SMALLEST_OF.finditer(text):
        yield from _deny(found[0], _number(found[1]), recount.smallest(found[2]))
    for found in _UNIQUE.finditer(text):
        unit = "records" if found[6] == "are unique" else "people"
        yield from _deny(found[0], _number(found[4]), recount.unique(unit))
        yield from _deny(found[0], _number(found[5]), recount.published)
        yield from _deny_share(found[0], found, 1, _number(found[4]), _number(found[5]))
    for name in recount.homogeneous:
        yield from _of_column(name, text, recount)
    for found in _COUNTED.finditer(text):
        yield from _deny_count(text, found, recount)


def _of_column(name: str, text: str, recount: Recount) -> Iterator[str]:
    """What is said of the classes in which a sensitive column has one value."""
    before = rf"(?<!\w){re.escape(name)}"
    for found in re.finditer(before + _EXPOSED, text):
        count, everyone = _number(found[4]), _number(found[5])
        yield from _deny_exposed(found[0], name, found[3], count, everyone, recount)
        yield from _deny_share(found[0], found, 1, count, everyone)
    for found in re.finditer(before + _IN_CLASSES, text):
        yield from _deny(found[0], _number(found[1]), recount.homogeneous[name])
        of, known = _everyone(recount, found[4]), recount.exposed(found[4])
        if known is None or of is None:
            yield f"{found[0]!r}: people are not known"
        else:
            yield from _deny_share(found[0], found, 2, known[name], of)


def _deny_count(text: str, found: re.Match[str], recount: Recount) -> Iterator[str]:
    """A number of people is denied where people are not known, and any number that is larger than there are."""
    count, what = _number(found[1]), found[2]
    if re.search(r"at least $", text[: found.start()]):
        return  # a promise, looked at above
    if what == "people" and recount.n_people is None:
        yield f"{found[0]!r}: people are not known"
    limit = {
        "people": recount.n_people if recount.n_people is None else recount.n_people + recount.suppressed,
        "rows": recount.rows,
        "records": recount.rows,
        "equivalence classes": recount.classes,
        "suppressed rows": recount.suppressed,
    }[what]
    exact = what in ("equivalence classes", "suppressed rows")
    if limit is not None and (count != limit if exact else count > limit):
        yield f"{found[0]!r}: there are {limit}"


def _in_conclusion(conclusion: Mapping[str, Any], recount: Recount) -> Iterator[str]:
    measured = conclusion.get("measured", {})
    if "rows" not in measured:
        return
    unit = measured["counted"]
    if unit == "people" and recount.people is None:
        yield "people are counted, but they are not known"
        return
    yield from _deny("rows", measured["rows"], recount.rows)
    yield from _deny("published_rows", measured["published_rows"], recount.published)
    yield from _deny("smallest_class", measured["smallest_class"], recount.smallest(unit))
    yield from _deny("unique_rows", measured["unique_rows"], recount.unique(unit))
    for name, told in measured["homogeneous"].items():
        yield from _deny(f"homogeneous classes of {name}", told["classes"], recount.homogeneous.get(name, 0))
        yield from _deny_exposed(f"homogeneous {name}", name, unit, told["count"], told["of"], recount)
    if set(measured["homogeneous"]) != set(recount.homogeneous):
        yield "not every sensitive column was looked at"
    yield from _in_findings(conclusion, recount, unit)


def _in_findings(conclusion: Mapping[str, Any], recount: Recount, unit: str) -> Iterator[str]:
    findings = defaultdict(list)
    for finding in conclusion["findings"]:
        findings[finding["kind"]].append(finding)
    for finding in findings["jointly_unique"]:
        yield from _deny("jointly_unique", finding["count"], recount.unique(unit))
    exposed = recount.exposed(unit) or {}
    told = Counter(finding["columns"][0] for finding in findings["homogeneous"])
    hidden = [name for name, count in exposed.items() if count and not told[name]]
    if hidden:
        yield f"nothing is said of the homogeneous classes of {', '.join(hidden)}"
    if conclusion["level"] == "kept" and conclusion["findings"]:
        yield "kept, with findings"
    if conclusion["level"] == "kept" and unit == "records":
        yield "kept, though records were counted"


def _deny_exposed(where: str, column: str, unit: str, count: int, of: int, recount: Recount) -> Iterator[str]:
    known = recount.exposed(unit)
    if known is None:
        yield f"{where!r}: people are not known"
        return
    yield from _deny(where, count, known.get(column))
    yield from _deny(where, of, _everyone(recount, unit))


def _everyone(recount: Recount, unit: str) -> int | None:
    return recount.n_people if unit == "people" else recount.published


def _deny(where: str, told: float, known: float | None) -> Iterator[str]:
    if told != known:
        yield f"{where!r}: it is {'not known' if known is None else known}"


def _deny_share(where: str, found: re.Match[str], group: int, count: int, of: int) -> Iterator[str]:
    """A share in percent, at two groups of a match: the sign that it is more, and the number."""
    told, share = float(found[group + 1]) / 100, count / of if of else 0.0
    wrong = not told < share < 1 if found[group] else abs(told - share) > ROUNDING
    if wrong or (told == 1 and share < 1 and not found[group]):
        yield f"{where!r}: the share is {share:.4%}"


def _is_claimed(text: str, found: re.Match[str]) -> bool:
    """Whether a promise is said to hold: not where it is called broken or open, before it or in the next cells."""
    if _NOT_CLAIMED.search(text[max(0, found.start() - 200) : found.start()]):
        return False
    after = _VERDICT.search(text, found.end(), found.end() + 80)
    return after is None or after[0] == "✓ "


def _number(text: str) -> int:
    return int(text.replace(",", ""))
