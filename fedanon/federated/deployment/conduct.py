"""How each client has behaved in a run, as the checkpoint tells: what was left out, and who is a suspect."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fedanon.federated.checkpoints import Checkpoint
from fedanon.federated.suspicion import Evidence


def conduct(checkpoint: Checkpoint) -> list[dict[str, Any]]:
    """All clients of whom anything is known, those to look at first in front.

    An entry counts what was left out, by reason, and the answers that are missing; the rest is the evidence on the
    client's updates (:mod:`fedanon.federated.suspicion`), and whether it is enough to suspect it.
    """
    evidence = {int(client): Evidence(**kept) for client, kept in checkpoint.evidence.items()}
    faults = checkpoint.rejected + checkpoint.silent
    clients = sorted(evidence.keys() | {fault["client"] for fault in faults})
    found = [_of_client(client, checkpoint, evidence.get(client, Evidence())) for client in clients]
    return sorted(found, key=lambda entry: (not entry["suspect"], -entry["left_out"], -entry["no_answer"]))


def _of_client(client: int, checkpoint: Checkpoint, evidence: Evidence) -> dict[str, Any]:
    reasons = Counter(entry["reason"] for entry in checkpoint.rejected if entry["client"] == client)
    return {
        "client": client,
        "suspect": evidence.is_suspect,
        "left_out": reasons.total(),
        "reasons": dict(reasons),
        "no_answer": sum(entry["client"] == client for entry in checkpoint.silent),
        **evidence.told(),
    }
