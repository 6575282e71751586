"""The routes of a SuperLink that take and give whole messages; see :mod:`.parcels`.

They call what Flower's own routes call, in one transaction per request. Flower knows who may ask by the kind of request
and the beginning of the path, so that nodes show their keys and runs their tokens here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from types import FrameType
from typing import Annotated, Any, TypeVar

import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from flwr.common.constant import Status
from flwr.proto.fleet_pb2 import PullMessagesRequest, PushMessagesRequest
from flwr.proto.message_pb2 import PullObjectResponse, PushObjectRequest
from flwr.proto.runtime_pb2 import PullAppMessagesRequest, PushAppMessagesRequest
from flwr.server.superlink.linkstate import LinkState
from flwr.server.superlink.utils import check_abort
from flwr.supercore import http_logging
from flwr.supercore.dependencies.runtime import TaskDependency
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.protobuf.routing import ProtobufRoute
from flwr.supercore.protobuf.translation import PROTOBUF_REQUEST_DEPENDENCY, PROTOBUF_REQUEST_TYPES
from flwr.superlink.dependencies.linkstate import get_linkstate
from flwr.superlink.servicer.fleet import fleet_handlers
from flwr.superlink.servicer.runtime import runtime_handlers
from starlette.concurrency import run_in_threadpool

from fedanon.federated.deployment.parcels import (
    COLLECT,
    FETCH,
    HAND_IN,
    SEND,
    Contents,
    read_contents,
    read_parts,
    write_contents,
    write_parts,
)

#: how long a node waits for a message, and a run for its replies: in between it looks after nodes that have gone
FETCH_SECONDS, COLLECT_SECONDS = 3.0, 1.0
#: how long the objects of a message may come after it, where it was sent by Flower's own routes
LATE_SECONDS = 10.0

Envelope = Annotated[PushObjectRequest, PROTOBUF_REQUEST_DEPENDENCY]
State = Annotated[LinkState, Depends(get_linkstate)]
Found = TypeVar("Found")


class Bells:
    """Wakes those who wait for something by its name; used in the event loop alone."""

    def __init__(self) -> None:
        self._waiting: defaultdict[Hashable, set[asyncio.Event]] = defaultdict(set)
        self._closed = False

    def ring(self, names: Iterable[Hashable]) -> None:
        """Wake all who wait for one of these."""
        for name in names:
            for event in self._waiting.pop(name, ()):
                event.set()

    def close(self) -> None:
        """Wake everybody, and let nobody wait any more."""
        self._closed = True
        self.ring(list(self._waiting))

    async def wait(self, name: Hashable, seconds: float, look: Callable[[], Any]) -> Any:
        """What a look finds: at once, when the bell rings, or when the time is over."""
        end = time.monotonic() + seconds
        while True:
            event = asyncio.Event()
            self._waiting[name].add(event)  # before the look, so that nothing comes in between
            try:
                found = await run_in_threadpool(look)
                left = end - time.monotonic()
                if found or left <= 0 or self._closed:
                    return found
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(event.wait(), left)
            finally:
                self._waiting[name].discard(event)
                if not self._waiting[name]:
                    del self._waiting[name]


bells = Bells()
#: the newest request of every node for its next message: an older one, of a line that is cut, takes none
_newest: dict[int, object] = {}
#: messages whose replies are here
_answered: set[str] = set()

router = APIRouter(route_class=ProtobufRoute, tags=["Parcels"])


def let_nobody_wait_at_the_end() -> None:
    """Have the server of this process answer requests that wait when it is to end."""
    leave = uvicorn.Server.handle_exit

    def handle_exit(server: uvicorn.Server, number: int, frame: FrameType | None) -> None:
        bells.close()
        leave(server, number, frame)

    uvicorn.Server.handle_exit = handle_exit  # type: ignore[method-assign, assignment]


def add_routes(app: FastAPI) -> None:
    """Add the routes to a SuperLink's app."""
    routes = (HAND_IN, FETCH, SEND, COLLECT)
    PROTOBUF_REQUEST_TYPES.update({("POST", path): PushObjectRequest for path in routes})
    http_logging.ROUTINE_ACCESS_PATHS = http_logging.ROUTINE_ACCESS_PATHS.union(routes)  # no line for each
    app.include_router(router)


# ---- nodes ---------------------------------------------------------------------------------------


