r"""Which cells of key combinations to suppress: pure functions on codes.

Three counts of "the records like this one" exist once some cells are '*' (p, q are published rows):

* *equal*: the rows q = p. k of them is k-anonymity, whatever an attacker knows.
* *fitting*: the people whose own values p covers, '*' covering all. k of them is (k, 1)-anonymity (Gionis, Mazza &
  Tassa 2008): who looks a published row up in a register finds k people. It does not protect a target whose true
  values the attacker knows and whose '*' nobody shares.
* *wildcard*: the rows q that agree with p wherever neither is '*' (sdcMicro's ``freqCalc``). It is never below
  *fitting*. It is no goal to search for: k - 1 rows of nothing but '*' agree with everything, so they alone raise
  every count to k while all other rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.perturbative.keys import ROUNDING, STAR, sums
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray, IntArray

Stars = NDArray[np.bool_]


def fitting_suppressions(codes: IntArray, people: FloatArray, k: int) -> Stars:
    """The least cells to suppress so that every row covers the values of k people; exact, as rows do not compete.

    Parameters
    ----------
    codes : one row a combination; the columns from the most to the least important, which decides between equals.
    people : in every combination.
    k : at least so many.

    Returns
    -------
    Which cells are '*', those that were so before included.
    """
    stars = np.asarray(codes == STAR)
    open_ = np.ones(len(codes), dtype=bool)
    for mask in _all_masks(codes.shape[1]):
        if not open_.any():
            break
        labels = _labels(codes, ~mask)
        enough = sums(labels, people)[labels] >= k - ROUNDING
        done = open_ & enough & ~(stars & ~mask).any(axis=1)
        stars[done] = mask
        open_ &= ~done
    return stars


def equal_suppressions(codes: IntArray, people: FloatArray, k: int) -> Stars:
    """Few cells to suppress so that k people share every published row; a greedy search.

    Size by size, the set of columns that settles most people is suppressed in the combinations it settles: those that
    become equal to each other, or to rows suppressed before. What is left is suppressed wholly, with the classes that
    cost least where fewer than k people are left.
    """
    stars = codes == STAR
    open_ = _class_people(codes, people, stars) < k - ROUNDING
    for size in range(1, codes.shape[1] + 1):
        masks = list(_masks(codes.shape[1], size))
        labels = [_labels(codes, ~mask) for mask in masks]
        while open_.any():
            settled = [_settled(stars, open_, people, m, at, k) for m, at in zip(masks, labels, strict=True)]
            best = int(np.argmax([people[rows].sum() for rows in settled]))
            if not settled[best].any():
                break
            stars[settled[best]] = masks[best]
            open_ &= ~settled[best]
    return _with_rest(codes, people, stars, open_, k)


def wildcard_people(codes: IntArray, weights: FloatArray) -> FloatArray:
    """Sum of the weights of the rows that agree with each row wherever neither is '*'."""
    stars = codes == STAR
    kinds = Groups.equal_rows(stars)
    patterns = stars[kinds.first_rows]
    joint = (patterns[:, None] | patterns).reshape(-1, codes.shape[1])
    unions = Groups.equal_rows(joint)
    # few unions for many pairs: sorting the rows is what takes time
    labels = [_labels(codes, ~union) for union in joint[unions.first_rows]]
    total = np.zeros(len(codes))
    for pair, (i, j) in enumerate(np.ndindex(kinds.count, kinds.count)):
        at, mine, theirs = labels[unions.labels[pair]], kinds.labels == i, kinds.labels == j
        total[mine] += sums(at, weights * theirs)[at[mine]]
    return total


def consistent_people(codes: IntArray, people: FloatArray, stars: Stars) -> FloatArray:
    """For every combination, the people whose published rows could be its own: what an attacker who knows it finds."""
    kinds = Groups.equal_rows(stars)
    total = np.zeros(len(codes))
    for kind, pattern in enumerate(stars[kinds.first_rows]):
        labels = _labels(codes, ~pattern)
        total += sums(labels, people * (kinds.labels == kind))[labels]
    return total


def _all_masks(width: int) -> Iterator[Stars]:
    """All sets of columns, smaller ones first."""
    for size in range(width + 1):
        yield from _masks(width, size)


def _masks(width: int, size: int) -> Iterator[Stars]:
    """All sets of ``size`` columns, those that spare the important columns first."""
    for chosen in reversed(list(combinations(range(width), size))):
        mask = np.zeros(width, dtype=bool)
        mask[list(chosen)] = True
        yield mask


def _labels(codes: IntArray, kept: Stars) -> IntArray:
    """The group of every row by the columns kept."""
    return Groups.equal_rows(codes[:, kept]).labels


def _class_people(codes: IntArray, people: FloatArray, stars: Stars) -> FloatArray:
    """People who share the published row of each combination."""
    labels = Groups.equal_rows(np.where(stars, STAR, codes)).labels
    return sums(labels, people)[labels]


def _settled(stars: Stars, open_: Stars, people: FloatArray, mask: Stars, labels: IntArray, k: int) -> Stars:
    """The open combinations that k people share once ``mask`` is suppressed in them."""
    movable = open_ & ~(stars & ~mask).any(axis=1)
    there = ~open_ & (stars == mask).all(axis=1)
    enough = sums(labels, people * (movable | there))[labels] >= k - ROUNDING
    return np.asarray(movable & enough)


def _with_rest(codes: IntArray, people: FloatArray, stars: Stars, open_: Stars, k: int) -> Stars:
    """Suppress wholly what is still open, with the cheapest classes where that is fewer than k people."""
    if not open_.any():
        return stars
    stars[open_] = True
    classes = Groups.equal_rows(np.where(stars, STAR, codes))
    cells = sums(classes.labels, people * (~stars).sum(axis=1))
    for cheapest in np.argsort(cells, kind="stable"):
        if people[stars.all(axis=1)].sum() >= k - ROUNDING:
            break
        stars[classes.labels == cheapest] = True
    return stars
