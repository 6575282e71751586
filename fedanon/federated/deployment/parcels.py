"""Parcels: whole messages in one request, and requests that wait until there is one.

Flower gives and takes a message by one request for each of its records and two more, and says at once that there is
none yet. A SuperLink of ours has four more routes (:mod:`.parcel_routes`); here is what a node calls, and what a run
shares with it (:mod:`.run_line`). Another SuperLink does not know them, which :func:`is_unknown` recognizes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpx
from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import PullMessagesResponse, PushMessagesRequest
from flwr.proto.message_pb2 import PullObjectResponse, PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError, inflate_object_from_contents
from flwr.supercore.protobuf.client import ProtobufClient

#: what nodes ask for: to hand in a reply, and to fetch the next message
HAND_IN, FETCH = "/v1/fleet/hand-in-parcel", "/v1/fleet/fetch-parcel"
#: what a run asks for: to send messages, and to collect replies
SEND, COLLECT = "/v1/runtime/send-parcels", "/v1/runtime/collect-parcels"

Contents = Mapping[str, bytes]


def write_parts(parts: Iterable[bytes]) -> bytes:
    """Byte strings, one after another, each behind its length."""
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def read_parts(data: bytes) -> list[bytes]:
    """The byte strings; the last one is cut where the data end."""
    parts, start = [], 0
    while start + 8 <= len(data):
        (length,) = struct.unpack_from("<Q", data, start)
        parts.append(data[start + 8 : start + 8 + length])
        start += 8 + length
    return parts


def write_contents(contents: Contents) -> list[bytes]:
    """Objects as parts: name, content, name, content."""
    return [part for name, content in contents.items() for part in (name.encode(), content)]


def read_contents(parts: Sequence[bytes]) -> dict[str, bytes]:
    """The objects of such parts."""
    return {name.decode("ascii", "replace"): content for name, content in zip(parts[::2], parts[1::2], strict=False)}


def is_unknown(error: httpx.HTTPStatusError) -> bool:
    """Whether a SuperLink has no such route."""
    return error.response.status_code in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED)


def ask(client: ProtobufClient, path: str, node: int, parts: Iterable[bytes]) -> list[bytes]:
    """Call a route; Flower's messages of single objects are the envelopes, so that its checks of senders apply."""
    request = PushObjectRequest(node=Node(node_id=node), object_content=write_parts(parts))
    answer = client._unary_unary(path=path, rpc_method=path, request=request, response_type=PullObjectResponse)
    return read_parts(answer.object_content)


def open_parcel(message: Any, tree: Any, contents: Contents) -> Message:
    """The message of a parcel; ObjectPullError if it is none, whatever was sent in its place."""
    try:
        found = inflate_object_from_contents(tree.object_id, dict(contents))
    except Exception:
        found = None
    if not isinstance(found, Message):
        raise ObjectPullError(tree.object_id, "it is no message, or has not come whole.")
    found.metadata.__dict__["_message_id"] = message.metadata.message_id
    return found


def objects_of(message: Message) -> dict[str, bytes]:
    """What a message is stored as, by name."""
    return {name: found.deflate() for name, found in get_all_nested_objects(message).items()}


# ---- a node --------------------------------------------------------------------------------------


def hand_in(client: ProtobufClient, node: int, reply: Message) -> None:
    """Send a reply."""
    reply.metadata.__dict__["_message_id"] = reply.object_id
    with no_object_id_recompute():
        request = PushMessagesRequest(
            node=Node(node_id=node),
            messages_list=[message_to_proto(remove_content_from_message(reply))],
            message_object_trees=[get_object_tree(reply)],
            clientapp_runtime_list=[0.0],
        )
        ask(client, HAND_IN, node, [request.SerializeToString(), *write_contents(objects_of(reply))])


def fetch(client: ProtobufClient, node: int) -> Message | None:
    """The next message; waits some seconds for one."""
    head, *objects = ask(client, FETCH, node, []) or [b""]
    try:
        found = PullMessagesResponse.FromString(head)
    except Exception:
        raise ObjectPullError("", "it cannot be read.") from None
    if not (found.messages_list and found.message_object_trees):
        return None
    return open_parcel(found.messages_list[0], found.message_object_trees[0], read_contents(objects))
