"""The client side of the Flower app: a node behind messages."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedanon.data.table import Table
from fedanon.errors import FedanonError, PrivacyViolationError
from fedanon.federated import wire
from fedanon.federated.node import Node, make_node
from fedanon.federated.settings import RunSettings
from fedanon.federated.sources import load_node_table
from fedanon.federated.store import NodeStore
from fedanon.federated.validation import check_arrays
from fedanon.models.base import Parameters

log = logging.getLogger("fedanon")

Handler = Callable[[Message, Context], Message]
LoadTable = Callable[[Context, RunSettings], tuple[Table, int]]


def client_app(
    load: LoadTable = load_node_table, settings: RunSettings | None = None, prepared: Sequence[Node] = ()
) -> ClientApp:
    """A ClientApp whose nodes load their table with ``load`` and prepare it once a run.

    ``settings`` stand in for the run config where an engine passes none; ``prepared`` are nodes of this process, by
    their partition.
    """
    app = ClientApp()
    nodes = _Nodes(load, settings, prepared)

    @app.query()
    @guarded
    def hello(message: Message, context: Context) -> Message:
        node = nodes.of(context)
        return wire.reply_facts(message, node.facts, node.number)

    @app.train()
    @guarded
    def train(message: Message, context: Context) -> Message:
        node, number = nodes.of(context), wire.read_round(message)
        update = node.train(_parameters(node, message), number)
        return wire.reply_update(message, update.parameters, update.n_examples, number)

    @app.evaluate()
    @guarded
    def evaluate(message: Message, context: Context) -> Message:
        node = nodes.of(context)
        return wire.reply_scores(message, node.evaluate(_parameters(node, message)), node.facts.n_test)

    return app


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
    """The nodes this process plays, each prepared once; one in a hospital, many in a simulation."""

    def __init__(self, load: LoadTable, settings: RunSettings | None, prepared: Sequence[Node]) -> None:
        self._load = load
        self._settings = settings
        self._prepared = prepared
        self._nodes: dict[tuple[int, int], Node] = {}

    def of(self, context: Context) -> Node:
        key = (context.run_id, context.node_id)
        if key not in self._nodes:
            settings = self._settings or RunSettings.from_config(context.run_config)
            store = NodeStore.of(context.node_config)
            make = partial(self._make, context, settings)
            node = store.node(settings, make) if store else make()
            check_floor(node, int(context.node_config.get("least-k", 1)))
            self._nodes[key] = node
        return self._nodes[key]

    def _make(self, context: Context, settings: RunSettings) -> Node:
        if self._prepared:
            return self._prepared[int(context.node_config["partition-id"])]
        table, number = self._load(context, settings)
        return make_node(table, settings, number)


def check_floor(node: Node, least_k: int) -> None:
    """The node's own condition, whatever method the server asked for."""
    if least_k > 1 and not node.facts.measures["k_reached"] >= least_k:
        raise PrivacyViolationError(f"The release of this node does not reach the k of {least_k} it asks for.")


def _parameters(node: Node, message: Message) -> Parameters:
    """The global parameters, checked here once more; trees are checked by the model when it reads them."""
    arrays = wire.read_arrays(message)
    if node.model.aggregation == "mean":
        check_arrays(arrays, node.reference)
    return arrays
