"""The rounds of a run over a transport of this process: no Flower, no messages."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from subprocess import run
from typing import Any

import numpy as np
import pytest

from fedanon.errors import InfeasibleError, SchemaError
from fedanon.learning.aggregators import Aggregator
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.node import NodeFacts
from fedanon.learning.participants import Participants
from fedanon.learning.rounds import Reply, Rounds, mean_scores
from fedanon.learning.settings import RunSettings

WIDTH = 3


def facts(n_train: int = 10, n_test: int = 5, version: str = "1") -> NodeFacts:
    return NodeFacts("schema", version, WIDTH, n_train, n_test, {})


class Steps:
    """Nodes that always move the model by one; each may do something else."""

    def __init__(self, count: int, **lies: Any) -> None:
        self.participants = Participants()
        self.asked: list[list[int]] = []
        self.lies = lies
        for node in range(count):
            self.participants.admit(100 + node, node, facts())

    def train(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        self.asked.append(list(nodes))
        silent = [node for node in nodes if node in self.lies.get("silent", ())]
        self.participants.note_unresponsive(number, silent, "train")
        return [self.reply(number, node, model) for node in nodes if node not in silent]

    def evaluate(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        return [self.reply(number, node, model) for node in nodes]

    def reply(self, number: int, node: int, model: Aggregator) -> Reply:
        def update() -> tuple[int, int, list[np.ndarray]]:
            return number, self.lies.get("examples", {}).get(node, 10), [array + 1.0 for array in model.parameters]

        def scores() -> tuple[Mapping[str, Any], int]:
            return {"accuracy": 0.5, "auc": 0.75, **self.lies.get("scores", {}).get(node, {})}, 5

        return Reply(node, update, scores)


def test_every_round_moves_the_model_and_is_scored() -> None:
    told: list[dict[str, Any]] = []
    nodes = Steps(4)
    settings = RunSettings(rounds=3, nodes=4)
    rounds = Rounds(settings, nodes.participants, nodes, score=lambda p: {"bias": float(p[1][0])}, on_round=told.append)
    result = rounds.run()
    assert [array.tolist() for array in result.parameters] == [[3.0] * WIDTH, [3.0]]
    assert [entry["bias"] for entry in result.rounds] == [1.0, 2.0, 3.0]
    assert result.rounds == told
    assert result.rounds[0] == {"round": 1, "accuracy": 0.5, "auc_client_mean": 0.75, "bias": 1.0}
    assert (result.rejected, result.unresponsive) == ([], [])


def test_who_lies_is_left_out_and_who_is_unresponsive_is_noted() -> None:
    nodes = Steps(5, examples={101: 99}, silent=[103], scores={104: {"name": 1.0}})
    result = Rounds(RunSettings(rounds=1, nodes=5), nodes.participants, nodes).run()
    assert [(entry["node"], entry["reason"]) for entry in result.rejected] == [
        (1, "its number of examples is not the one it declared before the first round"),
        (4, "it sends 1 metrics that are not agreed on"),
    ]
    assert result.unresponsive == [{"round": 1, "node": 3, "during": "train"}]


def test_too_few_usable_updates_end_the_run() -> None:
    nodes = Steps(4, silent=[100, 101, 102])
    with pytest.raises(InfeasibleError, match="1 of 4 updates are usable; at least 2 are needed"):
        Rounds(RunSettings(rounds=1, nodes=4), nodes.participants, nodes).run()


def test_a_resumed_run_asks_the_same_nodes(tmp_path: Any) -> None:
    whole, first, second = Steps(6), Steps(6), Steps(6)
    chosen = RunSettings(rounds=4, nodes=6, nodes_per_round=2)
    expected = Rounds(chosen, whole.participants, whole).run()
    checkpoints = Checkpoints(tmp_path)
    half = RunSettings(rounds=2, nodes=6, nodes_per_round=2)
    Rounds(half, first.participants, first, checkpoints=checkpoints).run()
    result = Rounds(chosen, second.participants, second, checkpoints=checkpoints).run()
    assert first.asked + second.asked == whole.asked
    assert {len(asked) for asked in whole.asked} == {2}
    assert result.rounds == expected.rounds


def test_nodes_of_different_versions_do_not_train_together() -> None:
    participants = Participants()
    participants.admit(1, 0, facts(version="1"))
    participants.admit(2, 1, facts(version="2"))
    with pytest.raises(SchemaError, match=r"2 different schemas or versions among 2 nodes.*node 0 against node 1"):
        participants.check_agreement()


def test_means_are_weighted_by_test_rows_but_for_the_auc() -> None:
    scores = [({"accuracy": 1.0, "auc": 1.0}, 1), ({"accuracy": 0.0, "auc": 0.5}, 3), ({"accuracy": 0.0}, 4)]
    found = mean_scores(scores)
    assert found == {"accuracy": 0.125, "auc_client_mean": 0.75}


def test_learning_does_not_import_flower() -> None:
    code = "import sys, fedanon.learning.rounds, fedanon.learning.malicious; print('flwr' in sys.modules)"
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
