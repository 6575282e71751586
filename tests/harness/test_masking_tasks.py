"""Tasks about masked columns: which columns and rows, what is measured, statistics by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedanon.datasets import load
from fedanon.harness.tasks.masking import STATISTICS, MaskingTask, StatisticsTask, column_statistics
from fedanon.metrics import evaluate

COLUMNS = "income_ratio,bmi"


def test_columns_rows_and_measures() -> None:
    task = MaskingTask(
        dataset="nhanes",
        quasi=COLUMNS,
        complete=True,
        rows=300,
        method="additive_noise",
        method_settings={"c": 0.2},
        seed=4,
    )
    table = task.table()
    assert [column.name for column in table.columns] == COLUMNS.split(",")
    assert len(table) == 300
    assert not any(column.has_missing for column in table.columns)
    found = task.run().metrics
    again = evaluate(table, task.anonymizer().anonymize(table, rng=4), ["dld", "il2"])
    assert {name: found[name] for name in again} == again
    # E|N(0, c)| / sqrt 2 = sqrt(c / pi)
    assert found["il2"] == pytest.approx(np.sqrt(0.2 / np.pi), rel=0.06)
    alone = replace(task, quasi="income_ratio").run().metrics
    assert "gini_difference" not in alone  # noise gives negative incomes, of which there is no Gini


def test_complete_leaves_out_rows_only_when_told() -> None:
    lacking = load("nhanes").frame[COLUMNS.split(",")].isna().any(axis=1).sum()
    task = MaskingTask(dataset="nhanes", quasi=COLUMNS, complete=True)
    assert len(load("nhanes")) - len(task.table()) == lacking > 0
    assert len(MaskingTask(dataset="nhanes", quasi=COLUMNS).table()) == len(load("nhanes"))


def test_reverse_mapping_keeps_every_statistic_of_a_column() -> None:
    places = {"dataset": "randhie", "quasi": "income,mdeoff", "rows": 400}
    before = StatisticsTask(**places).run().metrics
    after = StatisticsTask(**places, method="mdav", k=10, reverse_map=True).run().metrics
    assert before["correlation of income"] == pytest.approx(1)
    for name, value in before.items():
        if not name.startswith("correlation"):
            assert after[name] == pytest.approx(value), name
    assert 0.3 < after["correlation of income"] < 1


def test_statistics_by_hand() -> None:
    original, published = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    found = column_statistics(original, published)
    assert tuple(found) == STATISTICS
    assert [found[name] for name in STATISTICS[:6]] == [0, 1, 2, 2, 3, 4]
    assert found["sd"] == pytest.approx(np.sqrt(2.5))
    assert found["Gini"] == pytest.approx(40)  # 2 (1 + 4 + 9 + 16 = 30 + 10) / (5 * 10) - 6/5, in per cent
    assert found["correlation"] == pytest.approx(-1)
