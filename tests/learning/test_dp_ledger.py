"""A node's ledger: what it asks of a run, and what all runs together may cost."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedanon.errors import DataError, InfeasibleError, PrivacyViolationError
from fedanon.federated.client import client_app
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.joint.methods.mondrian import FederatedMondrian
from fedanon.learning.dp_ledger import NodeLedger
from fedanon.learning.dp_training import read_note
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings
from fedanon.privacy.accounting.accountant import epsilon_of
from fedanon.privacy.accounting.noise import SecureNoise
from tests.federated.conftest import settings
from tests.joint.signed_grid import SignedGrid
from tests.learning.test_dp_training import private


def run_of(mode: str = "record", epsilon: float = 1.0, **more: Any) -> RunSettings:
    return private(mode, epsilon, **({"randomness": "secure"} | more))


def ledger(path: Path | None = None, most: float = 1.0, *, trust_server: bool = False) -> NodeLedger:
    return NodeLedger(max_epsilon=most, max_delta=1e-5, trust_server=trust_server, path=path)


def answered(asked: Callable[[RunSettings], None], run: RunSettings, times: int) -> int:
    """How many of so many rounds a node answers."""
    count = 0
    for _ in range(times):
        try:
            asked(run)
            count += 1
        except PrivacyViolationError:
            pass
    return count


def played(run: RunSettings, folder: Path) -> RunResult:
    """A run whose nodes each keep a budget of 1 in a ledger of this folder."""
    grid = LocalGrid(client_app(), run)
    for node, context in grid._contexts.items():
        asked = {"max-epsilon": 1.0, "max-delta": 1e-5, "ledger": str(folder / f"{node}.json")}
        context.node_config.update(asked)
    return FederatedRun(grid, run).run()


# ---- what a run must promise --------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["record", "local", "central"])
def test_a_run_within_the_budget_is_joined(mode: str) -> None:
    ledger(trust_server=mode == "central").check(run_of(mode))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (settings(), "privacy budget of at most 1"),
        (run_of(epsilon=1.5), "privacy budget of at most 1"),
        (run_of(randomness="seeded"), "secure noise: the server knows the seed"),
        (replace(run_of(), dp_settings={"epsilon": 1, "delta": 0.4}), "delta of at most 1e-05"),
        (run_of("central"), "only if it adds the noise itself"),
    ],
)
def test_a_run_that_promises_less_is_refused(run: RunSettings, message: str) -> None:
    with pytest.raises(PrivacyViolationError, match=message):
        ledger().check(run)


def test_a_node_that_asks_for_nothing_has_no_ledger() -> None:
    assert NodeLedger.from_config({}) is None
    assert NodeLedger.from_config({"max-epsilon": 0.0, "max-delta": 1e-5, "ledger": "told.json"}) is None
    found = NodeLedger.from_config({"max-epsilon": 2.0, "max-delta": 1e-6, "ledger": "told.json"})
    assert found == NodeLedger(max_epsilon=2.0, max_delta=1e-6, trust_server=False, path=Path("told.json"))


def test_what_a_node_insists_on_is_not_lost_by_a_renaming(tmp_path: Path) -> None:
    found = NodeLedger.from_config({"most-epsilon": 2.0, "most-delta": 1e-6})
    assert found == NodeLedger(max_epsilon=2.0, max_delta=1e-6)
    (tmp_path / "node.toml").write_text("least_k = 7\nmost_epsilon = 2.0\nmost_delta = 1e-6\n")
    with pytest.warns(FutureWarning, match="is now called"):
        config = NodeConfig.read(tmp_path)
    assert (config.min_k, config.max_epsilon, config.max_delta) == (7, 2.0, 1e-6)


# ---- over all runs ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["record", "local"])
def test_a_run_that_is_started_again_tells_no_more(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "told.json"
    assert answered(ledger(path).spend, run_of(mode), 10) == 4  # a run's rounds: as many as its noise was planned for
    assert epsilon_of(read_note(path), 1e-5) == pytest.approx(1.0, rel=1e-6)
    assert answered(ledger(path).spend, run_of(mode, epsilon=0.1), 5) == 0  # other settings, the same rows
    assert path.stat().st_mode & 0o777 == 0o600


def test_nodes_do_not_answer_a_run_that_is_started_again(tmp_path: Path) -> None:
    run = run_of(rounds=2)

    assert played(run, tmp_path).unresponsive == []
    with pytest.raises(InfeasibleError, match="Round 1: 0 of 5 updates are usable"):
        played(run, tmp_path)


def test_runs_add_up(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    assert answered(ledger(path, most=2.0).spend, run_of(), 4) == 4
    more = answered(ledger(path, most=2.0).spend, run_of(), 100)
    assert 4 <= more < 100  # rounds of one kind cost less than the sum of their epsilons
    assert epsilon_of(read_note(path), 1e-5) <= 2.0
    assert answered(ledger(path, most=3.0).spend, run_of(), 1) == 1  # its owner may allow more


def test_a_server_that_adds_the_noise_is_trusted_to_count(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    assert answered(ledger(path).spend, run_of("central"), 10) == 10
    assert not path.exists()


def test_processes_that_answer_at_once_count_each_other(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    run = run_of(rounds=20)
    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: answered(ledger(path).spend, run, 10), range(8))) == 20


def test_a_damaged_ledger_is_told_and_allows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    for text in ("{", '[{"noise_multiplier": -1}]', '[{"epsilon": 1}]'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"told\.json of the privacy budget is damaged"):
            ledger(path).spend(run_of())


# ---- counts of anonymizing together -----------------------------------------------------------------


def counting(**more: Any) -> FederatedMondrian:
    return FederatedMondrian(**({"k": 10, "counts": "secure_dp", "epsilon": 0.5} | more))


@pytest.mark.parametrize(
    "more", [{"counts": "plain"}, {"counts": "secure"}, {"epsilon": 1.5}, {"randomness": "seeded"}]
)
def test_counts_without_such_noise_are_refused(more: dict[str, Any]) -> None:
    ledger().check_counts(counting())
    with pytest.raises(PrivacyViolationError, match="only with secure noise and a budget of at most 1"):
        ledger().check_counts(counting(**more))
    with pytest.raises(PrivacyViolationError, match="only with secure noise"):
        ledger().check_counts(counting(randomness="seeded"))


def test_counts_and_training_share_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "told.json"
    ledger(path).spend_counts(counting())
    assert answered(ledger(path).spend, run_of(epsilon=0.5), 10) == 4  # the other half
    for method in (counting(), counting(epsilon=0.01)):
        with pytest.raises(PrivacyViolationError, match="have given away what a privacy budget of 1 allows"):
            ledger(path).spend_counts(method)
    assert (tmp_path / "told_counts.json").read_text() == "[0.5]\n"
    assert (tmp_path / "told_counts.json").stat().st_mode & 0o777 == 0o600


def test_a_damaged_note_of_counts_is_told(tmp_path: Path) -> None:
    for text in ("{", "[-1]", '["x"]', "3"):
        (tmp_path / "told_counts.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=r"told_counts\.json of the privacy budget is damaged"):
            ledger(tmp_path / "told.json").spend(run_of())


def test_a_protocol_that_is_started_again_is_answered_while_the_budget_lasts(tmp_path: Path) -> None:
    run = replace(
        run_of("local", epsilon=0.2, rounds=2),
        method="federated_mondrian",
        method_settings={"k": 5, "counts": "secure_dp", "epsilon": 0.4},
    )
    assert played(run, tmp_path).unresponsive == []
    assert (tmp_path / "1_counts.json").read_text() == "[0.4]\n", "all questions of a protocol are one entry"
    with pytest.raises(InfeasibleError):
        played(run, tmp_path)


def test_a_node_that_refused_the_first_question_refuses_the_next(tmp_path: Path) -> None:
    """The steps of a run are noted, too: a question that could not be paid must not count as one that was."""
    asked = {"max-epsilon": 1.0, "max-delta": 1e-5, "ledger": str(tmp_path / "told.json")}
    dp = {"mode": "local", "epsilon": 0.2, "randomness": "secure"}
    for paid in (True, False):
        grid = SignedGrid({0: asked}, method_settings={"k": 5, "counts": "dp", "epsilon": 0.6}, dp_settings=dp)
        for step in (1, 2):
            reply = grid.count(step, None)
            assert reply.has_content() == paid
            assert paid or "have given away what a privacy budget of 1 allows" in reply.error.reason
    assert (tmp_path / "told_counts.json").read_text() == "[0.6]\n"


# ---- noise of processes -------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the interpreter warns of forks beside threads
def test_processes_forked_from_one_draw_different_noise() -> None:
    """A deployed node forks a process a message: noise that two share could be taken off."""
    noise = SecureNoise()
    drawn = [noise.gaussian(np.zeros(4), 1.0)]
    for _ in range(2):
        reading, writing = os.pipe()
        if not (child := os.fork()):
            os.write(writing, noise.gaussian(np.zeros(4), 1.0).tobytes())
            os._exit(0)
        os.waitpid(child, 0)
        drawn.append(np.frombuffer(os.read(reading, 32)))
        os.close(reading)
        os.close(writing)
    drawn.append(noise.gaussian(np.zeros(4), 1.0))
    assert len(np.unique(np.concatenate(drawn))) == 16
