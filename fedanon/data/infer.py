"""A first schema for a table nobody has described yet: roles by column name, types and ranges by the data.

It is only a proposal. What a column means, and who may know it, is for a person to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd

from fedanon.data.detectors.columns import ENOUGH_ROWS, SHARE, Judgment, judge_column, same_within
from fedanon.data.detectors.headers import KINDS, names_postal_codes, names_sex
from fedanon.data.detectors.shapes import are_numbers, are_whole_numbers
from fedanon.data.hierarchy import ROOT, Hierarchy
from fedanon.data.infer_rules import is_ambiguous, propose_rule
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import texts
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.types import IndexArray

MISSING_TOKENS = ("?", "NA", "N/A", "NaN", "nan", "null", "NULL")
MAX_CATEGORIES = 50
#: columns that may show which rows are one person's
COMPARED = 20

PROPOSAL = """\
A proposal, made from the names and the values of the columns. Before it is used, a person who knows the data has to
check every role and its reason, decide about what is undecided, widen the ranges to what may occur, and put a rule or
a taxonomy in place of long lists of values."""
NO_PERSON = """\
No column says whose row it is, so records are counted, not people. Add one_row_per_person = true if no person has two
rows, or person_id = "..." if a column names the person."""


@dataclass(frozen=True)
class Proposal:
    """What is proposed for a column, and why.

    Parameters
    ----------
    attribute : its declaration.
    reason : a clause about the column, without any of its values.
    is_person : whether it is proposed as ``person_id``.
    judgment : what the name and the values of the column say, which the reason puts in words.
    """

    attribute: Attribute
    reason: str
    is_person: bool = False
    judgment: Judgment | None = None

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.attribute.name

    @property
    def role(self) -> Role:
        """The proposed role."""
        return self.attribute.role


def infer_columns(frame: pd.DataFrame) -> list[Proposal]:
    """Propose a role for every column of ``frame``, with its reason; see :func:`infer_schema`."""
    _refuse_empty(frame)
    known = _known_cells(frame, missing_tokens(frame))
    judged = {name: judge_column(name, cells, rows=len(frame)) for name, cells in known.items()}
    judged |= _judge_repeated(judged, known, len(frame))
    person = _choose_person(judged, known, len(frame))
    found = []
    for name, judgment in judged.items():
        attribute, is_person = _attribute(name, judgment.role, known[name]), name == person
        reason = _reason(judgment, is_person) + _doubt(attribute, known[name])
        found.append(Proposal(attribute, reason, is_person, judgment))
    return found


def infer_schema(frame: pd.DataFrame, *, name: str) -> Schema:
    """Propose a schema for ``frame``.

    Parameters
    ----------
    frame : the data, best as :func:`fedanon.io.csv.read_frame` gives them.
    name : of the schema.
    """
    return schema_of(infer_columns(frame), name=name, missing_values=missing_tokens(frame))


def infer_attribute(frame: pd.DataFrame, name: str, role: Role) -> Attribute:
    """Propose the type and the range of a column whose role is known."""
    return _attribute(name, role, _known_cells(frame[[name]], missing_tokens(frame[[name]]))[name])


def with_target(proposals: Sequence[Proposal], frame: pd.DataFrame, target: str) -> list[Proposal]:
    """The proposals with the column that somebody chose to predict: sensitive, since it is published as it is."""
    chosen = next((proposal for proposal in proposals if proposal.name == target), None)
    if chosen is None:
        raise ConfigError(f"The table has no column {target!r} to predict.")
    if chosen.role is Role.IDENTIFYING:
        raise ConfigError(f"The column {target!r} cannot be the target: it looks identifying ({chosen.reason}).")
    reason = f"the target, published as it is; else {chosen.role}: {chosen.reason}"
    declared = replace(chosen, attribute=infer_attribute(frame, target, Role.SENSITIVE), reason=reason)
    return [declared if proposal is chosen else proposal for proposal in proposals]


def schema_of(
    proposals: Sequence[Proposal], *, name: str, missing_values: tuple[str, ...] = (), target: str | None = None
) -> Schema:
    """Return the schema that the proposals for all columns make."""
    person = next((proposal.name for proposal in proposals if proposal.is_person), None)
    attributes = tuple(proposal.attribute for proposal in proposals)
    return Schema(attributes, name=name, person_id=person, missing_values=missing_values, target=target)


def proposed_toml(
    frame: pd.DataFrame, *, name: str, proposals: Sequence[Proposal] | None = None, target: str | None = None
) -> str:
    """Return the text of a schema file for ``frame``, in which every column has its reason above it.

    ``proposals`` are those of :func:`infer_columns`, where they are known; ``target`` is the column to predict.
    """
    proposals = infer_columns(frame) if proposals is None else proposals
    if target is not None:
        proposals = with_target(proposals, frame, target)
    schema = schema_of(proposals, name=name, missing_values=missing_tokens(frame), target=target)
    comment = PROPOSAL if schema.person_id is not None else f"{PROPOSAL}\n\n{NO_PERSON}"
    return schema_toml(schema, comment=comment, reasons={proposal.name: proposal.reason for proposal in proposals})


def missing_tokens(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the texts that usually mean missing and occur in ``frame``."""
    columns = [texts(frame[column]) for column in frame]
    return tuple(token for token in MISSING_TOKENS if any((column == token).any() for column in columns))


