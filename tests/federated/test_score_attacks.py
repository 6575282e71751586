"""Scores under attack, at length: ten times the messages it takes to read an open node, and single bits.

The figures of docs/explanation/threat_model.md: pytest -s -m slow tests/federated/test_score_attacks.py
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from fedanon.federated import wire
from fedanon.federated.deployment.config import SPLIT_KEY
from fedanon.federated.deployment.folders import write_private
from fedanon.federated.deployment.node import NodeFolder
from fedanon.federated.policy import NodePolicy
from fedanon.joint.node import make_node as make_learner
from fedanon.learning.node import Node
from fedanon.learning.private_scores import EDGES, N_BINS
from fedanon.types import AnyArray
from tests.federated.deployed import write_tables
from tests.federated.hostile_server import (
    OPEN,
    TEMPLATE,
    WIDTH,
    HostileServer,
    make_node,
    n_recovered,
    read_many_people,
)
from tests.federated.test_egress import table_of, truth_of

STEEP = 1e6
TEN_TIMES = 9000
#: nodes whose test people are asked for bits, and the limits lifted for it
NODES = {"open": 10, "release": 150, "private": 40}
#: how often a true claim may fail a test; the 95 % interval that is printed misses the truth one time in twenty
CHANCE = 1e-6
LIFTED = {"evaluations_per_run": 10**6, "evaluations_per_day": 10**6}
POLICIES: dict[str, dict[str, Any]] = {
    "open": OPEN,
    "release": LIFTED,
    "private": LIFTED | {"scores": "private"},
}

pytestmark = pytest.mark.slow


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def server_of(folder: Path, policy: str, number: int) -> HostileServer:
    """A node and its server; its table and the key of its split follow from its number, so its release does too."""
    folder.mkdir()
    [table] = write_tables(folder, 1, 300, first=number)
    node = make_node(folder, table=table, number=number, **POLICIES[policy])
    write_private(node.folder / SPLIT_KEY, hashlib.sha256(b"%d" % number).digest())
    return HostileServer(node)


def interval(right: int, tries: int) -> tuple[float, float]:
    """Clopper and Pearson's, 95 %: for independent tries."""
    found = scipy.stats.binomtest(right, tries).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


# ---- records -------------------------------------------------------------------------------------


def test_ten_times_the_messages_read_no_record(policy: str, tmp_path: Path) -> None:
    """An open node is read by some 900; others are asked with ever other models until there were ten times as many."""
    name, server = policy, server_of(tmp_path / "0", policy, 0)
    wanted, records, steep = 1 if name == "open" else TEN_TIMES, 0, STEEP
    while server.asked < wanted:
        records += n_recovered(read_many_people(Repeating(server), WIDTH, steep), truth_of(server.node))
        steep = STEEP if steep < 1e3 else steep * 0.9
    print(f"{name}: {records} records in {server.asked} messages, {len(server.replies)} answered")
    assert records == (60 if name == "open" else 0)
    assert name != "open" or server.asked <= TEN_TIMES / 10


class Repeating:
    """Scores as numbers, whatever form they come in; rounds go up, since one is scored once."""

    def __init__(self, server: HostileServer) -> None:
        self.server = server

    def __call__(self, coefficients: AnyArray, intercept: float) -> dict[str, float] | None:
        reply = self.server.ask("evaluate", [coefficients, np.array([float(intercept)])], self.server.asked + 1)
        if reply is None:
            return None
        found = wire.read_metrics(reply)
        if "histogram" not in found:
            return {name.removesuffix("_released"): float(value) for name, value in found.items()}
        counts = np.array(found["histogram"]).reshape(2, N_BINS)
        positive, high = max(counts[1].sum(), 1), EDGES.searchsorted(0.5, side="right")
        n = int(found["num-examples"])
        accuracy = (counts[1, high:].sum() + counts[0, :high].sum()) / n
        return {
            "num-examples": n,
            "accuracy": accuracy,
            "recall": counts[1, high:].sum() / positive,
            "brier": 1 - accuracy,
            "log_loss": 1 - accuracy,
        }


