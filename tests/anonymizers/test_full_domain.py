"""Full-domain search: the optimum of the lattice, the same as ARX's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.anonymizers.full_domain.lattice import LatticeSearch, Node
from fedanon.anonymizers.full_domain.method import FullDomain
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.metrics.information_loss import ncp_published
from tests.anonymizers.tables import tables


@pytest.mark.needs_data
@pytest.mark.parametrize(
    ("k", "suppression", "classes", "smallest", "suppressed"),
    [(5, 0.0, 30, 16, 0), (10, 0.0, 30, 16, 0), (5, 0.05, 399, 5, 1_458), (10, 0.05, 200, 10, 1_484)],
)
def test_same_optimum_as_arx(k: int, suppression: float, classes: int, smallest: int, suppressed: int) -> None:
    """ARX on Adult with the thesis's trees and its Loss metric; measured, see the specification of the tools."""
    release = FullDomain(k=k, suppression=suppression, objective="arx").anonymize(load("adult_thesis"), rng=0)
    reached = release.classes.count, int(release.classes.sizes.min()), int(release.suppressed.sum())
    assert reached == (classes, smallest, suppressed)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(table=tables(), k=st.integers(2, 5), suppression=st.sampled_from([0.0, 0.2, 0.5]))
def test_no_node_is_better(table: Table, k: int, suppression: float) -> None:
    """The search that skips most of the lattice finds what trying every node finds."""
    method = FullDomain(k=k, suppression=suppression, numeric_levels=2)
    if table.n_units < k:
        return
    found = method.anonymize(table, rng=0)
    everything = EveryNode(k=k, suppression=suppression, numeric_levels=2).anonymize(table, rng=0)
    assert ncp_published(table, found) == pytest.approx(ncp_published(table, everything))


class EveryNode(FullDomain):
    """Full domain without any pruning."""

    def _search(self, bounds: list[np.ndarray], judge: object) -> LatticeSearch:
        return Exhaustive(bounds, judge, monotone=False)  # type: ignore[arg-type]


class Exhaustive(LatticeSearch):
    """Every node is judged."""

    def run(self) -> Node | None:
        for node in itertools.product(*(range(len(bound)) for bound in self.bounds)):
            self._judge(node)
        return self.best


def test_bisection_judges_few_nodes() -> None:
    """A rule that allows a node from a certain sum of levels on: the finest allowed is found with few questions."""
    bounds = [np.linspace(0, 1, 8)] * 4
    search = LatticeSearch(bounds, lambda node: float(sum(node)) if sum(node) >= 20 else None, monotone=True)
    best = search.run()
    assert best is not None
    assert sum(best) == 20
    assert search.judged < 8**4 / 2


def test_numeric_levels_are_whole_numbers_without_overlap() -> None:
    table = load("adult")
    release = FullDomain(k=50, suppression=0.05).anonymize(table, rng=0)
    cells = release.cells["age"]
    spans = sorted({(low, high) for low, high in zip(cells.low, cells.high, strict=True)})  # type: ignore[union-attr]
    assert all(math.floor(low) == low and math.floor(high) == high for low, high in spans)
    assert all(high < low for (_, high), (low, _) in itertools.pairwise(spans))


def test_a_lattice_that_is_too_large_is_refused_by_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedanon.anonymizers.full_domain.method.MOST_NODES", 100)
    with pytest.raises(ConfigError, match=r"lattice has [\d,]+ nodes, more than 100"):
        FullDomain(k=5).anonymize(load("randhie"), rng=0)
