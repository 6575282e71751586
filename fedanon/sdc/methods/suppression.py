"""Suppression of single cells of the key columns: until no record stands out, or where the risk is too high.

Once some cells are '*', there are three counts of "the records like this one" (p and q are published rows):

* *equal*: the rows q = p. k of them is k-anonymity, whatever an attacker knows.
* *fitting*: the people whose own values p covers, '*' covering everything. k of them is (k, 1)-anonymity (Gionis, Mazza
  & Tassa 2008): whoever looks a published row up in a register finds k people. It does not protect a target whose true
  values the attacker knows and whose '*' nobody shares.
* *wildcard*: the rows q that agree with p wherever neither is '*' (sdcMicro's ``freqCalc``). It is never below
  *fitting*. It protects little: a few rows of nearly nothing but '*' agree with everything, so they alone raise the
  counts of all other rows, which stay as they are. It is there to compare with sdcMicro.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import refuse_few_people
from fedanon.data.cells import Cells, Intervals, Nodes, Numbers, is_suppressed
from fedanon.data.groups import Groups
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import listed, parameter
from fedanon.privacy.base import Claim
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.sdc.methods.base import Columns
from fedanon.sdc.methods.keys import ROUNDING, KeyMethod, Keys, keys_of, person_shares, sums
from fedanon.sdc.metrics.sdcmicro_risk import key_risk
from fedanon.sdc.wildcards import SUPPRESSED, consistent_people, sdcmicro_people, wildcard_people
from fedanon.types import AnyArray, BoolArray, FloatArray, IntArray, Rng

if TYPE_CHECKING:
    from fedanon.sdc.methods._wildcard_search import Index


@ANONYMIZERS.register("local_suppression")
@dataclass(frozen=True, kw_only=True)
class LocalSuppression(KeyMethod):
    """Suppresses few cells of the keys, the unimportant columns first, until every record is like k others.

    With ``matching = "wildcard"`` every published row covers the values of k people, with the fewest cells suppressed;
    it then also agrees with k rows as sdcMicro counts them, '*' agreeing with anything. That is weaker than
    k-anonymity, so nothing is claimed, and the release notes how many rows an attacker who knows the true values
    finds. With ``"equal"`` k people share every published row, which is claimed and verified if all quasi-identifiers
    are keys. With ``"sdcmicro"`` every published row agrees with k records as ``freqCalc`` counts them, a missing key
    agreeing with anything too, with no more cells than sdcMicro's ``localSuppression`` (kAnon) needs; it is the
    weakest. See
    :mod:`~fedanon.sdc.methods.suppression`.
    """

    name = "local_suppression"
    truthful = True
    row_order_matters = False

    k: int = parameter(3, help="people each record must resemble, itself included", at_least=2)
    matching: Literal["wildcard", "equal", "sdcmicro"] = parameter(
        "wildcard", help="whether '*' matches any value, or only '*'; sdcmicro: as R's package counts, with fewer cells"
    )
    importance: str = parameter("", help="keys by importance, separated by commas; fewest values first if empty")

    def claim(self) -> Claim | None:
        """Return k-anonymity if it covers all quasi-identifiers."""
        return KAnonymity(k=self.k) if self.matching == "equal" and not self.columns.strip() else None

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Suppress some cells of the keys."""
        refuse_few_people(table, self.k)
        names = self._by_importance(table, current)
        keys = keys_of(table, current, names, missing_agrees=self.matching == "sdcmicro")
        if self.matching == "sdcmicro":
            codes = keys.codes[keys.groups.labels]
            # what is missing stays so
            suppressed = wildcard_suppressions(codes, self.k) & (codes != SUPPRESSED)
        else:
            search = fitting_suppressions if self.matching == "wildcard" else equal_suppressions
            suppressed = search(keys.codes, keys.people, self.k)[keys.groups.labels]
        attributes = {column.name: column.attribute for column in table.columns}
        changed = [(name, rows) for name, rows in zip(names, suppressed.T, strict=True) if rows.any()]
        return {name: suppress(current[name], attributes[name], rows) for name, rows in changed}

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """How many cells were suppressed, and which count of similar records was reached."""
        names = self._by_importance(table, before)
        original, published = keys_of(table, before, names), keys_of(table, after, names)
        cells = {c.name: int(is_suppressed(after[c.name], c.attribute).sum()) for c in table.columns if c.name in names}
        total = f"{sum(cells.values())} suppressed cells ({', '.join(f'{n} {c}' for n, c in cells.items())})."
        return (total, *self._reached(original, published))

    def _reached(self, original: Keys, published: Keys) -> tuple[str, ...]:
        if self.matching == "sdcmicro":
            return (
                f"Every record agrees with at least {self.k} records as sdcMicro counts, '*' agreeing with any value. "
                "This is the weakest of the three counts, and no k-anonymity.",
            )
        if self.matching == "equal":
            return (f"Every combination of the keys is shared by at least {self.k} people.",)
        agreeing = wildcard_people(published.codes, published.people).min()
        suppressed = (published.codes == SUPPRESSED)[published.groups.labels[original.groups.first_rows]]
        known = consistent_people(original.codes, original.people, suppressed).min()
        return (
            f"Every record agrees with at least {int(agreeing)} people, '*' agreeing with any value. This is not "
            f"{self.k}-anonymity: an attacker who knows a person's true keys finds as few as {int(known)}.",
        )

    def _by_importance(self, table: Table, current: Columns) -> list[str]:
        """Return the keys, the most important first."""
        names = self.chosen(table, [column.name for column in table.columns], "quasi-identifiers")
        first = listed(self.importance)
        unknown = [name for name in first if name not in names]
        if unknown:
            raise ConfigError(f"The 'importance' parameter names columns that are not keys: {', '.join(unknown)}.")
        values = {name: Groups.equal_rows(current[name].keys()).count for name in names}
        return sorted(names, key=lambda n: (first.index(n) if n in first else len(first), values[n]))


