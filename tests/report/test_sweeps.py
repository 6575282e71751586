"""Sweeps and statistics of columns in a report: the front, the choices, and tables that agree with the numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from fedanon.harness.experiment import parse_experiment
from fedanon.harness.frames import results_frame
from fedanon.harness.result_set import ResultSet
from fedanon.report.charts import REFERENCE
from fedanon.report.document import TableBlock, walk
from fedanon.report.experiment_report import experiment_report
from fedanon.report.html import render_html
from fedanon.report.sweeps import figures_of_sweep, is_sweep, points_of
from fedanon.sdc.pareto import choose, pareto_front
from tests.report.conftest import MANIFEST

STUDY = """
title = "A small study"
[[grid]]
name = "amounts"
task = "masking"
dataset = "randhie"
quasi = "income,mdeoff"
rows = 300
methods = [
  { name = "additive_noise", set = { c = [0.01, 0.1, 1.0] } },
  { name = "additive_noise", label = "held", set = { c = [0.1, 1.0], keep_zeros = true, non_negative = true } },
  { name = "mdav", k = [3, 10] },
  { name = "mdav", label = "mdav, reverse mapped", k = [3, 10], reverse_map = true },
]
[[grid]]
name = "columns"
task = "statistics"
dataset = "randhie"
quasi = "income,mdeoff"
rows = 300
methods = [{ name = "identity", label = "original" }, { name = "mdav", k = 10 }, "gadp"]
"""


@pytest.fixture(scope="module")
def study() -> ResultSet:
    experiment = parse_experiment(STUDY, name="study", folder=Path())
    finished = [(cell, cell.task.run()) for cell in experiment.cells]
    nothing = pd.DataFrame()
    return ResultSet(Path("study"), results_frame(finished), nothing, nothing, MANIFEST)


def test_points_are_told_by_method_variant_and_value(study: ResultSet) -> None:
    frame = study.results[study.results["grid"] == "amounts"]
    assert is_sweep(frame)
    points = points_of(frame)
    assert list(zip(points["method"], points["variant"], points["value"], strict=True)) == [
        ("additive_noise", "plain", "c=0.01"),
        ("additive_noise", "plain", "c=0.1"),
        ("additive_noise", "plain", "c=1"),
        ("additive_noise", "restricted", "c=0.1"),
        ("additive_noise", "restricted", "c=1"),
        ("mdav", "plain", "k=3"),
        ("mdav", "plain", "k=10"),
        ("mdav", "reverse mapped", "k=3"),
        ("mdav", "reverse mapped", "k=10"),
    ]


def test_the_page_shows_the_front_and_the_choices(study: ResultSet) -> None:
    document = experiment_report([study])
    points = points_of(study.results[study.results["grid"] == "amounts"])
    overview, by_method = (f for f in document.figures() if f.name.startswith("amounts"))
    series = {one.label: one for one in overview.panels[0].series}
    front = points[pareto_front(points["dld"], points["il2"])]
    assert sorted(series["front"].y) == sorted(front["dld"])
    chosen = choose(points["dld"], points["il2"])
    assert series["recommended"].y == tuple(choice.risk for choice in chosen)
    assert [panel.title for panel in by_method.panels] == ["additive_noise", "mdav"]
    assert {one.label for one in by_method.panels[0].series} == {"plain", "restricted"}
    page = render_html(document)
    assert "Recommended" in page
    assert all(choice.why in page for choice in chosen)


def test_the_ranked_table_starts_with_the_front(study: ResultSet) -> None:
    tables = [block for block in walk(experiment_report([study]).blocks) if isinstance(block, TableBlock)]
    (ranked,) = (table for table in tables if "ranked by the front" in table.caption)
    order = [row[0].value for row in ranked.rows]
    assert order == sorted(order)  # type: ignore[type-var]
    assert order.count(1) == int(
        pareto_front(*(points_of(study.results.query("grid == 'amounts'"))[n] for n in ("dld", "il2"))).sum()
    )


def test_columns_beside_the_original(study: ResultSet) -> None:
    tables = [block for block in walk(experiment_report([study]).blocks) if isinstance(block, TableBlock)]
    (income,) = (table for table in tables if table.caption == "Main statistics of income")
    assert [row[0].text for row in income.rows] == ["original", "mdav", "gadp"]
    place = [column.title for column in income.columns].index("Mean")
    original, mdav, _ = (row[place] for row in income.rows)
    assert mdav.value == pytest.approx(original.value)  # microaggregation keeps means
    assert mdav.tone == "good"


def test_a_federation_is_drawn_by_method() -> None:
    """One line a method, usefulness against linkage, the values beside the markers."""
    places = [("original", "identity", "{}", 0.57, 0.80), ("noise", "additive_noise", '{"c": 0.1}', 0.1, 0.79)]
    places.append(("noise", "additive_noise", '{"c": 2.0}', 0.01, 0.77))
    rows = [
        {"grid": "g", "task": "federation", "label": label, "method": method, "settings": settings, "k": pd.NA}
        | {"measure": name, "value": value}
        for label, method, settings, linked, auc in places
        for name, value in (("linkage_expected_share", linked), ("auc_pooled", auc))
    ]
    (figure,) = figures_of_sweep("g", pd.DataFrame(rows))
    lines = {one.label: one for one in figure.panels[0].series}
    assert (lines["noise"].x, lines["noise"].y, lines["noise"].texts) == ((0.1, 0.01), (0.79, 0.77), ("0.1", "2"))
    assert lines["original"].style == REFERENCE
