"""Models beyond k inside the annealer: what its rules say is what the models say, and less is lost than by repair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.anonymizers.anneal._rules import _all_keep, _emptied, _recounted
from fedanon.anonymizers.anneal.method import Anneal
from fedanon.anonymizers.anneal.problem import kernel_rules, record_rules
from fedanon.anonymizers.enforcement import keep_requirements
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.metrics.information_loss import ncp
from fedanon.privacy.base import Rows
from fedanon.privacy.combined import Combined
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.privacy.requirements import parse_requirements

REQUIREMENTS = [
    "l=2:relationship",
    "l=3:relationship",
    "entropy_l=2:relationship",
    "t=0.3:relationship",
    "alpha=0.6:relationship",
    "beta=1:relationship",
    "delta=2:income",
    "l=2:income,t=0.2:relationship",
]


@pytest.fixture(scope="module")
def table() -> Table:
    """A part of a table with a sensitive column of two values, and another of a few more."""
    adult = load("adult")
    rows = np.random.default_rng(0).choice(len(adult), 400, replace=False)
    return adult.select_rows(rows)


@pytest.mark.parametrize("requirement", REQUIREMENTS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_rules_say_what_models_say(table: Table, requirement: str, data: st.DataObject) -> None:
    """A class as the kernel counts it, with one record gone and one come, against the model's own judgment."""
    models = tuple(m for m in parse_requirements(requirement) if not isinstance(m, KAnonymity))
    claim = Combined(k=KAnonymity(k=1), models=models)  # type: ignore[arg-type]
    rules, ruled = record_rules(table, claim)
    assert len(ruled.models) == len(models)
    kernel = kernel_rules(rules, 2)
    members = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=2, max_size=12, unique=True))
    leaves, rest = members[0], members[1:]
    joins = data.draw(st.integers(0, len(table) - 1).filter(lambda r: r not in members))
    _emptied(kernel, 0)
    for record in members:
        _recounted(kernel, 0, -1, record)
    after = [*rest, joins]
    said = _all_keep(kernel, 0, len(after), leaves, joins)
    labels = np.ones(len(table), dtype=np.int32)
    labels[table.distinct.order[after]] = 0
    judged = claim.evaluator(Rows.from_table(table), np.ones(len(table), dtype=bool)).satisfied(Groups(labels, 2), dict)
    assert said == judged[0]


@pytest.mark.parametrize("requirement", ["l=2:income", "t=0.2:income", "l=4:relationship,t=0.4:relationship"])
def test_less_is_lost_than_by_repair(table: Table, requirement: str) -> None:
    """Rules during the search against merging what it left; the same number of trials."""
    ruled = Anneal(k=5, require=requirement, iterations=200_000)
    plain = replace(ruled, require="").anonymize(table, rng=0)
    claim = ruled.claim()
    assert isinstance(claim, Combined)
    repaired, _ = keep_requirements(
        table, plain.groups, plain.cells, claim, lambda merged: ruled.publish_groups(table, merged)
    )
    cells = ruled.publish_groups(table, repaired)
    loss = ncp(table, replace(plain, groups=repaired, cells=cells))
    assert ncp(table, ruled.anonymize(table, rng=0)) < loss


def test_joined_runs_keep_rules(table: Table) -> None:
    method = Anneal(k=4, require="l=2:income", iterations=100_000, restarts=2, recombine=True)
    release = method.anonymize(table, rng=0)
    income = table.frame["income"].to_numpy()
    for group in range(release.classes.count):
        assert len(set(income[release.classes.labels == group])) >= 2