@ANONYMIZERS.register("threshold_suppression")
@dataclass(frozen=True, kw_only=True)
class ThresholdSuppression(KeyMethod):
    """Suppresses one key of every record whose risk exceeds a threshold (Morais 2022; sdcMicro's ``localSupp``).

    The risk is that of Benedetti and Franconi with '*' and missing keys agreeing with any value, as in sdcMicro, or 1/F
    (Morais 2022, eq. 3.6), where F counts the people whose keys agree with the record's, in the population if the
    schema names a weight. Without weights both are one over the number of records that agree. All quasi-identifiers
    are keys. The suppressed key is the column named, or the one with the most values. The risk is not computed again
    afterwards.
    """

    name = "threshold_suppression"
    truthful = True
    row_order_matters = False

    threshold: float = parameter(0.15, help="suppress where the risk is above this", at_least=0, at_most=1)
    risk: Literal["individual", "naive"] = parameter(
        "individual", help="by Benedetti and Franconi, or one over the people in the population"
    )

    def change(self, table: Table, current: Columns, rng: Rng) -> Columns:
        """Suppress the key of the records at risk."""
        name = self._key(table, current)
        risky = self.risks(table, current) > self.threshold
        attribute = next(column.attribute for column in table.columns if column.name == name)
        return {name: suppress(current[name], attribute, risky)} if risky.any() else {}

    def risks(self, table: Table, current: Columns) -> FloatArray:
        """Return the individual risk of every record."""
        individual = self.risk == "individual"
        keys = keys_of(table, current, [column.name for column in table.columns], missing_agrees=individual)
        if individual:
            return key_risk(keys.codes[keys.groups.labels], table.weights).risk
        people = person_shares(table) * (1.0 if table.weights is None else table.weights)
        counted = wildcard_people(keys.codes, sums(keys.groups.labels, people))
        return np.asarray(1 / counted[keys.groups.labels])

    def remarks(self, table: Table, before: Columns, after: Columns) -> tuple[str, ...]:
        """How many records were, and still are, above the threshold."""
        above = [int((self.risks(table, columns) > self.threshold).sum()) for columns in (before, after)]
        return (f"Records with a risk above {self.threshold:g}: {above[0]} before, {above[1]} after.",)

    def _key(self, table: Table, current: Columns) -> str:
        names = self.chosen(table, [column.name for column in table.columns], "one quasi-identifier")
        if self.columns.strip() and len(names) > 1:
            raise ConfigError(f"The method {self.name!r} suppresses one key; {len(names)} are named.")
        return max(names, key=lambda name: Groups.equal_rows(current[name].keys()).count)


