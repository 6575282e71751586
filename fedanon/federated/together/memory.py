"""What a node remembers between messages of a run, in Flower's context: the last question it answered, and the plan.

A question answered twice would give away more than its share: with noise, an average of answers has less of it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Context, Message
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.federated import wire

STEP, PLAN = "together-step", "together-plan"


def answer_once(context: Context, step: int) -> None:
    """Note that a step is answered; refuse it if it, or a later one, was before."""
    last = context.state[STEP]["step"] if STEP in context.state else 0
    if not isinstance(last, int) or step <= last:
        raise UpdateRejectedError("This node has answered this step, or a later one, already.")
    context.state[STEP] = ConfigRecord({"step": step})


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
