"""The client side of the Flower app: a node behind messages."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp
from numpy.typing import NDArray

from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, FedanonError, UpdateRejectedError
from fedanon.federated import joint_state, wire
from fedanon.federated.door import Door
from fedanon.federated.egress import open_door
from fedanon.federated.packing import answer_in_kind
from fedanon.federated.sources import load_node_table
from fedanon.io.sql import is_database
from fedanon.joint import JOINT_METHODS
from fedanon.joint.masks import public_key
from fedanon.joint.node import JointNode, make_method, make_node
from fedanon.joint.plan import Plan
from fedanon.joint.queries import pack_counts
from fedanon.joint.signing import NodeIdentity
from fedanon.learning.node import Node, NodeFacts
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.node_store import NodeStore
from fedanon.learning.private_scores import MASKED
from fedanon.learning.settings import RunSettings
from fedanon.learning.validation import check_arrays
from fedanon.models.base import Parameters
from fedanon.streams.learning_node import StreamNode
from fedanon.streams.windowed import STREAM, WindowedStream

log = logging.getLogger("fedanon")

Handler = Callable[[Message, Context], Message]
#: a handler that answers through a door
Answer = Callable[[Message, Context, Door], Message]
#: under which a node's context keeps the last round it trained in
LAST_ROUND = "dp-round"
#: the same for the sizes that a node with a stream has stated
DECLARED = "declared-sizes"
LoadTable = Callable[[Context, RunSettings], tuple[Table, int]]


def client_app(
    load: LoadTable = load_node_table, settings: RunSettings | None = None, prepared: Sequence[Node] = ()
) -> ClientApp:
    """A ClientApp whose nodes load their table with ``load`` and prepare it once a run.

    ``settings`` stand in for the run config where an engine passes none; ``prepared`` are nodes of this process, by
    their partition.
    """
    app = ClientApp(mods=[answer_in_kind])
    nodes = NodePool(load, settings, prepared)

    _count_jointly(app, nodes)

    @app.query()
    @guarded("facts")
    def hello(message: Message, context: Context, door: Door) -> Message:
        joint_state.keep_plan(context, message)
        node = nodes.of(context, door)
        facts = door.facts(node)
        if isinstance(node, StreamNode):
            declare(context, facts)
        reply = wire.reply_facts(message, facts, node.number, *door.score_key(node))
        return door.send("facts", reply, node=node.number, facts=facts.to_dict())

    @app.train()
    @guarded("update")
    def train(message: Message, context: Context, door: Door) -> Message:
        node, number = nodes.of(context, door), wire.read_round(message)
        if node.settings.dp is not None:
            train_once(context, number, node.settings.rounds)
            if door.budget:
                door.budget.spend(node.settings)
        update = node.train(_parameters(node, message), number)
        reply = wire.reply_update(message, update.parameters, update.n_examples, number)
        return door.send("update", reply, node=node.number, round=number, n_examples=update.n_examples)

    @app.evaluate()
    @guarded("scores")
    def evaluate(message: Message, context: Context, door: Door) -> Message:
        node = nodes.of(context, door)
        number = wire.read_round(message)
        scores = door.scores(node, _parameters(node, message), number, wire.read_score_keys(message))
        reply = wire.reply_scores(message, scores, node.facts.n_test, node.outcome)
        scored = "shared" if MASKED in scores else node.rules.scores
        return door.send("scores", reply, node=node.number, round=number, scored=scored)

    @app.query("egress")
    @guarded("egress")
    def tell_egress(message: Message, _: Context, door: Door) -> Message:
        return door.send("egress", wire.reply_egress(message, door.egress()))

    return app


def _count_jointly(app: ClientApp, nodes: NodePool) -> None:
    """Register what a node answers before there is a plan, in a run with a joint method."""

    @app.query("join")
    @guarded("key")
    def join(message: Message, context: Context, door: Door) -> Message:
        node = nodes.joint(context, door)
        key = public_key(joint_state.secret(context)) if node.method.disclosure.secure else b""
        identity = NodeIdentity.from_config(context.node_config)
        signature = identity.signature(context.run_id, node.number, key) if key else b""
        axes = [axis.to_array() for axis in node.axes]
        reply = wire.reply_join(message, node.number, node.schema_sha256, node.has_persons, key, axes, signature)
        return door.send("key", reply, node=node.number)

    @app.query("count")
    @guarded("counts")
    def count(message: Message, context: Context, door: Door) -> Message:
        step, participant = wire.read_round(message), nodes.joint(context, door).participant
        method, arrays = participant.method, wire.read_arrays(message)
        keys = participant.read_keys(arrays)
        door.begin_count(method, step)
        if keys:
            NodeIdentity.from_config(context.node_config).check(context.run_id, keys, arrays[-1])
            door.check_peers(method, keys)
        counts = participant.answer(arrays, step, joint_state.secret(context) if keys else b"")
        if keys:  # only the peers of a question that is answered
            door.keep_peers(method, keys)
        reply = wire.reply_counts(message, pack_counts(counts))
        return door.send("counts", reply, node=participant.number, step=step, rule=method.counts)


def train_once(context: Context, number: int, rounds: int) -> None:
    """Note that a round is answered; refuse more than the run has, or one that was: an average has less noise."""
    last = context.state[LAST_ROUND]["round"] if LAST_ROUND in context.state else 0
    if not isinstance(last, int) or not last < number <= rounds:
        raise UpdateRejectedError(
            "This node has trained for this round, or a later one, already; or the run has no such round."
        )
    context.state[LAST_ROUND] = ConfigRecord({"round": number})


def guarded(kind: str) -> Callable[[Answer], Handler]:
    """Give a handler its door, which every error has to pass too.

    Foreign exceptions are replaced: their text may quote cells, and Flower sends it to the server.
    """

    def decorate(handler: Answer) -> Handler:
        def safe(message: Message, context: Context) -> Message:
            door = open_door(context)
            try:
                return handler(message, context, door)
            except FedanonError as error:
                raise door.refuse(kind, error) from None
            except Exception as error:
                frames = traceback.extract_tb(error.__traceback__)
                places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
                log.error("%s at %s", type(error).__name__, places)  # here, and without its text
                text = f"The node failed with a {type(error).__name__}; its own log says more."
                raise door.refuse(kind, FedanonError(text)) from None

        return safe

    return decorate


class NodePool:
    """The nodes this process plays, each prepared once; one in a deployed federation, many in a simulation."""

    def __init__(self, load: LoadTable, settings: RunSettings | None, prepared: Sequence[Node]) -> None:
        self._load = load
        self._settings = settings
        self._prepared = prepared
        self._nodes: dict[tuple[int, int], Node] = {}
        self._counting: dict[tuple[int, int], JointNode] = {}

    def of(self, context: Context, door: Door) -> Node:
        key = (context.run_id, context.node_id)
        if key not in self._nodes:
            settings = self._settings or wire.decode_settings(context.run_config)
            plan = joint_state.plan_arrays(context) if settings.method in JOINT_METHODS else []
            door.admit(settings, plan)
            make = partial(self._make, context, settings, door)
            store = _store(context, plan, door.rules)
            node = store.node(settings, make) if store else make()
            door.check_node(node)
            self._nodes[key] = node
        return self._nodes[key]

    def _make(self, context: Context, settings: RunSettings, door: Door) -> Node:
        node = self._new(context, settings, door)
        if isinstance(node, JointNode):
            node.adopt(Plan.from_arrays(joint_state.plan_arrays(context), node.axes))
        door.check_made(node)
        return node

    def joint(self, context: Context, door: Door) -> JointNode:
        """A node that counts its rows for a plan that is still made."""
        key = (context.run_id, context.node_id)
        if key not in self._counting:
            settings = self._settings or wire.decode_settings(context.run_config)
            if settings.method not in JOINT_METHODS:
                raise ConfigError("The method of this run is not a joint one: there is nothing to count.")
            door.admit_counts(settings, make_method(settings))
            node = self._new(context, settings, door)
            assert isinstance(node, JointNode)
            self._counting[key] = node
        return self._counting[key]

    def _new(self, context: Context, settings: RunSettings, door: Door) -> Node:
        if self._prepared:
            return self._prepared[int(context.node_config["partition-id"])]
        if (STREAM in context.node_config) != (settings.method == STREAM):
            raise ConfigError("The method 'stream' is for nodes with the windows of a gateway, and theirs alone.")
        if settings.method == STREAM:
            return _stream_node(context, settings, door.rules)
        table, number = self._load(context, settings)
        return make_node(table, settings, number, door.rules)


def declare(context: Context, facts: NodeFacts) -> None:
    """Keep the sizes a node with a stream has stated for a run: the server takes no others."""
    context.state[DECLARED] = ConfigRecord({"n_train": facts.n_train, "n_test": facts.n_test})


def _stream_node(context: Context, settings: RunSettings, rules: NodeRules | None) -> StreamNode:
    config = context.node_config
    folder, schema = Path(str(config[STREAM])), Schema.read(Path(str(config["schema"])))
    stream = WindowedStream(folder, schema, Path(str(config["store"])) if config.get("store") else None)
    stated: Any = context.state.get(DECLARED)
    sizes = (stated["n_train"], stated["n_test"]) if stated else None
    return StreamNode(stream, settings, int(config.get("number", 0)), rules, declared=sizes)


def _store(context: Context, plan: list[NDArray[Any]], rules: NodeRules | None) -> NodeStore | None:
    """Where the prepared node is kept; what its rules or the plan change is another entry."""
    depends = {"plan": joint_state.hash_plan(plan)} if plan else {}
    if rules:
        depends["rules"] = rules.fingerprint
    if is_database(context.node_config.get("data")):
        depends["run"] = str(context.run_id)  # the next run reads it again
    return NodeStore.of(context.node_config, seeded=not (rules and rules.secret), **depends)


def _parameters(node: Node, message: Message) -> Parameters:
    """The global parameters, checked here once more; trees are checked by the model when it reads them."""
    arrays = wire.read_arrays(message)
    if node.model.aggregation == "mean":
        check_arrays(arrays, node.reference)
    return arrays