# ---- which cells to suppress: pure functions on codes of key combinations --------------------------


def fitting_suppressions(codes: IntArray, people: FloatArray, k: int) -> BoolArray:
    """Return the fewest cells to suppress so that every row covers the values of k people.

    The result is exact, since rows do not compete.

    Parameters
    ----------
    codes : one row per combination; columns from the most to the least important, which breaks ties.
    people : behind every combination.
    k : the least number of people.

    Returns
    -------
    Which cells are '*', including those that were before.
    """
    suppressed = np.asarray(codes == SUPPRESSED)
    open_ = np.ones(len(codes), dtype=bool)
    for mask in _all_masks(codes.shape[1]):
        if not open_.any():
            break
        labels = _labels(codes, ~mask)
        enough = sums(labels, people)[labels] >= k - ROUNDING
        done = open_ & enough & ~(suppressed & ~mask).any(axis=1)
        suppressed[done] = mask
        open_ &= ~done
    return suppressed


def equal_suppressions(codes: IntArray, people: FloatArray, k: int) -> BoolArray:
    """Return few cells to suppress so that k people share every published row; a greedy search.

    Size by size, the set of columns that settles the most people is suppressed in the combinations it settles: those
    that become equal to each other, or to rows suppressed before. What is left is suppressed entirely, together with
    the cheapest classes if fewer than k people are left.
    """
    suppressed = codes == SUPPRESSED
    open_ = _class_people(codes, people, suppressed) < k - ROUNDING
    for size in range(1, codes.shape[1] + 1):
        masks = list(_masks(codes.shape[1], size))
        labels = [_labels(codes, ~mask) for mask in masks]
        while open_.any():
            settled = [_settled(suppressed, open_, people, m, at, k) for m, at in zip(masks, labels, strict=True)]
            best = int(np.argmax([people[rows].sum() for rows in settled]))
            if not settled[best].any():
                break
            suppressed[settled[best]] = masks[best]
            open_ &= ~settled[best]
    return _with_rest(codes, people, suppressed, open_, k)


def wildcard_suppressions(codes: IntArray, k: int) -> BoolArray:
    """Return few cells to suppress so that every row counts k rows as sdcMicro does, '*' agreeing with anything.

    Three searches: sdcMicro's own, in which every row that violates k loses a key in turn; the same, skipping rows that
    are no longer at risk when it is their turn; and :func:`fitting_suppressions`. The search with the fewest cells
    wins, and cells that turn out not to be needed are restored. So there are never more than in sdcMicro.

    Parameters
    ----------
    codes : one row per record; columns from the most to the least important.
    k : the least number of records, at most that of all.

    Returns
    -------
    Which cells are '*', including those that were before.
    """
    from fedanon.sdc.methods._wildcard_search import all_bits, index_rows, restore, silent_bits

    groups = Groups.equal_rows(codes)
    # k equal rows never violate k; more of them need not be looked at
    place = np.empty(len(codes), dtype=np.int64)
    place[groups.order] = np.arange(len(codes)) - groups.starts[groups.labels[groups.order]]
    looked_at = np.flatnonzero(place < k)
    before = np.ascontiguousarray(codes[looked_at])
    index = index_rows(before)
    found = [_in_turn(before, index, k, waits=False), _in_turn(before, index, k, waits=True)]
    fitting = fitting_suppressions(codes[groups.first_rows], groups.sizes.astype(np.float64), k)
    fitting = fitting[groups.labels[looked_at]]
    if sdcmicro_people(np.where(fitting, SUPPRESSED, before), np.ones(len(before))).min() >= k:
        found.append(np.where(fitting, SUPPRESSED, before).astype(before.dtype))
    best = min(found, key=lambda rows: int((rows == SUPPRESSED).sum()))
    counts = sdcmicro_people(best, np.ones(len(best))).astype(np.int64)
    restore(best, before, counts, k, index, silent_bits(best), all_bits(len(best)))
    suppressed = np.asarray(codes == SUPPRESSED)
    suppressed[looked_at] = best == SUPPRESSED
    return suppressed


