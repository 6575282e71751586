"""Numeric disclosure: how often a number is known approximately, without being known exactly.

Knows: the class of a person. Does: estimates every number by the middle of its cell, or by the median of its class.
Judged by: the share of estimates within a tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding
from fedanon.attacks.context import AttackContext
from fedanon.attacks.sensitive_values import sensitive_pair
from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.errors import NotApplicableError
from fedanon.fields import parameter
from fedanon.metrics.published import positions
from fedanon.types import FloatArray


@ATTACKS.register("numeric_disclosure")
@dataclass(frozen=True, kw_only=True)
class NumericDisclosure(Attack):
    r"""Share of the true numbers that lie within a tolerance of the estimate from the class.

    .. math:: \frac1n \sum_{i,j} \big[ |x_{ij} - \hat x_{ij}| \le p \, |\hat x_{ij}| \big]

    The estimate is the middle of the published cell for a quasi-identifier, and the median of the class for a sensitive
    column (both of the record's own class, which the attacker knows). Baseline: the single number per column
    that is right for most people. Missing values are not tried.
    """

    title = "Numeric disclosure"
    meaning = "A number, such as an age or a cost, is known to within the tolerance."
    target = "release"

    tolerance: float = parameter(0.05, help="how near an estimate must be, as a share of it", at_least=0)

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Estimate every number of every published record."""
        hits, labels, best, details = [], [], 0.0, {}
        for name, true, estimate, label in _estimates(context):
            near = np.abs(true - estimate) <= self.tolerance * np.abs(estimate)
            guess = _count_best_guess(true, self.tolerance)
            details[f"rate_{name}"], details[f"baseline_{name}"] = float(near.mean()), guess / len(true)
            hits.append(near)
            labels.append(label)
            best += guess
        if not hits:
            raise NotApplicableError("No quasi-identifying or sensitive column is numeric.")
        found = np.concatenate(hits).astype(np.float64)
        return Finding.from_tries(found, best / len(found), clusters=np.concatenate(labels), details=details)


def _estimates(context: AttackContext) -> Iterator[tuple[str, FloatArray, FloatArray, NDArray[np.int32]]]:
    """Yield per column its name, and true numbers, estimates and classes of the published records that have both."""
    release, table = context.release, context.table
    rows = np.flatnonzero(~release.suppressed)
    label = release.classes.labels[rows]
    columns = [
        (c.name, c.values[table.codes[rows, i]], positions(release.cells[c.name])[release.groups.labels[rows]])
        for i, c in enumerate(table.columns)
        if c.values is not None
    ]
    for name in table.schema.sensitive:
        if isinstance(table.schema[name], Numeric) and rows.size:
            pair = sensitive_pair(table, release, name)
            values = np.append(np.asarray(pair.values, dtype=np.float64), np.nan)
            columns.append((name, values[pair.true[rows]], _medians(values[pair.published[rows]], label)[label]))
    for name, true, estimate in columns:
        there = ~np.isnan(true) & ~np.isnan(estimate)
        if there.any():
            yield name, true[there], estimate[there], label[there]


def _medians(values: FloatArray, label: NDArray[np.int32]) -> FloatArray:
    """Compute the median of the values of each class, NaN where it has none."""
    there = ~np.isnan(values)
    groups = Groups.from_labels(np.where(there, label, -1))
    ordered = values[there][np.lexsort((values[there], label[there]))]
    middle = groups.starts + (groups.sizes - 1) / 2
    medians = np.full(int(label.max()) + 1, np.nan)
    medians[np.unique(label[there])] = (
        ordered[np.floor(middle).astype(int)] + ordered[np.ceil(middle).astype(int)]
    ) / 2
    return medians


def _count_best_guess(true: FloatArray, tolerance: float) -> int:
    """Count the numbers near the best single estimate; the candidates are the numbers themselves."""
    ordered = np.sort(true)
    guess = np.unique(ordered)
    reach = tolerance * np.abs(guess)
    return int(
        (np.searchsorted(ordered, guess + reach, "right") - np.searchsorted(ordered, guess - reach, "left")).max()
    )
