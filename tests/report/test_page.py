"""The page: well formed, self-contained, usable by keyboard and reader, and safe whatever the labels are."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from fedanon.harness.result_set import read_results
from fedanon.report.experiment_report import experiment_report
from fedanon.report.html import render_html
from tests.report.conftest import Folder, Page, rows, said, with_rounds, write_folder

SCORES = ("auc_pooled", "accuracy")
HOSTILE = "<script>alert('x')</script> & \"$x_{1$ `b` #0072b2"


def page_of(*folders: Path) -> tuple[str, Page]:
    text = render_html(experiment_report([read_results(folder) for folder in folders]))
    return text, Page(text)


def federation(label: str = "first") -> list[dict[str, object]]:
    measures = ("ncp", "linkage_expected_share", *SCORES)
    more = {"task": "federation", "measures": measures}
    return [
        row
        for model in ("lr", "xgb")
        for row in rows(labels=("original",), ks=(None,), model=model, **more)
        + rows(labels=(label, "b"), model=model, **more)
    ]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = federation()
    curves = with_rounds([row for row in results if row["measure"] == "auc_pooled"])
    parent = tmp_path_factory.mktemp("full")
    return write_folder(
        parent,
        results,
        curves=curves,
        baseline="original",
        findings=[said("It costs little.")],
    )


@pytest.fixture(scope="module")
def full_page(full: Path) -> tuple[str, Page]:
    """Drawing its figures takes seconds."""
    return page_of(full)


def test_structure(full_page: tuple[str, Page]) -> None:
    text, page = full_page
    ids = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    assert max(ids.values()) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels
    assert len(page.all("table")) == len(page.all("caption")) > 3
    assert all(attributes.get("scope") in ("row", "col") for attributes in page.all("th"))
    panels = [a for a in page.all("div") if a.get("role") == "img"]
    assert len(panels) == text.count('class="panel"')
    assert all(len(a["aria-label"]) > 20 for a in panels)
    targets = {a["href"][1:] for a in page.all("a")}
    assert targets <= set(ids)


def test_nothing_is_loaded(full_page: tuple[str, Page]) -> None:
    text, page = full_page
    for _, attributes in page.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert set(re.findall(r"url\((.)", text)) <= {"#"}
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text


def test_findings_come_before_everything_else(full_page: tuple[str, Page]) -> None:
    _, page = full_page
    after_the_contents = page.text.split("Methods and provenance", 1)[1]
    assert after_the_contents.startswith(" Findings It costs little.")


def test_figures_tables_and_provenance(full_page: tuple[str, Page]) -> None:
    _, page = full_page
    for words in (
        "The trade-off",
        "What each k costs",
        "Convergence",
        "difference from original",
        "What the metrics mean",
        "What is not protected",
        "fedanon experiment run small.toml",
        "c0de",
        "da7a",
    ):
        assert words in page.text, words
    # mean of three seeds: 0.05 + 0.02 + 0.001, with Student's t: 4.303 * 0.001 / sqrt 3
    assert "0.0710 ± 0.0025" in page.text


def test_labels_are_escaped(folder: Folder) -> None:
    results = federation(HOSTILE)
    curves = with_rounds([row for row in results if row["measure"] == "auc_pooled"])
    path = folder(
        results,
        curves=curves,
        title=HOSTILE,
        about=HOSTILE,
        findings=[said(HOSTILE), said(HOSTILE, holds=False)],
        config=HOSTILE,
    )
    text, page = page_of(path)
    assert len(page.all("script")) == 1
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "#0072b2" in page.text, "only styles change their colors"


def test_several_result_sets(full: Path, folder: Folder) -> None:
    other = folder(rows(), title="Another")
    _, page = page_of(full, other, other)
    assert page.text.startswith("3 experiments")
    assert page.text.count("What the metrics mean") == 2, "once in the contents, once in the text"
    assert max(Counter(a["id"] for _, a in page.tags if "id" in a).values()) == 1


@pytest.mark.parametrize(
    "results",
    [
        pytest.param(rows(seeds=1), id="one seed"),
        pytest.param(rows(measures=("ncp",)), id="one measure"),
        pytest.param(rows(ks=(None,)), id="no k"),
        pytest.param(rows(labels=("only",), ks=(5,), seeds=1), id="one number each"),
        pytest.param(rows(task="central", model="knn", measures=("auc", "accuracy", "f1")), id="central"),
        pytest.param(rows(measures=("something_new",)), id="unknown measure"),
        pytest.param(rows(labels=("long " * 40, "b"), ks=(None,)), id="a long label"),
        pytest.param(rows(labels=("None", "b")), id="a label that reads as missing"),
        pytest.param(
            [
                {"grid": "elbow", "task": "elbow", "dataset": "ward", "label": "", "seed": 0, "cell": "x"}
                | {"measure": "groups age", "value": 8}
            ],
            id="no method",
        ),
    ],
)
def test_copes_with_any_experiment(folder: Folder, results: list[dict[str, object]]) -> None:
    _, page = page_of(folder(results))
    assert "Results: " in page.text
    assert "nan" not in page.text.lower().replace("provenance", "")


def test_one_seed_has_no_interval(folder: Folder) -> None:
    _, page = page_of(folder(rows(seeds=1)))
    assert "one seed, so without intervals" in page.text
    assert "±" not in page.text.replace("A ± is", "")


def test_only_failures(folder: Folder) -> None:
    failure = {"cell": "x", "grid": "grid", "what": "first k=5 <b>", "reason": "the table has 3 rows"}
    _, page = page_of(folder([], failures=[failure], finished=0))
    assert "No results" in page.text
    assert "first k=5 <b>" in page.text
    assert "the table has 3 rows" in page.text


def test_many_cells(folder: Folder) -> None:
    labels = tuple(f"method {i}" for i in range(25))
    text, page = page_of(folder(rows(labels=labels, ks=(2, 3, 5, 10, 20), seeds=4)))
    assert "(125 rows)" in page.text, "long tables wait behind a click"
    assert len(text) < 2_000_000


COMPARED = {"grid": "grid", "label": "first", "k": 5, "measure": "ncp", "sd": 0.0, "seeds": 3, "source": "table 1"}


def test_published_beside_ours(folder: Folder) -> None:
    judged = {"tolerance": "2 %", "difference": 0.001, "relative": 0.014}
    comparison = [
        COMPARED | judged | {"published": 0.07, "ours": 0.071, "within": True},
        COMPARED
        | judged
        | {"k": 10, "published": 0.05, "ours": 0.091, "difference": 0.041, "relative": 0.82, "within": False},
        COMPARED | {"label": "second", "published": 0.2, "tolerance": "2 %", "within": False},
        COMPARED | {"label": "third", "published": 0.2, "ours": 0.3, "difference": 0.1, "relative": 0.5},
    ]
    _, page = page_of(folder(rows(), comparison=comparison))
    assert "1 of 3 numbers with a stated tolerance are within it; 1 are beyond it" in page.text
    for words in ("✓ within", "✗ beyond", "○ not computed", "not judged", "table 1", "+0.04100 (+82.0 %)"):
        assert words in page.text, words


def test_same_results_same_bytes(full: Path, full_page: tuple[str, Page]) -> None:
    assert page_of(full)[0] == full_page[0]
