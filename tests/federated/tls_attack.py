"""A server app that attacks: what replaces the rounds of a run in a test over real TLS nodes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.federated import wire
from fedanon.federated.deployment.serving import FOLDER_VARIABLE
from fedanon.federated.server import FederatedRun
from fedanon.learning.rounds import RunResult
from tests.federated.hostile_server import WIDTH, read_many_people, read_one_person

#: messages to a node that does not give in
MOST = 30


class Ask:
    """Scores of one node, by messages of Flower."""

    def __init__(self, run: FederatedRun, node: int) -> None:
        self.run, self.node, self.asked, self.refusals = run, node, 0, set[str]()

    def __call__(self, coefficients: Any, intercept: float) -> dict[str, float] | None:
        self.asked += 1
        arrays = [np.asarray(coefficients, dtype=np.float64), np.array([float(intercept)])]
        content = wire.request_content(1, wire.pack_arrays(arrays))
        [reply] = self.run.grid.send_and_receive([wire.request(self.node, "evaluate", 1, content)], timeout=600)
        if reply.has_error() or self.asked > MOST:
            self.refusals |= {reply.error.reason} if reply.has_error() else set()
            return None
        return {name.removesuffix("_released"): float(value) for name, value in wire.read_metrics(reply).items()}


def attack(run: FederatedRun) -> RunResult:
    """Read the only test row of small nodes and the test rows of others, and write down what was found."""
    found, everyone = {}, {}
    for node in run.grid.get_node_ids():
        content = wire.request_content(0, wire.pack_arrays([]))
        [reply] = run.grid.send_and_receive([wire.request(node, "query", 0, content)], timeout=600)
        number, facts = wire.read_facts(reply)
        everyone[number] = facts
        ask = Ask(run, node)
        one = read_one_person(ask, WIDTH) if facts.n_test == 1 else None
        records = [one] if one else read_many_people(ask, WIDTH)
        found[number] = {"records": records, "asked": ask.asked, "n_test": facts.n_test, "refusals": list(ask.refusals)}
    path = Path(os.environ[FOLDER_VARIABLE]) / "attack.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return RunResult(parameters=[np.zeros(1)], facts=everyone)
