"""Checks of what is said about a release: metrics and privacy models."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import get_args

import numpy as np

from fedanon.anonymizers.base import publish_smallest_cells
from fedanon.data.groups import Groups
from fedanon.data.schema import Unit
from fedanon.data.table import Table
from fedanon.fields import build
from fedanon.metrics.base import Metric
from fedanon.privacy.base import PrivacyModel, Rows
from fedanon.release.release import Release
from fedanon.testing.examples import check_settings, example_release, example_tables, expect
from fedanon.types import BoolArray, CountArray


def check_metric(metric: Metric, table: Table | None = None, release: Release | None = None) -> None:
    """Raise AssertionError unless a metric is documented and gives a plain, finite float, or NaN, everywhere.

    >>> from fedanon.metrics import METRICS
    >>> check_metric(METRICS["ncp"])

    Parameters
    ----------
    metric : as registered.
    table, release : on which it is evaluated; None for releases of small tables, one of which publishes no row.
    """
    expect(metric.title, "A metric needs a title.")
    expect(metric.help.endswith("."), f"The docstring of {metric.title!r} must begin with a sentence.")
    expect(metric.better in ("lower", "higher", "neither"), f"{metric.title!r}: better is lower, higher or neither.")
    pairs = _example_releases() if table is None or release is None else [(table, release)]
    for made, published in pairs:
        before, original = made.frame, replace(made, frame=made.frame.copy(), codes=made.codes.copy())
        value = metric.function(original, published)
        expect(type(value) is float, f"{metric.title!r} gives a {type(value).__name__}, not a float.")
        expect(not math.isinf(value), f"{metric.title!r} is infinite; NaN says that it does not apply.")
        again = metric.function(original, published)
        expect(again == value or (math.isnan(again) and math.isnan(value)), f"{metric.title!r} is not the same twice.")
        expect(original.frame.equals(before), f"{metric.title!r} changes the table.")


@cache
def _example_releases() -> list[tuple[Table, Release]]:
    made: list[tuple[Table, Release]] = []
    for table in (*example_tables().values(), *example_tables(numeric_only=True).values()):
        release = example_release(table, k=min(3, table.n_units))
        made.append((table, release))
        # all rows suppressed, and every second one
        for labels in (np.full(len(table), -1), np.where(np.arange(len(table)) % 2, -1, 0)):
            groups = Groups.from_labels(labels)
            cells = publish_smallest_cells(table, groups)
            made.append((table, replace(release, groups=groups, cells=cells, claim=None)))
    return made


def check_privacy_model(model: PrivacyModel, table: Table | None = None) -> None:
    """Raise AssertionError unless a privacy model keeps what the others rely on, on small tables.

    It is documented, named by ``str()`` and ``describe()``, and read back from a manifest; an evaluation does not
    depend on the order of rows; if it is monotone, classes that satisfy it still do when they are merged.

    >>> from fedanon.privacy.requirements import parse_requirements
    >>> check_privacy_model(parse_requirements("l=2:illness")[0])

    Parameters
    ----------
    model : with its settings; without ``table`` about a column of :func:`fedanon.testing.example_table`, such as
        ``illness`` or ``cost``.
    table : on whose rows it is evaluated; None for small tables of every kind.
    """
    check_settings(model)
    name = type(model).__name__
    expect(getattr(model, "title", ""), f"{name} needs a title: the manifest names it.")
    expect(str(model) and "object at" not in str(model), f"{name} needs __str__: errors name it.")
    for unit in get_args(Unit):
        text = model.describe(unit)
        expect(text and not text.endswith("."), f"{name}.describe({unit!r}) is a clause, not a sentence.")
    document = json.loads(json.dumps(model.to_dict()))
    expect(document.pop("model") == model.title, f"{name}.to_dict() must name the model by its title.")
    expect(build(type(model), document) == model, f"{name} is not read back from what the manifest says of it.")
    for rows in example_tables().values() if table is None else (table,):
        _check_evaluation(model, rows)


def _check_evaluation(model: PrivacyModel, table: Table) -> None:
    name = type(model).__name__
    rng = np.random.default_rng(0)
    labels = rng.integers(0, max(1, len(table) // 6), len(table))
    satisfied = _satisfied(model, table, labels)
    classes = int(labels.max()) + 1
    expect(satisfied.dtype == bool and satisfied.shape == (classes,), f"{name} must answer once for every class.")
    order = rng.permutation(len(table))
    other = _satisfied(model, table.select_rows(order), labels[order])
    expect(np.array_equal(satisfied, other), f"{name} depends on the order of the rows.")
    if not model.monotone or table.persons is not None:
        return
    for first, second in combinations(np.flatnonzero(satisfied), 2):
        merged = _satisfied(model, table, np.where(labels == second, first, labels))
        expect(merged[first], f"{name} says it is monotone, but merging two classes that satisfy it breaks it.")


def _satisfied(model: PrivacyModel, table: Table, labels: CountArray) -> BoolArray:
    """Which classes satisfy the model; a label without rows counts as one that does."""
    groups = Groups.from_labels(labels)
    numbers = np.unique(labels)
    evaluator = model.evaluator(Rows.from_table(table), np.ones(len(table), dtype=bool))
    answers = evaluator.satisfied(groups, lambda: publish_smallest_cells(table, groups))
    expect(len(answers) == groups.count, f"{type(model).__name__} must answer once for every class.")
    every = np.ones(int(labels.max()) + 1, dtype=bool)
    every[numbers] = answers
    return every