def numeric_schema(frame: pd.DataFrame, qi: Literal["all"] | Sequence[str], *, name: str = "table") -> Schema:
    """A schema for a table of numbers: the columns ``qi`` are quasi-identifying, with the data's range.

    The role of the others is undecided, so that nothing is published before somebody has decided about them.

    Parameters
    ----------
    frame : the data.
    qi : names of the quasi-identifiers, or 'all'.
    name : of the schema.
    """
    _refuse_empty(frame)
    names = [str(column) for column in frame]
    chosen = names if isinstance(qi, str) else list(qi)
    absent = [column for column in chosen if column not in names]
    if absent:
        raise ConfigError(f"The data have no column named: {', '.join(absent)}.")
    known = {str(column): texts(frame[column]).dropna() for column in frame}
    attributes = []
    for column in names:
        numeric = _numeric(column, Role.QUASI_IDENTIFYING if column in chosen else Role.UNDECIDED, known[column])
        if numeric is None and column in chosen:
            raise SchemaError(f"The column {column!r} is not numeric; a schema file is needed to use it.")
        attributes.append(numeric or FreeText(column, Role.UNDECIDED))
    return Schema(tuple(attributes), name=name)


# ---- people --------------------------------------------------------------------------------------


def _judge_repeated(
    judged: Mapping[str, Judgment], known: Mapping[str, pd.Series[Any]], rows: int
) -> dict[str, Judgment]:
    """Judge columns of unknown codes again that repeat, and whose rows of one code share what else is known of them."""
    found = {}
    for name, judgment in judged.items():
        cells = known[name]
        if judgment.role is not Role.UNDECIDED or len(cells) < rows or not _may_number(cells):
            continue
        same = same_within(_codes(cells), _comparable(name, known, rows))
        if sum(same.values()) >= 2:
            reason = (
                f"it numbers rows that belong together ({cells.nunique():,} values on {rows:,} rows, "
                f"{sum(same.values())} columns are the same within one)"
            )
            found[name] = Judgment(Role.IDENTIFYING, reason, "repeats", KINDS[-1], "anything")
    return found


def _may_number(cells: pd.Series[Any]) -> bool:
    """Whether the values are codes, many of them, and none of them frequent."""
    sizes = cells.value_counts()
    many = max(ENOUGH_ROWS, SHARE * len(cells)) <= len(sizes) <= len(cells) / 1.5 and sizes.max() <= SHARE * len(cells)
    return bool(many) and (are_whole_numbers(cells) or not are_numbers(cells))


def _comparable(name: str, known: Mapping[str, pd.Series[Any]], rows: int) -> dict[str, IndexArray]:
    """The columns with few values and none missing, as codes."""
    few = [other for other, cells in known.items() if other != name and len(cells) == rows and cells.nunique() <= 12]
    return {other: _codes(known[other]) for other in few[:COMPARED]}


def _codes(cells: pd.Series[Any]) -> IndexArray:
    return np.asarray(pd.factorize(cells)[0], dtype=np.int64)


def _choose_person(judged: Mapping[str, Judgment], known: Mapping[str, pd.Series[Any]], rows: int) -> str | None:
    """The column that says whose row it is: named so, or an identifier that repeats and agrees with the sex of people.

    Where several do, the one with the fewest values, since it counts the fewest people.
    """
    complete = [n for n, judgment in judged.items() if judgment.role is Role.IDENTIFYING and len(known[n]) == rows]
    named = [name for name in complete if judged[name].whose == "person"]
    repeated = [
        name
        for name in complete
        if judged[name].whose in ("anything", "perhaps_person")
        and known[name].nunique() < rows
        and _may_be_people(name, known, rows, proof=judged[name].sign == "repeats")
    ]
    return min(named or repeated, key=lambda name: int(known[name].nunique()), default=None)