def _in_turn(before: IntArray, index: Index, k: int, *, waits: bool) -> IntArray:
    """Suppress a key of every row that violates k, the rarest first, until none does."""
    from fedanon.sdc.methods._wildcard_search import all_bits, silent_bits, suppress_in_turn

    rows = before.copy()
    silent, everyone = silent_bits(rows), all_bits(len(rows))
    while True:
        counts = sdcmicro_people(rows, np.ones(len(rows)))
        problems = np.flatnonzero(counts < k)
        if not len(problems):
            return rows
        in_order = problems[np.argsort(counts[problems], kind="stable")]
        suppress_in_turn(rows, in_order, k, waits, index, silent, everyone)


def _all_masks(width: int) -> Iterator[BoolArray]:
    """Yield all sets of columns, smaller ones first."""
    for size in range(width + 1):
        yield from _masks(width, size)


def _masks(width: int, size: int) -> Iterator[BoolArray]:
    """Yield all sets of ``size`` columns, those that spare the important columns first."""
    for chosen in reversed(list(combinations(range(width), size))):
        mask = np.zeros(width, dtype=bool)
        mask[list(chosen)] = True
        yield mask


def _labels(codes: IntArray, kept: BoolArray) -> IntArray:
    """Return the group of every row by the columns kept."""
    return Groups.equal_rows(codes[:, kept]).labels


def _class_people(codes: IntArray, people: FloatArray, suppressed: BoolArray) -> FloatArray:
    """Count the people who share the published row of each combination."""
    labels = Groups.equal_rows(np.where(suppressed, SUPPRESSED, codes)).labels
    return sums(labels, people)[labels]


def _settled(
    suppressed: BoolArray, open_: BoolArray, people: FloatArray, mask: BoolArray, labels: IntArray, k: int
) -> BoolArray:
    """Return the open combinations that k people share once ``mask`` is suppressed in them."""
    movable = open_ & ~(suppressed & ~mask).any(axis=1)
    there = ~open_ & (suppressed == mask).all(axis=1)
    enough = sums(labels, people * (movable | there))[labels] >= k - ROUNDING
    return np.asarray(movable & enough)


def _with_rest(codes: IntArray, people: FloatArray, suppressed: BoolArray, open_: BoolArray, k: int) -> BoolArray:
    """Suppress entirely what is still open, with the cheapest classes if that is fewer than k people."""
    if not open_.any():
        return suppressed
    suppressed[open_] = True
    classes = Groups.equal_rows(np.where(suppressed, SUPPRESSED, codes))
    cells = sums(classes.labels, people * (~suppressed).sum(axis=1))
    for cheapest in np.argsort(cells, kind="stable"):
        if people[suppressed.all(axis=1)].sum() >= k - ROUNDING:
            break
        suppressed[classes.labels == cheapest] = True
    return suppressed


def suppress(cells: Cells, attribute: Numeric | Categorical, rows: AnyArray) -> Cells:
    """Return a copy of the column in which the cells of the given rows say nothing."""
    if isinstance(cells, Nodes):
        return Nodes(np.where(rows, np.int32(cells.hierarchy.root), cells.nodes), cells.hierarchy)
    assert isinstance(attribute, Numeric)
    bounds = (cells.values, cells.values) if isinstance(cells, Numbers) else (cells.low, cells.high)
    return Intervals(np.where(rows, attribute.low, bounds[0]), np.where(rows, attribute.high, bounds[1]))
