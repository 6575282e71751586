"""What a federation is doing, by its server's folder and, if it runs, its SuperLink."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from fedanon.federated.deployment import processes
from fedanon.federated.deployment.link import Link
from fedanon.federated.deployment.server import Server
from fedanon.federated.deployment.serving import checkpoints_in, result_path
from fedanon.learning.checkpoints import Checkpoint
from fedanon.learning.suspicion import Evidence


def status(folder: Path, *, insecure: bool = False) -> dict[str, Any]:
    """Registered nodes, those online, the run, its last checkpoint and its result, and days until keys expire."""
    server = Server(folder)
    settings = server.config.run
    last = checkpoints_in(server.folder).last(settings)
    link = Link(server.folder, server.config, insecure=insecure)
    up = link.is_up()
    return {
        "server": "running" if up else "stopped",
        "registered": server.roster.names(),
        "nodes": _ask(link, "nodes", "supernode", "list") if up else [],
        "runs": _ask(link, "runs", "list") if up else [],
        "rounds": settings.rounds,
        "checkpoint_round": last.round_number if last else 0,
        "rejected": last.rejected if last else [],
        "unresponsive": last.unresponsive if last else [],
        "conduct": conduct(last) if last else [],
        "finished": result_path(server.folder, settings).exists(),
        "days_left": server.days_left(),
    }


def _ask(link: Link, what: str, *command: str) -> list[dict[str, Any]]:
    done, said = processes.call([*command, link.NAME, "--format", "json"], link.environment)
    try:
        found = json.loads(said[said.index("{") :]) if done else {}
    except ValueError:
        return []
    return list(found.get(what, []))


# ---- how each node has behaved in a run, by its checkpoint ---------------------------------------


def conduct(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """All nodes of which anything is known, those to look at first in front.

    An entry counts what was left out, by reason, and the answers that are missing; the rest is the evidence on the
    node's updates (:mod:`fedanon.learning.suspicion`), and whether it is enough to suspect it.
    """
    evidence = {int(node): Evidence(**kept) for node, kept in checkpoint.evidence.items()}
    faults = checkpoint.rejected + checkpoint.unresponsive
    nodes = sorted(evidence.keys() | {fault["node"] for fault in faults})
    found = [_of_node(node, checkpoint, evidence.get(node, Evidence())) for node in nodes]
    return sorted(found, key=lambda entry: (not entry["suspect"], -entry["left_out"], -entry["no_answer"]))


def _of_node(node: int, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    reasons = Counter(entry["reason"] for entry in checkpoint.rejected if entry["node"] == node)
    return {
        "node": node,
        "suspect": evidence.is_suspect,
        "left_out": reasons.total(),
        "reasons": dict(reasons),
        "no_answer": sum(entry["node"] == node for entry in checkpoint.unresponsive),
        **evidence.report(),
    }
