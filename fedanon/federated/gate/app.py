"""An allowed app as a node runs it: asked through the node's door, in a process of its own, its reply made anew."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flwr.app import Context, Message, RecordDict

from fedanon.errors import ConfigError, RefusedError, UpdateRejectedError
from fedanon.federated.client import Handler, LoadTable, NodePool, guarded
from fedanon.federated.door import Door, content_bytes
from fedanon.federated.gate import BUNDLE
from fedanon.federated.gate.allowed import AllowedApp, AllowedApps
from fedanon.federated.gate.limits import AppLimits
from fedanon.federated.gate.released import Released
from fedanon.federated.gate.runner import AppJob, refuse_within_reach, run
from fedanon.federated.gate.tripwire import Tripwire
from fedanon.federated.sources import load_node_table

log = logging.getLogger("fedanon")

#: files and folders that a node config names; none may lie where apps read
_OWN_FILES = ("data", "schema", "ledger", "egress", "split-key", "store", "apps", "identity-key", "peer-keys")
#: what an app is asked in the place of its own ways to find a table: the ones of Flower's simulation
_PARTITION, _PARTITIONS = "partition-id", "num-partitions"

#: given the release, it returns what an app answers, what it remembers, and what is to be noted of it
Ask = Callable[[Released], tuple[RecordDict, RecordDict, dict[str, Any]]]


def allowed_app(context: Context) -> Handler | None:
    """The app of a run, if the node's people have allowed its bundle; None where the installed one is to answer."""
    folder, sha256 = (str(context.node_config.get(name, "")) for name in ("apps", BUNDLE))
    if not folder or not sha256:
        return None
    try:
        found = AllowedApps(Path(folder)).find(sha256)
    except ConfigError as error:  # the server is told no more than of any other refusal
        log.error("%s", error)
        raise RefusedError("app", "This node refuses to answer: app.") from None
    return None if found is None else _handler(found)


def _handler(app: AllowedApp) -> Handler:
    nodes = NodePool(load_node_table, app.limits.settings, ())

    @guarded("app")
    def answer(message: Message, context: Context, door: Door) -> Message:
        config = context.node_config
        refuse_within_reach([Path(str(config[name])) for name in _OWN_FILES if config.get(name)])

        def ask(release: Released) -> tuple[RecordDict, RecordDict, dict[str, Any]]:
            job = AppJob(app.bundle, message, without_files(context), release.to_bytes())
            outcome = run(job, app.limits, require=config.get("app-walls") != "any")
            told = {"app": app.sha256, "name": app.name, "walls": outcome.standing.describe()}
            return outcome.content, outcome.state, told

        return pass_through(message, context, door, app.limits, nodes, ask)

    return answer


def pass_through(
    message: Message,
    context: Context,
    door: Door,
    limits: AppLimits,
    nodes: NodePool,
    ask: Ask,
    load: LoadTable = load_node_table,
) -> Message:
    """Give an app the release of a node, and let its reply leave by the node's door as its limits say, and when."""
    with in_slots(limits):
        kind = message.metadata.message_type
        if kind not in limits.by_type:
            raise RefusedError("app", f"A run asks an app for {kind[:40]!r}, which it is not allowed to answer.")
        node = nodes.of(context, door)
        door.begin_app_reply(limits.replies_per_run)
        release = Released.of_node(node)
        content, state, told = ask(release)
        try:
            made, arrays = limits.by_type[kind].passed(content, limits.bits)
            Tripwire(load(context, limits.settings)[0], release).check(arrays)
        except UpdateRejectedError as error:
            raise RefusedError("app", f"The reply of an app may not leave: {error}.") from None
        context.state = state
    reply = Message(made, reply_to=message)
    door.end_app_reply(content_bytes(reply), int(limits.mb_per_run * 10**6))
    return door.send("app", reply, node=node.number, type=kind, **told)


def without_files(context: Context) -> Context:
    """A context for an app: what its run says, what it remembers, and no path of the node."""
    number = int(context.node_config.get("number", context.node_config.get(_PARTITION, 0)))
    partition = {_PARTITION: number, _PARTITIONS: int(context.node_config.get(_PARTITIONS, number + 1))}
    return Context(context.run_id, context.node_id, {**partition}, context.state, context.run_config)


@contextlib.contextmanager
def in_slots(limits: AppLimits) -> Iterator[None]:
    """Whatever happens inside ends at a multiple of the slots after its beginning."""
    begin = time.monotonic()
    try:
        yield
    finally:
        if limits.slot_seconds:
            passed = time.monotonic() - begin
            slots = max(1, math.ceil(passed / limits.slot_seconds))
            time.sleep(max(0.0, slots * limits.slot_seconds - passed))