def _may_be_people(name: str, known: Mapping[str, pd.Series[Any]], rows: int, *, proof: bool) -> bool:
    """Whether all rows of one number have one sex; ``proof`` is what a table without a column of it does not give."""
    sexes = {n: codes for n, codes in _comparable(name, known, rows).items() if names_sex(n)}
    same = same_within(_codes(known[name]), sexes).values()
    return all(same) and (bool(same) or not proof)


def _reason(judgment: Judgment, is_person: bool) -> str:
    if is_person and judgment.whose != "person":
        return f"{judgment.reason}; it repeats, so it is proposed as person_id: confirm that it names a person"
    return judgment.reason


def _doubt(attribute: Attribute, cells: pd.Series[Any]) -> str:
    return "; confirm which number is the day and which the month" if is_ambiguous(attribute, cells) else ""


# ---- one column ----------------------------------------------------------------------------------


def _known_cells(frame: pd.DataFrame, tokens: Sequence[str]) -> dict[str, pd.Series[Any]]:
    columns = {str(column): texts(frame[column]) for column in frame}
    return {name: cells[~cells.isin(tokens)].dropna() for name, cells in columns.items()}


def _attribute(name: str, role: Role, cells: pd.Series[Any]) -> Attribute:
    """``cells`` are the values that are not missing, as text."""
    if role is Role.IDENTIFYING or cells.empty:
        return FreeText(name, role if role is not Role.QUASI_IDENTIFYING else Role.UNDECIDED)
    ruled = propose_rule(name, role, cells)
    if ruled is not None:
        return ruled
    if names_postal_codes(name):
        return Categorical(name, role, _taxonomy(cells))
    numeric = _numeric(name, role, cells)
    if numeric is not None:
        return numeric
    if cells.nunique() <= MAX_CATEGORIES or role is Role.QUASI_IDENTIFYING:
        return Categorical(name, role, _taxonomy(cells))
    return FreeText(name, role)


