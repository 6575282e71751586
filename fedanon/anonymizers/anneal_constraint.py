"""Privacy models as rules the annealer keeps at every step, and a start that keeps them.

Models that no rule can express are left to the repair after the search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedanon.anonymizers.publishing import publish_smallest_cells
from fedanon.anonymizers.requirements import keep_requirements
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.privacy.base import PrivacyModel, Rows
from fedanon.privacy.combined import Combined
from fedanon.privacy.count_rule import KINDS, CountRule
from fedanon.privacy.counts import Counter
from fedanon.privacy.sensitive_model import SensitiveModel

#: a rule looks at all values at every step; with more of them the repair after the search is the better way
MOST_VALUES = 64


class RecordRule(NamedTuple):
    """A rule, and the place of every record's value in its order."""

    rule: CountRule
    codes: NDArray[np.int32]


def record_rule(table: Table, model: PrivacyModel) -> RecordRule | None:
    """The rule of a model over the records in canonical order, or None if it has none."""
    if not isinstance(model, SensitiveModel):
        return None
    everyone = np.ones(len(table), dtype=bool)
    counts = Counter(Rows.of(table), model.column, everyone).counts(Groups(np.zeros(len(table), dtype=np.int32), 1))
    if counts.values.size > MOST_VALUES or (rule := model.count_rule(counts)) is None:
        return None
    places = np.zeros(counts.values.size, dtype=np.int32)
    places[rule.order] = np.arange(len(rule.order))
    return RecordRule(rule, places[counts.values.codes[table.distinct.order]])


def record_rules(table: Table, claim: Combined) -> tuple[tuple[RecordRule, ...], Combined]:
    """The rules of those models of a claim that have one, and the claim of these models alone."""
    pairs = [(model, record_rule(table, model)) for model in claim.models]
    kept = [(model, rule) for model, rule in pairs if rule is not None]
    return tuple(rule for _, rule in kept), replace(claim, models=tuple(model for model, _ in kept))


def keeping_start(table: Table, start: NDArray[np.int32], claim: Combined) -> NDArray[np.int32]:
    """A partition of the records in canonical order, merged until ``claim`` holds in every class."""
    order = table.distinct.order
    labels = np.empty(len(table), dtype=np.int32)
    labels[order] = start
    groups = Groups.of(labels)

    def publish(merged: Groups) -> Any:
        return publish_smallest_cells(table, merged)

    kept, _ = keep_requirements(table, groups, publish(groups), claim, publish)
    return kept.labels[order]


def kernel_rules(rules: tuple[RecordRule, ...], classes: int) -> Any:
    """Rules in the form of :mod:`fedanon.kernels.anneal_rules`, with room for the counts of so many classes."""
    from fedanon.kernels.anneal_rules import NoRules, Rules

    if not rules:
        return NoRules()
    most = max(len(entry.rule.whole) for entry in rules)

    def padded(name: str) -> NDArray[np.float64]:
        table = np.zeros((len(rules), most))
        for row, entry in zip(table, rules, strict=True):
            values = getattr(entry.rule, name)
            row[: len(values)] = values
        return table

    return Rules(
        kind=np.array([KINDS.index(entry.rule.kind) for entry in rules]),
        limit=np.array([entry.rule.limit for entry in rules], dtype=np.float64),
        values=np.array([len(entry.rule.whole) for entry in rules]),
        code=np.array([entry.codes for entry in rules]),
        count=np.zeros((classes, len(rules), most), dtype=np.int32),
        whole=padded("whole"),
        low=padded("low"),
        high=padded("high"),
    )