# ---- bits ----------------------------------------------------------------------------------------


def learner_of(node: NodeFolder) -> Node:
    """What the node makes of its table; the attacker is given all of it but one bit."""
    rules = node.config.rules(node.folder / "split.key")
    return make_learner(table_of(node), TEMPLATE, node.config.number, rules)


def guess_bits(server: HostileServer) -> tuple[int, int, int, int]:
    """Is the age of a test person above the middle of its cell? Guesses, right ones, and those with an answer of each.

    The attacker knows all other test rows and the release. A steep model counts the people above the middle; what the
    others do not explain is the person. Ages are uniform, so given the release and all others, the age of someone who
    is not at an end of the cell is above its middle with probability 1/2. One person of a class is asked about: guesses
    about two of them would depend on each other. (Who is at an end, someone who knows all others reads in the release.)
    """
    learner = learner_of(server.node)
    test = learner._split[1]
    ages = learner.encoding.encode_table(test).astype(np.float64)[:, 0]
    release = learner.test_release
    cells = release.cells["age"].select(release.groups.labels)
    low, high = cells.low / 110, cells.high / 110  # type: ignore[union-attr]
    middles = (low + high) / 2
    tries = right = answers = right_answers = 0
    rng = np.random.default_rng(server.node.config.number)
    for group in range(release.groups.count):
        inside = (ages > low + 1e-6) & (ages < high - 1e-6) & (release.groups.labels == group)
        if not inside.any():
            continue
        i = int(rng.choice(np.flatnonzero(inside)))
        place = float(middles[i]) + 1e-7
        found = Repeating(server)(np.eye(WIDTH)[0] * STEEP, -STEEP * place)
        bit = bool(ages[i] > place)
        if found is None:
            guess = bool(rng.random() < 0.5)
        else:
            answers += 1
            above = n_above(found, learner)
            if learner.rules.scores == "release":
                assert abs(above - (middles > place).sum()) < 0.5, "the answer is what the release itself says"
            guess = bool(above - (np.delete(ages, i) > place).sum() > 0.5)
            right_answers += guess == bit
        tries += 1
        right += guess == bit
    return tries, right, answers, right_answers


def n_above(found: dict[str, float], learner: Node) -> float:
    """How many test people a model of one threshold takes for positive."""
    truth = (learner.released_test if learner.rules.scores == "release" else learner.test)[1]
    n, positive = len(truth), int(truth.sum())
    true_positive = found["recall"] * positive
    return true_positive + (n - positive) - (found["accuracy"] * n - true_positive)


def test_single_bits_are_guessed_and_not_read(policy: str, tmp_path: Path) -> None:
    nodes = NODES[policy]
    each = [guess_bits(server_of(tmp_path / str(number), policy, number)) for number in range(nodes)]
    tries, right, answers, known = (sum(numbers) for numbers in zip(*each, strict=True))
    low, high = interval(right, tries)
    print(
        f"{policy}: {right} of {tries} bits right ({right / tries:.3f}, {low:.3f} to {high:.3f}), "
        f"{known} of the {answers} that were answered"
    )
    assert tries > 5 * nodes
    if policy == "open":
        assert right == tries
    elif policy == "release":
        assert answers == tries
        assert scipy.stats.binomtest(right, tries).pvalue > CHANCE
    else:
        assert answers == 3 * nodes, "max_score_epsilon"
        # a value is one of two neighbors of the table without its person, so an answer costs twice its epsilon
        bound = math.exp(2 * NodePolicy().score_epsilon)
        assert scipy.stats.binom.sf(known - 1, answers, bound / (1 + bound)) > CHANCE
        assert scipy.stats.binomtest(right - known, tries - answers).pvalue > CHANCE
