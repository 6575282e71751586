"""Annealing: reproducible by trials, stoppable at any time, and better than every start."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedanon.anonymizers.anneal import search as anneal_search
from fedanon.anonymizers.anneal.method import COOLING, Anneal
from fedanon.anonymizers.anneal.problem import make_problem, neighbors
from fedanon.anonymizers.anneal.search import Seconds, Trials, pace, recombine, run
from fedanon.anonymizers.clustering.method import TopDownGreedy
from fedanon.anonymizers.progress import part, report, watching
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.metrics.information_loss import il, ncp, truthfulness
from fedanon.testing import check_anonymizer
from fedanon.types import IntArray
from tests.anonymizers.tables import tables


@pytest.fixture(scope="module")
def adult() -> Table:
    return load("adult").select_rows(np.arange(0, 30000, 15))


# ---- what must hold -------------------------------------------------------------------------------------------------


@settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(table=tables(numeric_only=True), k=st.integers(2, 6), seed=st.integers(0, 3))
def test_contract_of_sse(table: Table, k: int, seed: int) -> None:
    check_anonymizer(Anneal(k=k, objective="sse", iterations=2000), table, seed=seed)


@settings(max_examples=40, derandomize=True)
@given(table=tables(at_least=8), k=st.integers(2, 4))
def test_a_run_never_costs_more_than_its_start(table: Table, k: int) -> None:
    problem = make_problem(table, "ncp", k, None, np.random.default_rng(0))
    start = run(problem, Trials(0), COOLING["ncp"], np.random.default_rng(0)).cost
    assert run(problem, Trials(3000), COOLING["ncp"], np.random.default_rng(0)).cost <= start


def test_same_seed_and_trials_give_the_same_release(adult: Table) -> None:
    method = Anneal(k=5, iterations=20_000)
    first, second, other = (method.anonymize(adult, rng=seed).groups.labels for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_values_stay_true_unless_squared_error_is_asked_for(adult: Table) -> None:
    assert truthfulness(adult, Anneal(k=5, iterations=20_000).anonymize(adult, rng=0)) == 1.0
    with pytest.raises(ConfigError, match=r"numeric quasi-identifiers only\. Categorical: workclass"):
        Anneal(k=5, objective="sse").anonymize(adult, rng=0)


def test_recombining_needs_several_runs() -> None:
    with pytest.raises(ConfigError, match=r"needs restarts >= 2\. Got 1 instead"):
        Anneal(k=5, recombine=True)


# ---- budget, progress, interrupts -----------------------------------------------------------------------------------


def test_small_tables_need_no_clock() -> None:
    assert isinstance(pace(100, 5.0, None), Trials)
    assert isinstance(pace(1000, 5.0, None), Seconds)
    assert isinstance(pace(10**6, 5.0, 10**9), Trials)


def test_a_budget_of_trials_is_used_up() -> None:
    budget = Trials(12_345)
    while budget.share() < 1:
        budget.count(budget.steps())
    assert budget.done == 12_345


def test_time_is_kept(adult: Table) -> None:
    Anneal(k=5, iterations=1000).anonymize(adult, rng=0)  # compiles
    began = time.perf_counter()
    problem = make_problem(adult, "ncp", 5, None, np.random.default_rng(0))
    prepared = time.perf_counter() - began
    began = time.perf_counter()
    run(problem, Seconds(0.5), COOLING["ncp"], np.random.default_rng(0))
    assert 0.5 <= time.perf_counter() - began < 0.5 + max(prepared, 1.0)


def test_no_time_at_all_returns_the_start(adult: Table) -> None:
    start = Anneal(k=5, iterations=0).anonymize(adult, rng=0)
    release = Anneal(k=5, seconds=0).anonymize(adult, rng=0)
    np.testing.assert_array_equal(release.groups.labels, start.groups.labels)


def test_preparing_counts_as_time() -> None:
    assert isinstance(budget := pace(10**4, 5.0, None, used=2.0), Seconds)
    assert budget.total == 3.0
    assert pace(10**4, 5.0, None, used=9.0).share() == 1.0


def test_a_watcher_sees_progress_and_may_stop(adult: Table) -> None:
    seen: list[tuple[float, float]] = []

    def watch(share: float, loss: float) -> bool:
        seen.append((share, loss))
        return len(seen) < 7

    with watching(watch):
        release = Anneal(k=5, iterations=1_000_000).anonymize(adult, rng=0)
    assert len(seen) == 7
    assert [share for share, _ in seen] == sorted(share for share, _ in seen)
    assert ncp(adult, release) == pytest.approx(seen[-1][1])
    assert release.provenance.notes == ("The search was stopped before its budget was used.",)
    assert report(0.5, 0.0), "nobody watches any more"


def test_an_interrupt_returns_the_best_so_far(adult: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(share: float, loss: float) -> bool:
        if share > 0.5:
            raise KeyboardInterrupt
        return True

    monkeypatch.setattr(anneal_search.progress, "report", interrupt)
    release = Anneal(k=5, iterations=200_000).anonymize(adult, rng=0)
    assert release.provenance.notes
    assert ncp(adult, release) <= ncp(adult, TopDownGreedy(k=5).anonymize(adult, rng=0))


def test_parts_of_the_work_are_reported_as_such() -> None:
    seen: list[float] = []
    with watching(lambda share, _: seen.append(share) is None), part(0.5, 1.0), part(0.5, 0.75):
        report(0.0, 0.0)
        report(2.0, 0.0)
    assert seen == [0.75, 0.875]


# ---- near records and recombination ---------------------------------------------------------------------------------


def test_blocks_find_most_of_the_nearest(adult: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedanon.anonymizers.anneal import problem as module

    costs = module.ncp_costs(adult, adult.distinct.first_rows, 0)
    exact = neighbors(costs, adult.distinct, 3, np.random.default_rng(0))
    monkeypatch.setattr(module, "BLOCK", 200)
    blocks = neighbors(costs, adult.distinct, 3, np.random.default_rng(0))
    # equally near records are interchangeable, so the mean distance to the nearest is compared, not their names
    assert exact.scale.mean() <= blocks.scale.mean() <= 1.1 * exact.scale.mean()


def test_a_tree_finds_the_nearest_points() -> None:
    from fedanon.anonymizers.anneal._tree import nearest_points

    rng = np.random.default_rng(0)
    points = np.exp(rng.normal(size=(700, 5))).round(1)
    near, distance = np.full((700, 9), -1, dtype=np.int32), np.full((700, 9), np.inf)
    nearest_points(points, np.zeros(700, dtype=bool), near, distance)
    gaps = np.square(points[:, None] - points[None]).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    np.testing.assert_allclose(distance, np.sort(gaps, axis=1)[:, :9])
    np.testing.assert_allclose(np.take_along_axis(gaps, near.astype(np.int64), axis=1), distance)


@pytest.mark.slow
def test_more_trials_never_lose_more_in_a_large_table() -> None:
    """Heavy tails, where near lists from blocks missed so many that a search of any length lost 12 % more."""
    rows = np.exp(np.random.default_rng(1).normal(size=(12_000, 8)))
    frame = pd.DataFrame(rows, columns=[f"c{i}" for i in range(8)])
    columns = (Numeric(n, Role.QUASI_IDENTIFYING, float(c.min()), float(c.max())) for n, c in frame.items())
    table = Table.from_frame(frame, Schema(tuple(columns), one_row_per_person=True))
    losses = [
        il(table, Anneal(k=5, objective="sse", iterations=trials).anonymize(table, rng=0))
        for trials in (1_000_000, 10_000_000, 60_000_000)
    ]
    assert losses[1] <= 1.005 * losses[0]
    assert losses[2] <= 1.005 * losses[1]


def test_recombination_finds_the_best_of_both(adult: Table) -> None:
    rng = np.random.default_rng(0)
    halves = [adult.select_rows(np.arange(i, i + 20)) for i in (0, 20)]
    bad = np.arange(20, dtype=np.int32) // 5  # groups in the order of the file
    good = [run(make_problem(half, "ncp", 5, None, rng), Trials(20_000), COOLING["ncp"], rng).labels for half in halves]
    first, second = np.concatenate([good[0], bad + 9]), np.concatenate([bad, good[1] + 9])
    whole = make_problem(adult.select_rows(np.arange(40)), "ncp", 5, None, rng)

    def cost(labels: IntArray) -> float:
        groups = np.unique(labels, return_inverse=True)[1].astype(np.int32)
        return run(replace(whole, start=groups), Trials(0), COOLING["ncp"], rng).cost

    joined = recombine(whole, [first, second], 60.0)
    assert joined is not None
    assert cost(joined) == pytest.approx(cost(np.concatenate([good[0], good[1] + 9])))
    assert cost(joined) < min(cost(first), cost(second))


# ---- numbers --------------------------------------------------------------------------------------------------------

# IL = 100 SSE / SST within a minute on one core; below every number in the papers implemented here
IL = {
    "tarragona": {3: 14.56, 4: 17.18, 5: 20.22, 10: 30.22, 25: 43.33, 50: 55.86, 100: 68.12},
    "census": {3: 4.73, 4: 6.11, 5: 7.34, 10: 11.48, 25: 18.15, 50: 25.00, 100: 32.50},
    "eia": {3: 0.352, 4: 0.485, 5: 0.738, 10: 1.955},
}
# what a fixed small number of trials reaches
QUICK_IL = {("tarragona", 3): 15.2, ("census", 10): 12.2}


@pytest.mark.needs_data
@pytest.mark.parametrize(("name", "k"), QUICK_IL)
def test_information_loss_after_few_trials(name: str, k: int) -> None:
    table = load(name)
    release = Anneal(k=k, objective="sse", iterations=1_000_000).anonymize(table, rng=0)
    assert il(table, release) <= QUICK_IL[name, k]


def test_adult_after_few_trials() -> None:
    table = load("adult")
    assert ncp(table, Anneal(k=5, iterations=1_500_000).anonymize(table, rng=0)) < 0.0565


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize(("name", "k"), [(name, k) for name in IL for k in IL[name]])
def test_information_loss(name: str, k: int) -> None:
    table = load(name)
    method = Anneal(k=k, objective="sse", seconds=60, restarts=4, recombine=True)
    assert statistics.median(il(table, method.anonymize(table, rng=seed)) for seed in range(5)) <= IL[name][k]


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize(("name", "most"), [("tarragona", 14.48), ("census", 4.70)])
def test_information_loss_with_recombination(name: str, most: float) -> None:
    table = load(name)
    # trials, about a minute of them: a machine that is busy makes fewer in its seconds, and the margin is narrow
    method = Anneal(k=3, objective="sse", iterations=180_000_000, restarts=8, recombine=True)
    assert il(table, method.anonymize(table, rng=0)) <= most


@pytest.mark.slow
@pytest.mark.needs_data
@pytest.mark.parametrize(("k", "most"), [(3, 0.066), (5, 0.106), (10, 0.170), (20, 0.265)])
def test_thesis_clients(k: int, most: float) -> None:
    found = []
    for client in range(10):
        table = load("adult_thesis", node=client)
        found.append(ncp(table, Anneal(k=k, seconds=10).anonymize(table, rng=0)))
    assert statistics.mean(found) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("k", "seconds", "most"), [(5, 8, 0.0565), (10, 8, 0.0840), (5, 58, 0.045), (10, 58, 0.070)])
def test_whole_adult(k: int, seconds: float, most: float) -> None:
    table = load("adult")
    assert ncp(table, Anneal(k=k, seconds=seconds).anonymize(table, rng=0)) < most
