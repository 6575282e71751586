"""What has left a node, in words and bytes: its audit log, read for people."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedanon.errors import DataError
from fedanon.federated.deployment.config import NodeConfig
from fedanon.federated.egress import LEDGER_FILE, LOG_FILE
from fedanon.io.audit import read_chain
from fedanon.learning.egress_ledger import EgressLedger

WORDS = {
    "facts": "numbers of rows, and metrics of the release",
    "update": "model updates trained on the release",
    "egress": "numbers of what left in the run",
    "app": "answers of an app of other people, which has seen the release",
    "key": "keys for masks, and the bins of the schema",
    "scores release": "scores on a k-anonymous release of the test people",
    "scores private": "noisy histograms of predictions for raw test rows",
    "scores shared": "histograms of predictions for raw test rows, with noise that nodes share, behind masks",
    "scores raw": "scores on raw test rows",
    "scores none": "evaluations without any score",
    "counts plain": "exact counts of training rows",
    "counts threshold": "counts of training rows, small ones left out",
    "counts secure": "counts behind masks: the server reads sums over nodes",
    "counts dp": "noisy counts of training rows",
    "counts secure_dp": "noisy counts behind masks",
}


@dataclass
class RunEgress:
    """What has left in one run.

    Parameters
    ----------
    run : Flower's identifier.
    first, last : times of the first and the last line about it (UTC).
    releases : which it has seen, with their method.
    answers, bytes : number and size of the answers, by what they say.
    refusals : how many of each kind.
    """

    run: str
    first: str
    last: str = ""
    releases: dict[str, str] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)

    def add(self, event: str, time: str, facts: dict[str, Any]) -> None:
        """Take one line of the log into account."""
        self.last = time
        if event == "release":
            settings = ", ".join(f"{name}={value}" for name, value in sorted(facts["settings"].items()))
            self.releases[facts["release"]] = f"{facts['method']} ({settings})"
        elif event == "refusal":
            _add(self.refusals, facts["refusal"], 1)
        elif event == "answer":
            if "release" in facts:
                self.releases.setdefault(facts["release"], "made in an earlier run")
            detail = facts.get("scored") or facts.get("rule")
            what = WORDS.get(f"{facts['kind']} {detail}" if detail else facts["kind"], facts["kind"])
            _add(self.answers, what, 1)
            _add(self.bytes, what, facts["bytes"])


def _add(totals: dict[str, int], name: str, more: int) -> None:
    totals[name] = totals.get(name, 0) + more


def read_egress(folder: Path) -> list[RunEgress]:
    """What has left the node of a folder, run by run in their order; DataError if its log was changed."""
    path = folder / LOG_FILE
    if not path.exists():
        return []
    chain, _ = read_chain(path)
    if chain.broken is not None:
        raise DataError(f"Line {chain.broken} of {LOG_FILE} does not fit: {chain.reason}.")
    runs: dict[str, RunEgress] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        entry = json.loads(line)
        name = entry["facts"]["run"]
        runs.setdefault(name, RunEgress(name, entry["time"])).add(entry["event"], entry["time"], entry["facts"])
    return list(runs.values())


def what_is_left(folder: Path) -> dict[str, str]:
    """How much of its limits a node has used, over all runs."""
    config, note = NodeConfig.read(folder), EgressLedger(folder / LEDGER_FILE).read()
    used = {
        "releases of one data file": (max(map(len, note.releases.values()), default=0), config.max_releases),
        "epsilon of noisy counts": (note.count_epsilon, config.count_epsilon),
    }
    if config.scores == "private":
        used["epsilon of private scores"] = note.score_epsilon, config.max_score_epsilon
    return {what: f"{spent:g} of {most:g}" for what, (spent, most) in used.items()}
