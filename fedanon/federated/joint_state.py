"""Joint anonymization over Flower, the node's side: what it remembers between the messages of a run.

That is its key, its peers, the last step that it answered, and the plan. A query that is answered twice would disclose
more than its share: with noise, the average of two answers has less of it. The context of Flower stays at the node.
"""

from __future__ import annotations

import hashlib
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.federated import wire
from fedanon.joint.masks import Keys, new_secret

STEP, PLAN, SECRET, PEERS = "joint-step", "joint-plan", "joint-secret", "joint-peers"
#: the key of masks for scores: no mask is used for two answers, whatever steps and rounds a server names
SCORE_SECRET = "score-secret"


def nothing_answered(context: Context) -> bool:
    """Whether no query of this run has been answered yet."""
    return STEP not in context.state


def answer_once(context: Context, step: int) -> None:
    """Note that a step is answered; reject it if it, or a later one, has been answered before."""
    last = context.state[STEP]["step"] if STEP in context.state else 0
    if not isinstance(last, int) or step <= last:
        raise UpdateRejectedError("This node has answered this step, or a later one, already.")
    context.state[STEP] = ConfigRecord({"step": step})


def secret(context: Context, name: str = SECRET) -> bytes:
    """This node's private key for the run, made when it is first asked for."""
    if name not in context.state:
        context.state[name] = ConfigRecord({"key": new_secret()})
    return bytes(context.state[name]["key"])  # type: ignore[arg-type]


def keep_peers(context: Context, keys: Keys, *, all_stay: bool) -> None:
    """Note with whom counts are summed; reject new peers, other keys and, if ``all_stay``, fewer peers.

    Sums over peers of the server's choice would reveal the counts of one node as a difference.
    """
    if PEERS in context.state:
        known = {int(number): key for number, key in context.state[PEERS].items()}
        if not set(keys.items()) <= set(known.items()) or (all_stay and len(keys) < len(known)):
            raise UpdateRejectedError("The query is to be summed with other nodes than before.")
    context.state[PEERS] = ConfigRecord({str(number): key for number, key in keys.items()})


def keep_plan(context: Context, message: Message) -> None:
    """Keep the plan that a message brings, if it brings one."""
    record = message.content.get(wire.ARRAYS)
    if isinstance(record, ArrayRecord) and len(record):
        context.state[PLAN] = record


def plan_arrays(context: Context) -> list[NDArray[Any]]:
    """The arrays of the plan; empty if there is no plan."""
    record = context.state.get(PLAN)
    return wire.unpack_arrays(record) if isinstance(record, ArrayRecord) else []


def hash_plan(arrays: list[NDArray[Any]]) -> str:
    """Hash of a plan."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()