@router.post(HAND_IN)
async def hand_in_parcel(envelope: Envelope, state: State) -> PullObjectResponse:
    """Take a reply in."""
    head, *objects = read_parts(envelope.object_content) or [b""]
    parcel, contents = _read(PushMessagesRequest, head), read_contents(objects)
    if len(parcel.messages_list) != 1 or parcel.node.node_id != envelope.node.node_id:
        raise FlowerError(ApiErrorCode.INVALID_PROTOBUF_PAYLOAD, "A parcel is one message of its sender.")
    about = parcel.messages_list[0].metadata

    def take(state: LinkState) -> None:
        answer = fleet_handlers.push_messages(request=parcel, state=state)
        _store(state, about.run_id, answer, contents)

    await run_in_threadpool(_at_once, state, take)
    _answered.add(about.reply_to_message_id)
    bells.ring([("run", about.run_id)])
    return PullObjectResponse(object_found=True)


@router.post(FETCH)
async def fetch_parcel(envelope: Envelope, state: State) -> PullObjectResponse:
    """Give a node its next message, when there is one."""
    node, this = envelope.node, object()
    _newest[node.node_id] = this

    def look(state: LinkState) -> Any:
        if _newest.get(node.node_id) is not this:
            return None
        found = fleet_handlers.pull_messages(
            request=PullMessagesRequest(node=node), state=state, store=state.object_store
        )
        return found if found.messages_list else None

    found = await bells.wait(("node", node.node_id), FETCH_SECONDS, lambda: _at_once(state, look))
    if found is None:
        return _letter(b"", {})
    run_id = found.messages_list[0].metadata.run_id
    if reason := await run_in_threadpool(check_abort, run_id, [Status.FINISHED], state):
        raise FlowerError(ApiErrorCode.FLEET_RUN_STATUS_NOT_ALLOWED, f"SuperNode {node.node_id}: {reason}")
    contents = await run_in_threadpool(_take_out, state, run_id, found.message_object_trees)
    return _letter(found.SerializeToString(), contents)


# ---- runs ----------------------------------------------------------------------------------------


@router.post(SEND)
async def send_parcels(envelope: Envelope, state: State, task: TaskDependency) -> PullObjectResponse:
    """Take in the messages of a run."""
    head, *objects = read_parts(envelope.object_content) or [b""]
    parcels, contents = _read(PushAppMessagesRequest, head), read_contents(objects)

    def take(state: LinkState) -> Any:
        answer = runtime_handlers.push_messages(parcels, state, task)
        _store(state, task.run_id, answer, contents)
        return answer

    answer = await run_in_threadpool(_at_once, state, take)
    bells.ring(("node", message.metadata.dst_node_id) for message in parcels.messages_list)
    return _letter(answer.SerializeToString(), {})


@router.post(COLLECT)
async def collect_parcels(envelope: Envelope, state: State, task: TaskDependency) -> PullObjectResponse:
    """Give a run the replies to its messages, when all are there or some time is over."""
    asked = _read(PullAppMessagesRequest, (read_parts(envelope.object_content) or [b""])[0])
    wanted = set(asked.message_ids)
    await bells.wait(("run", task.run_id), COLLECT_SECONDS, lambda: wanted <= _answered)
    found = await run_in_threadpool(_at_once, state, lambda state: runtime_handlers.pull_messages(asked, state, task))
    _answered.difference_update(message.metadata.reply_to_message_id for message in found.messages_list)
    contents = await run_in_threadpool(_take_out, state, task.run_id, found.message_object_trees)
    return _letter(found.SerializeToString(), contents)


# ---- what they share -----------------------------------------------------------------------------


def _letter(head: bytes, contents: Contents) -> PullObjectResponse:
    return PullObjectResponse(object_found=True, object_content=write_parts([head, *write_contents(contents)]))


def _read(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except Exception:
        raise FlowerError(ApiErrorCode.INVALID_PROTOBUF_PAYLOAD, "A parcel cannot be read.") from None


def _at_once(state: LinkState, do: Callable[[LinkState], Found]) -> Found:
    """Do something in one transaction, where the state is kept in a database."""
    with state.session() if hasattr(state, "session") else contextlib.nullcontext():
        return do(state)


def _store(state: LinkState, run_id: int, answer: Any, contents: Contents) -> None:
    """Store the objects a SuperLink asks for."""
    for name in answer.objects_to_push:
        if name not in contents or not state.store_object(run_id, answer.session_id, name, contents[name]):
            raise FlowerError(ApiErrorCode.INVALID_PROTOBUF_PAYLOAD, "A parcel is not complete.")


def _take_out(state: LinkState, run_id: int, trees: Sequence[Any]) -> dict[str, bytes]:
    """The objects of messages, which are delivered with them."""
    names = {each.object_id for tree in trees for each in iterate_object_tree(tree)}
    end = time.monotonic() + LATE_SECONDS
    while True:
        contents = _at_once(state, lambda state: {name: state.get_object(run_id, name) or b"" for name in names})
        if all(contents.values()) or time.monotonic() > end:
            break
        time.sleep(0.1)

    def forget(state: LinkState) -> None:
        for tree in trees:
            state.object_store.delete(tree.object_id)

    _at_once(state, forget)
    return contents
