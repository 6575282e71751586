"""The local engine: an in-process Flower grid. The same app code as deployed, reproducible to the bit, no Ray."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fedanon.federated import wire
from fedanon.federated.sources import n_parts
from fedanon.learning.settings import RunSettings

RUN_ID = 1
SERVER_ID = 0


class LocalGrid(Grid):
    """Runs the messages of the server through a ClientApp in this process, one node after the other.

    Parameters
    ----------
    app : the unmodified ClientApp.
    settings : of the run; every node's context carries them as its run config.
    clients : their number, where it is not that of the settings' partition.
    """

    def __init__(self, app: ClientApp, settings: RunSettings, clients: int | None = None) -> None:
        clients = n_parts(settings) if clients is None else clients
        self._app = app
        self._contexts = {
            number + 1: Context(
                run_id=RUN_ID,
                node_id=number + 1,
                node_config={"partition-id": number, "num-partitions": clients},
                state=RecordDict(),
                run_config=wire.encode_settings(settings),
            )
            for number in range(clients)
        }
        self._replies: dict[str, Message] = {}
        self._ids = itertools.count(1)
        # a message names the process that made it; a SuperLink would have set this one's identity
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, RUN_ID, SERVER_ID
        # Flower's strategies log every aggregation; here the progress display tells
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
