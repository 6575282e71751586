"""A run's way to its SuperLink: messages sent and replies collected by parcels; see :mod:`.parcels`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flwr.app import Error, Message, Metadata
from flwr.app.message import make_message, remove_content_from_message
from flwr.common.constant import SUPERLINK_NODE_ID, ErrorCode
from flwr.common.serde import message_to_proto
from flwr.proto.runtime_pb2 import (
    PullAppMessagesRequest,
    PullAppMessagesResponse,
    PushAppMessagesRequest,
    PushAppMessagesResponse,
)
from flwr.serverapp import Grid
from flwr.supercore.constant import SYSTEM_MESSAGE_TYPE
from flwr.supercore.inflatable.inflatable_object import get_object_tree, no_object_id_recompute
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError
from flwr.superlink.grid.http_grid import HttpGrid

from fedanon.federated.deployment.parcels import (
    COLLECT,
    SEND,
    Contents,
    ask,
    objects_of,
    open_parcel,
    read_contents,
    write_contents,
)


class RunLine:
    """A run's way to send messages and collect replies by parcels, over the connection of Flower's own grid.

    Parameters
    ----------
    grid : Flower's.
    """

    def __init__(self, grid: HttpGrid) -> None:
        self._grid = grid

    @classmethod
    def of(cls, grid: Grid) -> RunLine | None:
        """The line beside a grid, if that is one which speaks to a SuperLink."""
        return cls(grid) if isinstance(grid, HttpGrid) else None

    def send(self, messages: Sequence[Message]) -> list[str]:
        """Send messages, and return their identifiers."""
        objects: dict[str, bytes] = {}
        with no_object_id_recompute():
            for message in messages:
                message.metadata.__dict__["_message_id"] = message.object_id
                objects |= objects_of(message)
            request = PushAppMessagesRequest(
                messages_list=[message_to_proto(remove_content_from_message(message)) for message in messages],
                message_object_trees=[get_object_tree(message) for message in messages],
            )
        parts = [request.SerializeToString(), *write_contents(objects)]
        (answer,) = ask(self._grid._runtime_client, SEND, SUPERLINK_NODE_ID, parts)
        return list(PushAppMessagesResponse.FromString(answer).message_ids)

    def collect(self, message_ids: Sequence[str]) -> list[Message]:
        """The replies to messages; waits about a second for all of them."""
        request = PullAppMessagesRequest(message_ids=message_ids)
        head, *objects = ask(self._grid._runtime_client, COLLECT, SUPERLINK_NODE_ID, [request.SerializeToString()])
        found, contents = PullAppMessagesResponse.FromString(head), read_contents(objects)
        return [
            self._reply(message, tree, contents)
            for message, tree in zip(found.messages_list, found.message_object_trees, strict=True)
        ]

    def _reply(self, message: Any, tree: Any, contents: Contents) -> Message:
        try:
            return open_parcel(message, tree, contents)
        except ObjectPullError:
            about = Metadata(
                run_id=self._grid.run.run_id,
                message_id="",
                src_node_id=SUPERLINK_NODE_ID,
                dst_node_id=SUPERLINK_NODE_ID,
                message_type=SYSTEM_MESSAGE_TYPE,
                group_id="",
                ttl=0,
                reply_to_message_id=message.metadata.reply_to_message_id,
                created_at=message.metadata.created_at,
            )
            return make_message(about, error=Error(ErrorCode.MESSAGE_UNAVAILABLE, "The reply is not complete."))
