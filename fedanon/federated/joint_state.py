"""What a node remembers between messages of a run, in Flower's context: its key, what it answered, and the plan.

A question answered twice would give away more than its share: with noise, an average of answers has less of it. The
context stays at the node.
"""

from __future__ import annotations

import hashlib
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.federated import wire
from fedanon.joint.masks import Keys, new_secret

STEP, PLAN, SECRET, PEERS = "together-step", "together-plan", "together-secret", "together-peers"


def nothing_answered(context: Context) -> bool:
    """Whether no question of this run was answered yet."""
    return STEP not in context.state


def answer_once(context: Context, step: int) -> None:
    """Note that a step is answered; refuse it if it, or a later one, was before."""
    last = context.state[STEP]["step"] if STEP in context.state else 0
    if not isinstance(last, int) or step <= last:
        raise UpdateRejectedError("This node has answered this step, or a later one, already.")
    context.state[STEP] = ConfigRecord({"step": step})


def secret(context: Context) -> bytes:
    """This node's private key for the run, made when it is first asked for."""
    if SECRET not in context.state:
        context.state[SECRET] = ConfigRecord({"key": new_secret()})
    return bytes(context.state[SECRET]["key"])  # type: ignore[arg-type]


def keep_peers(context: Context, keys: Keys, *, all_stay: bool) -> None:
    """Note with whom counts are summed; refuse newcomers, other keys and, where ``all_stay``, a smaller circle.

    Sums over circles of the server's choice would tell the counts of one node by a difference.
    """
    if PEERS in context.state:
        known = {int(number): key for number, key in context.state[PEERS].items()}
        if not set(keys.items()) <= set(known.items()) or (all_stay and len(keys) < len(known)):
            raise UpdateRejectedError("The question is to be summed with others than before.")
    context.state[PEERS] = ConfigRecord({str(number): key for number, key in keys.items()})


def keep_plan(context: Context, message: Message) -> None:
    """Keep the plan a greeting brings, if it brings one."""
    record = message.content.get(wire.ARRAYS)
    if isinstance(record, ArrayRecord) and len(record):
        context.state[PLAN] = record


def plan_arrays(context: Context) -> list[NDArray[Any]]:
    """The arrays of the plan; none if there is no plan."""
    record = context.state.get(PLAN)
    return wire.unpack_arrays(record) if isinstance(record, ArrayRecord) else []


def sha256(arrays: list[NDArray[Any]]) -> str:
    """Hash of a plan."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.tobytes())
    return digest.hexdigest()
