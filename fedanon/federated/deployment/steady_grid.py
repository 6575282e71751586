"""A grid that does not wait: replies are fetched as soon as they are there, and a message that was lost is sent again.

Flower's own looks for replies every three seconds, and gives a node up that goes away for a moment. A SuperLink of ours
lets the grid wait there until all replies have come.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from typing import Any

import httpx
from flwr.app import Message, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from fedanon.federated.deployment.parcels import is_unknown
from fedanon.federated.deployment.processes import Pause
from fedanon.federated.deployment.run_line import RunLine
from fedanon.federated.handshake import Visitor
from fedanon.federated.packing import PACKED, pack, unpack

log = logging.getLogger("fedanon")

#: what a SuperLink answers in place of a node that has gone, and with it the message
LOST = {ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE}
#: seconds between looks for replies, where nothing has come for long; shorter than a node's absence (see fleet)
LONGEST_PAUSE = 1.0


class SteadyGrid(Grid):
    """Another grid, used with patience.

    Parameters
    ----------
    grid : Flower's.
    return_seconds : how long a node that goes away may take to come back; one that does not is not waited for again
        until it has answered.
    """

    def __init__(self, grid: Grid, return_seconds: float) -> None:
        self._grid = grid
        self._line = RunLine.of(grid)
        self._return_seconds = return_seconds
        self._given_up: set[int] = set()

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Send, and return what came until all have answered or the time is over."""
        end = time.monotonic() + (timeout if timeout is not None else float("inf"))
        sent, lost, replies = self._send(messages), dict[int, tuple[float, Message]](), list[Message]()
        pause = Pause(LONGEST_PAUSE)
        while (sent or lost) and time.monotonic() < end:
            for reply in self._collect(list(sent)) if sent else []:
                request = sent.pop(reply.metadata.reply_to_message_id)
                node = request.metadata.dst_node_id
                if not (reply.has_error() and reply.error.code in LOST):
                    self._given_up.discard(node)
                    replies.append(_unpacked(reply))
                elif node not in self._given_up:
                    lost[node] = (time.monotonic() + self._return_seconds, request)
            if lost:
                sent |= self._send_again(lost)
            if (sent or lost) and not (sent and self._line):
                pause.wait()
        return replies

    def _collect(self, message_ids: list[str]) -> list[Message]:
        return self._line.collect(message_ids) if self._line else list(self._grid.pull_messages(message_ids))

    def _send(self, messages: Iterable[Message]) -> dict[str, Message]:
        packed: dict[int, RecordDict] = {}
        ready = []
        for message in messages:
            content = message.content
            # nodes that are asked the same share what is packed
            packed.setdefault(id(content), content if PACKED in content else pack(content))
            ready.append(_copy(message, packed[id(content)]))
        return dict(zip(self._push(ready), ready, strict=True))

    def _push(self, messages: list[Message]) -> list[str]:
        if self._line:
            try:
                return self._line.send(messages)
            except httpx.HTTPStatusError as error:
                if not is_unknown(error):
                    raise
                self._line = None
        return list(self._grid.push_messages(messages))

    def _send_again(self, lost: dict[int, tuple[float, Message]]) -> dict[str, Message]:
        """Send what was lost to the nodes that are back, and give up those whose time is over."""
        online, again = set(self._grid.get_node_ids()), list[Message]()
        for node, (until, request) in list(lost.items()):
            if node in online:
                log.warning("a node was away; it is asked again")
                again.append(request)
                del lost[node]
            elif time.monotonic() > until:
                self._given_up.add(node)
                del lost[node]
        return self._send(again) if again else {}

    def look(self) -> dict[int, Visitor]:
        """Who is online."""
        return {node.node_id: Visitor(node.name, node.last_activated_at) for node in self._grid.get_nodes()}

    # ---- as the other grid does -----------------------------------------------------------------

    def get_node_ids(self) -> Iterable[int]:
        """The nodes that are online."""
        return self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Send."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The replies that are there."""
        return self._grid.pull_messages(message_ids)

    def create_message(self, *args: Any, **more: Any) -> Message:
        """Messages are constructed directly."""
        return self._grid.create_message(*args, **more)

    def set_run(self, run: Any) -> None:
        """Set the run."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run."""
        return self._grid.run


def _copy(message: Message, content: RecordDict) -> Message:
    """A new message to the same node."""
    about = message.metadata
    return Message(content, dst_node_id=about.dst_node_id, message_type=about.message_type, group_id=about.group_id)


def _unpacked(reply: Message) -> Message:
    if reply.has_content():
        reply.content = unpack(reply.content)
    return reply