def _numeric(name: str, role: Role, cells: pd.Series[Any]) -> Numeric | None:
    """The column as numbers with the range of the data, unless a cell is none; '007' is a code."""
    if cells.empty or cells.str.match(r"[+-]?0\d").any():
        return None
    values = pd.to_numeric(cells.drop_duplicates(), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(values).all():
        return None
    return Numeric(name, role, float(values.min()), float(values.max()), bool((values == np.floor(values)).all()))


def _taxonomy(cells: pd.Series[Any]) -> Hierarchy:
    """The values, side by side."""
    values = sorted({str(cell) for cell in cells.unique()})
    return Hierarchy.flat(values, root=ROOT if ROOT not in values else "(any)")


def _refuse_empty(frame: pd.DataFrame) -> None:
    if frame.empty:
        raise DataError("The table has no rows; there is nothing to make a schema from.")


# ---- Taxonomies made by rule ---------------------------------------------------------------------
#
# The label of an interval states its bounds, the upper one excluded: "[20, 25)" holds 20 to 24.


MAX_LEAVES = 10**6
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


# ---- numbers -------------------------------------------------------------------------------------


def interval_hierarchy(
    low: float, high: float, widths: Sequence[float] = (5, 10, 20), *, step: float = 1, origin: float = 0
) -> Hierarchy:
    """Numbers low, low + step, .. high as leaves, below ever wider half-open intervals.

    Parameters
    ----------
    low, high : the first and the last leaf.
    widths : of the intervals, level by level; each must be a multiple of the one before.
    step : distance of the leaves: 1 for whole numbers, 0.1 for one decimal.
    origin : a number at which intervals of every width begin.

    Examples
    --------
    >>> interval_hierarchy(17, 90).paths()[3]
    ['20', '[20, 25)', '[20, 30)', '[20, 40)', '*']
    """
    start, stop, pace, zero = (_decimal(value) for value in (low, high, step, origin))
    sizes = [_decimal(width) for width in widths]
    if pace <= 0 or stop < start:
        raise ConfigError("An interval hierarchy needs low <= high and a step above 0.")
    if any(size <= 0 or size % pace for size in sizes) or any(b <= a or b % a for a, b in pairwise(sizes)):
        raise ConfigError(
            "The 'widths' parameter of interval_hierarchy must grow, "
            "each a multiple of the step and of the width before it."
        )
    count = int((stop - start) / pace) + 1
    if count > MAX_LEAVES:
        raise ConfigError(f"The interval hierarchy would have {count} leaves; at most {MAX_LEAVES} are made.")
    leaves = [start + i * pace for i in range(count)]
    return Hierarchy.from_paths([[_plain(leaf), *(_bin(leaf, size, zero) for size in sizes), ROOT] for leaf in leaves])


def _decimal(value: float) -> Decimal:
    """The number as written: 0.1 is one tenth."""
    number = Decimal(str(value))
    if not number.is_finite():
        raise ConfigError("The bounds, widths, step and origin of an interval hierarchy must be finite numbers.")
    return number


def _plain(number: Decimal) -> str:
    """Without exponent and without trailing zeros."""
    text = f"{abs(number) if number == 0 else number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _bin(value: Decimal, size: Decimal, origin: Decimal) -> str:
    lower = ((value - origin) // size) * size + origin
    if lower > value:  # Decimal's division rounds towards zero
        lower -= size
    return f"[{_plain(lower)}, {_plain(lower + size)})"


# ---- codes ---------------------------------------------------------------------------------------


def prefix_hierarchy(values: Iterable[str], *, levels: int | None = None, mask: str = "*") -> Hierarchy:
    """Codes such as postal codes, whose last letters and digits are masked one by one; signs between them stay.

    Parameters
    ----------
    values : the codes, all of the same length.
    levels : how many characters are masked, at most; by default all but the first.
    mask : the sign that stands for a masked character.

    Examples
    --------
    >>> prefix_hierarchy(["36570-000"], levels=3).paths()[0]
    ['36570-000', '36570-00*', '36570-0**', '36570-***', '*']
    """
    codes = sorted({str(value) for value in values})
    if len(mask) != 1 or mask.isalnum():
        raise ConfigError("The 'mask' parameter of prefix_hierarchy must be one sign, such as '*'.")
    if levels is not None and levels < 1:
        raise ConfigError(f"The 'levels' parameter of prefix_hierarchy must be an int >= 1. Got {levels!r} instead.")
    lengths = {len(code) for code in codes}
    if len(lengths) > 1:
        raise SchemaError(f"The codes of a prefix hierarchy have {len(lengths)} different lengths; they must have one.")
    masked = sum(mask in code for code in codes)
    if masked:
        raise SchemaError(f"{masked} codes of a prefix hierarchy hold the masking sign itself.")
    return Hierarchy.from_paths([[*_masked(code, levels, mask), ROOT] for code in codes])


def _masked(code: str, levels: int | None, mask: str) -> list[str]:
    """The code and its ever shorter prefixes; its first character is never masked, as the root does that."""
    places = [i for i, character in enumerate(code) if character.isalnum()][1:]
    path = [code]
    for place in list(reversed(places))[:levels]:
        path.append(path[-1][:place] + mask + path[-1][place + 1 :])
    return path


# ---- dates ---------------------------------------------------------------------------------------


def date_hierarchy(values: Iterable[str]) -> Hierarchy:
    """ISO dates below their month, quarter, year and decade, each labeled with its bounds.

    Examples
    --------
    >>> date_hierarchy(["2020-02-29"]).paths()[0][2]
    '[2020-01-01, 2020-04-01)'
    """
    days = sorted({str(value) for value in values})
    wrong = sum(not _is_iso_date(day) for day in days)
    if wrong:
        raise SchemaError(f"{wrong} values of a date hierarchy are not ISO dates (YYYY-MM-DD).")
    return Hierarchy.from_paths([[day, *_periods(int(day[:4]), int(day[5:7])), ROOT] for day in days])


def _is_iso_date(text: str) -> bool:
    if not _ISO_DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _periods(year: int, month: int) -> list[str]:
    """Month, quarter, year and decade of a day; months are counted from the year 0."""
    this = 12 * year + month - 1
    return [_period(this // length * length, length) for length in (1, 3, 12, 120)]


def _period(start: int, length: int) -> str:
    first, after = (f"{m // 12:04d}-{m % 12 + 1:02d}-01" for m in (start, start + length))
    return f"[{first}, {after})"
