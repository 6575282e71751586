"""The client side of the Flower app: a node behind messages."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp

from fedanon.data.table import Table
from fedanon.errors import ConfigError, FedanonError, PrivacyViolationError, UpdateRejectedError
from fedanon.federated import joint_state, wire
from fedanon.federated.packing import answer_in_kind
from fedanon.federated.sources import load_node_table
from fedanon.io.audit import AuditLog, audit
from fedanon.joint.disclosure import read_rules
from fedanon.joint.masks import public_key
from fedanon.joint.node import JointNode, make_node
from fedanon.joint.plan import Plan
from fedanon.joint.queries import pack_counts
from fedanon.joint.signing import NodeIdentity
from fedanon.learning.dp_ledger import NodeLedger, former
from fedanon.learning.node import Node
from fedanon.learning.node_store import NodeStore
from fedanon.learning.settings import RunSettings
from fedanon.learning.validation import check_arrays
from fedanon.models.base import Parameters

log = logging.getLogger("fedanon")

Handler = Callable[[Message, Context], Message]
#: under which a node's context keeps the last round it trained in
LAST_ROUND = "dp-round"
LoadTable = Callable[[Context, RunSettings], tuple[Table, int]]


def client_app(
    load: LoadTable = load_node_table, settings: RunSettings | None = None, prepared: Sequence[Node] = ()
) -> ClientApp:
    """A ClientApp whose nodes load their table with ``load`` and prepare it once a run.

    ``settings`` stand in for the run config where an engine passes none; ``prepared`` are nodes of this process, by
    their partition.
    """
    app = ClientApp(mods=[answer_in_kind])
    nodes = _Nodes(load, settings, prepared)

    _count_jointly(app, nodes)

    @app.query()
    @guarded
    def hello(message: Message, context: Context) -> Message:
        joint_state.keep_plan(context, message)
        node = nodes.of(context)
        # metrics have no noise: where a budget is kept, they stay here
        facts = node.facts if node.settings.dp is None else replace(node.facts, measures={})
        return wire.reply_facts(message, facts, node.number)

    @app.train()
    @guarded
    def train(message: Message, context: Context) -> Message:
        node, number = nodes.of(context), wire.read_round(message)
        if node.settings.dp is not None:
            train_once(context, number, node.settings.rounds)
            if ledger := NodeLedger.from_config(context.node_config):
                ledger.spend(node.settings)
        update = node.train(_parameters(node, message), number)
        audit("update", node=node.number, round=number, n_examples=update.n_examples)
        return wire.reply_update(message, update.parameters, update.n_examples, number)

    @app.evaluate()
    @guarded
    def evaluate(message: Message, context: Context) -> Message:
        node = nodes.of(context)
        return wire.reply_scores(message, node.evaluate(_parameters(node, message)), node.facts.n_test)

    return app


def _count_jointly(app: ClientApp, nodes: _Nodes) -> None:
    """Register what a node answers before there is a plan, in a run with a joint method."""

    @app.query("join")
    @guarded
    def join(message: Message, context: Context) -> Message:
        node = nodes.joint(context)
        key = public_key(joint_state.secret(context)) if node.method.disclosure.secure else b""
        identity = NodeIdentity.from_config(context.node_config)
        signature = identity.signature(context.run_id, node.number, key) if key else b""
        axes = [axis.to_array() for axis in node.axes]
        return wire.reply_join(message, node.number, node.schema_sha256, node.has_persons, key, axes, signature)

    @app.query("count")
    @guarded
    def count(message: Message, context: Context) -> Message:
        step, participant = wire.read_round(message), nodes.joint(context).participant
        # paid before anything is noted: who could not pay is not taken for one who has
        if joint_state.nothing_answered(context) and (ledger := NodeLedger.from_config(context.node_config)):
            ledger.spend_counts(participant.method)
        joint_state.answer_once(context, step)
        arrays = wire.read_arrays(message)
        if not (keys := participant.read_keys(arrays)):
            return wire.reply_counts(message, pack_counts(participant.answer(arrays, step)))
        NodeIdentity.from_config(context.node_config).check(context.run_id, keys, arrays[-1])
        counts = participant.answer(arrays, step, joint_state.secret(context))
        # only the peers of a question that is answered
        joint_state.keep_peers(context, keys, all_stay=participant.method.noisy)
        return wire.reply_counts(message, pack_counts(counts))


def train_once(context: Context, number: int, rounds: int) -> None:
    """Note that a round is answered; refuse more than the run has, or one that was: an average has less noise."""
    last = context.state[LAST_ROUND]["round"] if LAST_ROUND in context.state else 0
    if not isinstance(last, int) or not last < number <= rounds:
        raise UpdateRejectedError(
            "This node has trained for this round, or a later one, already; or the run has no such round."
        )
    context.state[LAST_ROUND] = ConfigRecord({"round": number})


def guarded(handler: Handler) -> Handler:
    """Replace foreign exceptions: their text may quote cells, and Flower sends it to the server."""

    def safe(message: Message, context: Context) -> Message:
        try:
            return handler(message, context)
        except FedanonError:
            raise
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
            log.error("%s at %s", type(error).__name__, places)  # here, and without its text
            raise FedanonError(f"The node failed with a {type(error).__name__}; its own log says more.") from None

    return safe


class _Nodes:
    """The nodes this process plays, each prepared once; one in a deployed federation, many in a simulation."""

    def __init__(self, load: LoadTable, settings: RunSettings | None, prepared: Sequence[Node]) -> None:
        self._load = load
        self._settings = settings
        self._prepared = prepared
        self._nodes: dict[tuple[int, int], Node] = {}
        self._counting: dict[tuple[int, int], JointNode] = {}

    def of(self, context: Context) -> Node:
        key = (context.run_id, context.node_id)
        if key not in self._nodes:
            settings = self._settings or wire.decode_settings(context.run_config)
            plan = joint_state.plan_arrays(context)
            store = NodeStore.of(context.node_config, **({"plan": joint_state.hash_plan(plan)} if plan else {}))
            make = partial(self._make, context, settings)
            node = store.node(settings, make) if store else make()
            check_floor(node, int(former(context.node_config, "min-k", "least-k", 1)))
            if ledger := NodeLedger.from_config(context.node_config):
                ledger.check(settings)
            self._nodes[key] = node
        return self._nodes[key]

    def _make(self, context: Context, settings: RunSettings) -> Node:
        node = self._new(context, settings)
        if isinstance(node, JointNode):
            node.adopt(Plan.from_arrays(joint_state.plan_arrays(context), node.axes))
        _log_release(node)
        return node

    def joint(self, context: Context) -> JointNode:
        """A node that counts its rows for a plan that is still made."""
        key = (context.run_id, context.node_id)
        if key not in self._counting:
            settings = self._settings or wire.decode_settings(context.run_config)
            node = self._new(context, settings)
            if not isinstance(node, JointNode):
                raise ConfigError("The method of this run is not a joint one: there is nothing to count.")
            check_rule(node.method.counts, str(context.node_config.get("counts", "")))
            if ledger := NodeLedger.from_config(context.node_config):
                ledger.check(settings)  # nothing is given away for a run that will be refused
                ledger.check_counts(node.method)
            self._counting[key] = node
        return self._counting[key]

    def _new(self, context: Context, settings: RunSettings) -> Node:
        if self._prepared:
            return self._prepared[int(context.node_config["partition-id"])]
        table, number = self._load(context, settings)
        return make_node(table, settings, number)


def _log_release(node: Node) -> None:
    """Note in the audit log, if there is one, what this node has made of its rows; facts are not worked out else."""
    if AuditLog.wanted() is not None:
        settings = node.settings
        facts = {"method": settings.method, "settings": dict(settings.method_settings), "facts": node.facts.to_dict()}
        audit("release", node=node.number, **facts)


def check_floor(node: Node, min_k: int) -> None:
    """The node's own condition, whatever method the server asked for."""
    if min_k > 1 and not node.facts.measures["k_reached"] >= min_k:
        raise PrivacyViolationError(f"The release of this node does not reach the k of {min_k} it asks for.")


def check_rule(counts: str, wanted: str) -> None:
    """The node's own condition on what its counts give away; an empty one takes any rule."""
    if counts not in (rules := read_rules(wanted)):
        raise PrivacyViolationError(f"This node counts jointly only by {' or '.join(rules)}, not by {counts}.")


def _parameters(node: Node, message: Message) -> Parameters:
    """The global parameters, checked here once more; trees are checked by the model when it reads them."""
    arrays = wire.read_arrays(message)
    if node.model.aggregation == "mean":
        check_arrays(arrays, node.reference)
    return arrays
