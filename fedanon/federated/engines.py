"""Engines of a simulation: an in-process Flower grid, reproducible to the bit, or Flower's own simulation on Ray.

Both run the same app code as a deployed federation.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterable
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.supercore.task_identity import TaskIdentity

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated import wire
from fedanon.federated.client import client_app
from fedanon.federated.server import FederatedRun, wait_for_nodes
from fedanon.federated.sources import load_node_table, n_parts
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings

RUN_ID = 1
SERVER_ID = 0


class LocalGrid(Grid):
    """Runs the messages of the server through a ClientApp in this process, one node after the other.

    Parameters
    ----------
    app : the unmodified ClientApp.
    settings : of the run; every node's context carries them as its run config.
    n_nodes : their number, where it is not that of the settings' partition.
    """

    def __init__(self, app: ClientApp, settings: RunSettings, n_nodes: int | None = None) -> None:
        n_nodes = n_parts(settings) if n_nodes is None else n_nodes
        self._app = app
        self._contexts = {
            number + 1: Context(
                run_id=RUN_ID,
                node_id=number + 1,
                node_config={"partition-id": number, "num-partitions": n_nodes},
                state=RecordDict(),
                run_config=wire.encode_settings(settings),
            )
            for number in range(n_nodes)
        }
        self._replies: dict[str, Message] = {}
        self._ids = itertools.count(1)
        # a message names the process that made it; a SuperLink would have set this one's identity
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, RUN_ID, SERVER_ID
        # Flower's strategies log every aggregation; here the progress display shows them
        logging.getLogger("flwr").setLevel(logging.WARNING)

    def set_run(self, run: Any) -> None:
        """Nothing to do: there is one run."""

    @property
    def run(self) -> Any:
        """There is no record of a run in a SuperLink."""
        raise RuntimeError("the local engine has no SuperLink")

    def create_message(self, *args: Any, **more: Any) -> Message:
        """Messages are constructed directly."""
        raise RuntimeError("construct a Message instead")

    def get_node_ids(self) -> Iterable[int]:
        """All nodes."""
        return list(self._contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Deliver the messages and keep the replies."""
        ids = []
        for message in messages:
            identifier = str(next(self._ids))
            # what a SuperLink would fill in on delivery
            message.metadata.__dict__["_message_id"] = identifier
            message.metadata.__dict__["_run_id"] = RUN_ID
            self._replies[identifier] = self._deliver(message)
            ids.append(identifier)
        return ids

    def _deliver(self, message: Message) -> Message:
        try:
            return self._app(message, self._contexts[message.metadata.dst_node_id])
        except Exception as error:
            return Message(Error(code=0, reason=str(error)), reply_to=message)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies, each once."""
        return [self._replies.pop(identifier) for identifier in message_ids]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Deliver and return the replies in order."""
        return self.pull_messages(self.push_messages(messages))


# ---- Ray: for many or heavy nodes; needs the extra `simulation` ----------------------------------


START_SECONDS = 120.0
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


def run_with_ray(settings: RunSettings, make: Callable[[Grid], FederatedRun]) -> RunResult:
    """Run the same client app in Ray's processes; ``make`` makes the run over the grid."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: F401
        from flwr.simulation import run_simulation
    except ModuleNotFoundError:
        raise ConfigError("The ray engine needs Ray: pip install 'fedanon[simulation]'.") from None
    results: list[RunResult] = []
    server = ServerApp()

    @server.main()
    def main(grid: Grid, _context: Context) -> None:
        wait_for_nodes(grid, n_parts(settings), START_SECONDS)
        results.append(make(grid).run())

    # a Ray context carries no run config, so the settings travel with the loader
    app = client_app(lambda context, _settings: load_node_table(context, settings), settings)
    run_simulation(server_app=server, client_app=app, num_supernodes=n_parts(settings))
    if not results:
        raise InfeasibleError("The run on Ray did not finish; its log says why.")
    return results[0]
