"""A node's line to its SuperLink: Flower's Fleet API over one connection that is kept open.

Flower's own SuperNode asks for messages every three seconds, starts two more processes, and keeps a message for a run
that is over. Here the node's process asks itself: by requests that wait where the SuperLink is one of ours, else often
while something is going on.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from flwr.app import Context, Message, RecordDict
from flwr.app.message import remove_content_from_message
from flwr.common.config import get_fused_config_from_fab
from flwr.common.serde import fab_from_proto, message_to_proto, run_from_proto
from flwr.proto.fab_pb2 import GetFabRequest
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
    RegisterNodeFleetRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.node_pb2 import Node
from flwr.proto.run_pb2 import GetRunRequest
from flwr.supercore.error import FlowerError
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_protobuf_utils import (
    make_confirm_message_received_fn_protobuf,
    make_pull_object_fn_protobuf,
    make_push_object_fn_protobuf,
)
from flwr.supercore.inflatable.inflatable_utils import (
    ObjectPullError,
    ObjectPushError,
    pull_and_inflate_object_from_tree,
    push_objects,
)
from flwr.supercore.interceptors.http.runtime_version import RuntimeVersionHttpInterceptor
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.supercore.protobuf.client import ProtobufClientInterceptor
from flwr.supercore.task_identity import TaskIdentity
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from fedanon.federated.deployment import parcels
from fedanon.federated.deployment.folders import write_private
from fedanon.federated.gate import BUNDLE

#: seconds between signs of life, of which a SuperLink misses one before it takes a node for offline
HEARTBEAT = 15.0
#: a node that has lost what it was to answer is offline for so long, in which the server notices; it looks every second
ABSENCE = 3.0
#: contexts of so many runs are kept
RUNS = 4


class LostError(Exception):
    """The line is cut, or the SuperLink refuses the node; the text says why."""


class Fleet:
    """The line, from activation to its loss.

    Parameters
    ----------
    server : HOST:PORT.
    node_config : what the app of every run is told of this node.
    ca : file of the authority by which the server is known; None is no TLS.
    key : file of the node's private key; None takes a new one.
    memory : file in which the number the SuperLink knows the node by outlives this process.
    """

    def __init__(
        self, server: str, node_config: dict[str, Any], *, ca: Path | None, key: Path | None, memory: Path
    ) -> None:
        self._server = server
        self._node_config = node_config
        self._ca = ca
        self._key = key
        self._private = _read_key(key) if key else generate_key_pairs()[0]
        self._registered = key is not None
        self._memory = memory
        self._contexts: dict[int, Context] = {}
        self._unsent: Message | None = None
        self._beaten = 0.0
        #: whether the SuperLink knows parcels, so that :meth:`pull` waits for a message
        self.waits = True

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Inside, the node is online; failures of the line raise LostError."""
        interceptors: list[ProtobufClientInterceptor] = [
            RuntimeVersionHttpInterceptor(component_name="SuperNode"),
            NodeAuthHttpInterceptor(self._private, self._private.public_key()),
        ]
        ca = str(self._ca) if self._ca else None
        with FleetHttpClient.from_server_address(self._server, self._ca is None, ca, interceptors) as client:
            self._client = client
            with _told():
                self._activate()
            try:
                with _told():
                    yield
            except SystemExit:  # somebody ends us: the server need not wait for our signs of life
                with suppress(httpx.HTTPError):
                    client.DeactivateNode(DeactivateNodeRequest(node_id=self._node.node_id))
                raise

    def _activate(self) -> None:
        """Come online; what an earlier process or connection was asked is given up, unless its answer is here."""
        public, known = public_key_to_bytes(self._private.public_key()), self._known()
        if not self._registered:
            self._client.RegisterNode(RegisterNodeFleetRequest(public_key=public))
            self._registered = True
        elif self._unsent is not None and known is not None:
            self._node = Node(node_id=known)
            try:
                self.beat(now=True)
            except LostError:
                self._unsent = None  # the server has forgotten the run with the node
                raise
            return
        elif known is not None:
            with suppress(httpx.HTTPStatusError):  # it is offline already
                self._client.DeactivateNode(DeactivateNodeRequest(node_id=known))
                time.sleep(ABSENCE)
        try:
            request = ActivateNodeRequest(public_key=public, heartbeat_interval=HEARTBEAT)
            self._node = Node(node_id=self._client.ActivateNode(request).node_id)
        except httpx.HTTPStatusError:
            if self._key is None:  # a server without keys has forgotten the node: it comes as a new one
                self._private, self._registered = generate_key_pairs()[0], False
            raise
        self._beaten = time.monotonic()
        write_private(self._memory, f"{self._node.node_id}\n")

    def _known(self) -> int | None:
        with suppress(OSError, ValueError):
            return int(self._memory.read_text(encoding="ascii"))
        return None

    def beat(self, *, now: bool = False) -> None:
        """Give a sign of life, if it is time for one."""
        if now or time.monotonic() - self._beaten > HEARTBEAT * 0.7:
            request = SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=HEARTBEAT)
            if not self._client.SendNodeHeartbeat(request).success:
                raise LostError("The server does not know this node any more.")
            self._beaten = time.monotonic()

    # ---- messages -------------------------------------------------------------------------------

    def pull(self) -> tuple[Message, Context] | None:
        """The next message, with what its run is to remember; None if there is none, or its run is over."""
        try:
            if (message := self._fetch() if self.waits else self._pull()) is None:
                return None
            run_id = message.metadata.run_id
            context = self._context(run_id)
        except httpx.HTTPStatusError as error:
            if self.waits and parcels.is_unknown(error):
                self.waits = False
                return None
            if _is_over(error):
                return None
            raise
        TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, run_id, self._node.node_id
        return message, context

    def _fetch(self) -> Message | None:
        return parcels.fetch(self._client, self._node.node_id)

    def _pull(self) -> Message | None:
        """The next message from a SuperLink that is not ours."""
        found = self._client.PullMessages(PullMessagesRequest(node=self._node))
        if not found.messages_list:
            return None
        run_id, tree = found.messages_list[0].metadata.run_id, found.message_object_trees[0]
        message = pull_and_inflate_object_from_tree(
            tree,
            make_pull_object_fn_protobuf(self._client.PullObject, self._node, run_id),
            make_confirm_message_received_fn_protobuf(self._client.ConfirmMessageReceived, self._node, run_id),
            return_type=Message,
        )
        message.metadata.__dict__["_message_id"] = tree.object_id
        return message

    def _context(self, run_id: int) -> Context:
        """Of a run; its settings are read from the run's bundle, of which nothing is installed or executed."""
        if run_id not in self._contexts:
            run = run_from_proto(self._client.GetRun(GetRunRequest(node=self._node, run_id=run_id)).run)
            request = GetFabRequest(node=self._node, hash_str=run.fab_hash, run_id=run_id)
            bundle = fab_from_proto(self._client.GetFab(request).fab)
            self._contexts[run_id] = Context(
                run_id=run_id,
                node_id=self._node.node_id,
                # the hash of what came, whatever the server calls it: by it the node's people allow an app
                node_config={**self._node_config, BUNDLE: hashlib.sha256(bundle.content).hexdigest()},
                state=RecordDict(),
                run_config=get_fused_config_from_fab(bundle.content, run),
            )
            for old in list(self._contexts)[:-RUNS]:
                del self._contexts[old]
        return self._contexts[run_id]

    def push(self, reply: Message | None = None) -> None:
        """Send a reply, or the one an earlier line could not carry; drop one to a run that is over."""
        self._unsent = reply or self._unsent
        if self._unsent is None:
            return
        try:
            self._send(self._unsent)
        except httpx.HTTPStatusError as error:
            self._unsent = None
            if not _is_over(error):
                raise
        self._unsent = None

    def _send(self, reply: Message) -> None:
        if self.waits:
            parcels.hand_in(self._client, self._node.node_id, reply)
            return
        reply.metadata.__dict__["_message_id"] = reply.object_id
        with no_object_id_recompute():
            request = PushMessagesRequest(
                node=self._node,
                messages_list=[message_to_proto(remove_content_from_message(reply))],
                message_object_trees=[get_object_tree(reply)],
                clientapp_runtime_list=[0.0],
            )
            answer, run_id = self._client.PushMessages(request), reply.metadata.run_id
            push_objects(
                get_all_nested_objects(reply),
                make_push_object_fn_protobuf(self._client.PushObject, self._node, run_id, answer.session_id),
                object_ids_to_push=set(answer.objects_to_push),
            )


def _read_key(path: Path) -> Any:
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    return load_ssh_private_key(path.read_bytes(), None)


def _is_over(error: httpx.HTTPStatusError) -> bool:
    """Whether a SuperLink refuses a request because its run has ended."""
    return error.response.status_code == httpx.codes.FORBIDDEN


@contextmanager
def _told() -> Iterator[None]:
    """Failures of the line, in a sentence."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        if error.response.status_code == httpx.codes.PRECONDITION_FAILED:
            raise LostError(
                "The server does not know the key of this node, or another process used it "
                f"less than {2 * HEARTBEAT:g} seconds ago."
            ) from None
        known = FlowerError.from_json(error.response.text)
        reason = known.message if known else f"HTTP {error.response.status_code}"
        raise LostError(f"The server refuses this node: {reason}") from None
    except (ObjectPullError, ObjectPushError):
        raise LostError("A message did not come through.") from None
    except httpx.TransportError as error:
        raise LostError(f"The server cannot be reached: {error}") from None
