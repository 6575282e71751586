"""Scores under attack, at length: ten times the messages it takes to read an open node, and single bits.

The figures of docs/threat_model.md: pytest -s -m slow tests/federated/test_score_attacks.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedanon.federated import wire
from fedanon.federated.deployment.node import NodeFolder
from fedanon.joint.node import make_node as make_learner
from fedanon.learning.node import Node
from fedanon.learning.private_scores import EDGES, N_BINS
from fedanon.types import AnyArray
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
#: nodes whose test people are attacked, and the limits lifted for it
NODES = 8
LIFTED = {"evaluations_per_run": 10**6, "evaluations_per_day": 10**6}
POLICIES: dict[str, dict[str, Any]] = {
    "open": OPEN,
    "release": LIFTED,
    "private": LIFTED | {"scores": "private"},
}

pytestmark = pytest.mark.slow


@pytest.fixture(params=POLICIES)
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[HostileServer]]:
    """Nodes with keys of their own, each with its server."""
    made = []
    for number in range(NODES):
        folder = tmp_path / str(number)
        folder.mkdir()
        made.append(HostileServer(make_node(folder, number=number, **POLICIES[request.param])))
    return str(request.param), made


def interval(right: int, tries: int) -> tuple[float, float]:
    """Wilson's, 95 %."""
    z, p = 1.96, right / tries
    middle, half = p + z * z / (2 * tries), z * np.sqrt(p * (1 - p) / tries + z * z / (4 * tries * tries))
    return float((middle - half) / (1 + z * z / tries)), float((middle + half) / (1 + z * z / tries))


# ---- records -------------------------------------------------------------------------------------


def test_ten_times_the_messages_read_no_record(servers: tuple[str, list[HostileServer]]) -> None:
    """An open node is read by some 900; others are asked with ever other models until there were ten times as many."""
    name, [server, *_] = servers
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
    others do not explain is the person.
    """
    learner = learner_of(server.node)
    test = learner._split[1]
    features = learner.encoding.encode_table(test).astype(np.float64)
    release = learner.test_release
    cells = release.cells["age"].select(release.groups.labels)
    middles = (cells.low + cells.high) / 2 / 110  # type: ignore[union-attr]
    right = answers = right_answers = 0
    rng = np.random.default_rng(server.node.config.number)
    for i in range(len(test)):
        place = float(middles[i]) + 1e-7
        found = Repeating(server)(np.eye(WIDTH)[0] * STEEP, -STEEP * place)
        bit = bool(features[i, 0] > place)
        if found is None:
            guess = bool(rng.random() < 0.5)
        else:
            answers += 1
            others = np.delete(features[:, 0], i) > place
            guess = bool(n_above(found, learner) - others.sum() > 0.5)
            right_answers += guess == bit
        right += guess == bit
    return len(test), right, answers, right_answers


def n_above(found: dict[str, float], learner: Node) -> float:
    """How many test people a model of one threshold takes for positive."""
    truth = (learner.released_test if learner.rules.scores == "release" else learner.test)[1]
    n, positive = len(truth), int(truth.sum())
    true_positive = found["recall"] * positive
    return true_positive + (n - positive) - (found["accuracy"] * n - true_positive)


def test_single_bits_are_guessed_and_not_read(servers: tuple[str, list[HostileServer]]) -> None:
    name, all_servers = servers
    tries, right, answers, known = (sum(each) for each in zip(*(guess_bits(s) for s in all_servers), strict=True))
    low, high = interval(right, tries)
    print(
        f"{name}: {right} of {tries} bits right ({right / tries:.3f}, {low:.3f} to {high:.3f}), "
        f"{known} of the {answers} that were answered"
    )
    if name == "open":
        assert right == tries
    else:
        assert low < 0.5 < high
