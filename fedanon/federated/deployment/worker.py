"""A process for every message: a fork of the node's own, which has everything imported already.

It runs the app that is installed here, whatever code came with the run, or has one that the node's people allowed
answer from behind the gate. It leaves the node's memory as it was: what it has read and computed ends with it, but for
its reply and what the run's context is to remember.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode

from fedanon.anonymizers import ANONYMIZERS
from fedanon.errors import FedanonError, RefusedError
from fedanon.federated.client import client_app
from fedanon.federated.deployment.processes import FATAL, die_with_parent
from fedanon.federated.egress import open_door
from fedanon.federated.gate.app import allowed_app
from fedanon.joint import JOINT_METHODS

log = logging.getLogger("fedanon")

#: a worker that was killed, by the system or by hand, has given nothing away, so it is started once more
TRIES = 2
CHUNK = 1 << 20


def load() -> None:
    """Import what every message needs, to ask the node's policy about the method of its run, before the first fork."""
    ANONYMIZERS.names()
    JOINT_METHODS.names()


def answer(message: Message, context: Context, meanwhile: Callable[[], None]) -> Message:
    """The reply of the installed app; ``meanwhile`` is called about every second until it is there."""
    for _ in range(TRIES):
        if made := _from_fork(message, context, meanwhile):
            reply, context.state = pickle.loads(made)
            return reply  # type: ignore[no-any-return]
    killed = RefusedError("killed", f"The process that answered a message was killed {TRIES} times.")
    return Message(Error(code=ErrorCode.CLIENT_APP_CRASHED, reason=_refuse(context, killed)), reply_to=message)


def _from_fork(message: Message, context: Context, meanwhile: Callable[[], None]) -> bytes:
    """What a fork has made of a message; empty if it was killed."""
    reading, writing = os.pipe()
    node = os.getpid()
    worker = os.fork()
    if worker == 0:
        os.close(reading)
        _work(node, message, context, writing)
    os.close(writing)
    ended = False
    try:
        made = _read(reading, meanwhile)
        ended = True
    finally:
        os.close(reading)
        if not ended:
            os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
    return made if status == 0 else b""


def _read(reading: int, meanwhile: Callable[[], None]) -> bytes:
    parts = []
    while True:
        if not select.select([reading], [], [], 1.0)[0]:
            meanwhile()
        elif part := os.read(reading, CHUNK):
            parts.append(part)
        else:
            return b"".join(parts)


def _work(node: int, message: Message, context: Context, writing: int) -> None:
    """In the fork: never back into the code of the node."""
    code = 1
    try:
        for number in FATAL:
            signal.signal(number, signal.SIG_DFL)
        die_with_parent(node)
        made = pickle.dumps(_reply(message, context))
        with os.fdopen(writing, "wb") as file:
            file.write(made)
        code = 0
    finally:
        with contextlib.suppress(Exception):
            logging.shutdown()
        os._exit(code)


def _reply(message: Message, context: Context) -> tuple[Message, RecordDict]:
    """The app's reply, or its reason for none; texts of foreign exceptions stay here."""
    try:
        app = allowed_app(context) or client_app()
        return app(message, context), context.state
    except RefusedError as error:  # by the door
        log.warning("No answer to a message: %s", error)
        reason = str(error)
    except Exception as error:
        frames: Any = traceback.extract_tb(error.__traceback__)
        log.error("%s at %s:%s", type(error).__name__, Path(frames[-1].filename).name, frames[-1].lineno)
        text = f"The node failed with a {type(error).__name__}; its own log says more."
        reason = _refuse(context, FedanonError(text))
    return Message(Error(code=ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason=reason), reply_to=message), context.state


def _refuse(context: Context, error: FedanonError) -> str:
    """What the server is told where no handler of the app has answered: that leaves by the door too."""
    try:
        return str(open_door(context).refuse("message", error))
    except RefusedError as closed:
        return str(closed)
