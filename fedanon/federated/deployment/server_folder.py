"""What the folder of a server says of its run, read by anyone who may look into it: no SuperLink is asked."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from fedanon.federated.deployment.certificates import days_left
from fedanon.federated.deployment.config import ServerConfig
from fedanon.federated.deployment.presence import who_is_present
from fedanon.federated.deployment.roster import Roster
from fedanon.learning.checkpoints import Checkpoint, Checkpoints
from fedanon.learning.settings import RunSettings
from fedanon.learning.suspicion import NodeEvidence

AUTHORITY = "ca.crt"
CERTIFICATE = "server.crt"
PID_FILE = "server.pid"


def checkpoints_in(folder: Path) -> Checkpoints:
    """The checkpoints of a server."""
    return Checkpoints(folder / "checkpoints")


def result_path(folder: Path, settings: RunSettings) -> Path:
    """Where the result of a run lies: runs with other settings never meet."""
    return folder / "results" / f"{Checkpoints.name(settings)}-{settings.rounds}.json"


def certificate_days(folder: Path) -> dict[str, int]:
    """Whole days until the server's certificate and its authority expire."""
    return {name: math.floor(days_left(folder / name)) for name in (CERTIFICATE, AUTHORITY)}


def read_server_folder(folder: Path) -> dict[str, Any]:
    """Registered nodes, the run with its rounds and faults until now, and days until keys expire."""
    settings = ServerConfig.read(folder).run
    last = checkpoints_in(folder).last(settings)
    return {
        "present": who_is_present(folder / PID_FILE) is not None,
        "registered": Roster(folder).names(),
        "rounds": settings.rounds,
        "checkpoint_round": last.round_number if last else 0,
        "scores": last.rounds if last else [],
        "names": last.names if last else {},
        "rejected": last.rejected if last else [],
        "unresponsive": last.unresponsive if last else [],
        "conduct": conduct(last) if last else [],
        "finished": result_path(folder, settings).exists(),
        "days_left": certificate_days(folder),
    }


def conduct(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """How each node has behaved in a run: all of which anything is known, those to look at first in front.

    An entry counts what was left out, by reason, and the answers that are missing; the rest is the evidence on the
    node's updates (:mod:`fedanon.learning.suspicion`), and whether it is enough to suspect it.
    """
    evidence = {int(node): NodeEvidence.restored(kept) for node, kept in checkpoint.evidence.items()}
    faults = checkpoint.rejected + checkpoint.unresponsive
    # who never said its number is known by its name
    found_nodes = evidence.keys() | {fault["node"] for fault in faults}
    nodes = sorted(found_nodes, key=lambda node: (isinstance(node, str), node))
    found = [_of_node(node, checkpoint, evidence.get(node, NodeEvidence())) for node in nodes]
    return sorted(found, key=lambda entry: (not entry["suspect"], -entry["left_out"], -entry["no_answer"]))


def _of_node(node: int | str, checkpoint: Checkpoint, evidence: NodeEvidence) -> dict[str, Any]:
    reasons = Counter(entry["reason"] for entry in checkpoint.rejected if entry["node"] == node)
    return {
        "node": node,
        "name": checkpoint.names.get(str(node), str(node)),
        "suspect": evidence.is_suspect,
        "left_out": reasons.total(),
        "reasons": dict(reasons),
        "no_answer": sum(entry["node"] == node for entry in checkpoint.unresponsive),
        **evidence.report(),
    }
