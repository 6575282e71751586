"""Whole messages in one request: what a SuperLink of ours takes from whom, and whom it keeps waiting."""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64encode

import httpx
import pytest
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.constant import NOOP_ACCOUNT_NAME, NOOP_FLWR_AID, TIMESTAMP_HEADER
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.message_pb2 import PullObjectResponse, PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.date import now
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes, sign_message
from flwr.supercore.protobuf.constants import PROTOBUF_MEDIA_TYPE
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.main import create_app
from hypothesis import given
from hypothesis import strategies as st

from fedanon.federated.deployment import parcel_routes, parcels
from fedanon.federated.deployment.parcels import COLLECT, FETCH, HAND_IN, SEND, read_parts, write_parts


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 400))
def test_parts_are_read_as_they_were_written_and_broken_ones_end(parts, end):
    data = write_parts(parts)
    assert read_parts(data) == parts
    cut = read_parts(data[:end])  # of a hostile sender: never an error, never more than there is
    assert cut[:-1] == parts[: max(len(cut) - 1, 0)]


def test_the_objects_of_a_message_make_it_again():
    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 3, 0
    message = Message(RecordDict({"a": ConfigRecord({"b": b"c"})}), dst_node_id=1, message_type="query")
    tree = parcels.get_object_tree(message)
    assert parcels.open_parcel(message, tree, parcels.objects_of(message)).content == message.content
    half = dict(list(parcels.objects_of(message).items())[:1])
    for wrong in ({}, half, {tree.object_id: b"\xff" * 50}):  # what a hostile server may send ends no node
        with pytest.raises(parcels.ObjectPullError):
            parcels.open_parcel(message, tree, wrong)
    records = message.content
    with pytest.raises(parcels.ObjectPullError):
        parcels.open_parcel(message, parcels.get_object_tree(records), {records.object_id: records.deflate()})


@pytest.mark.parametrize(("answer", "fails"), [(b"", False), (b"\xff" * 30, True), (write_parts([b"\xff\xff"]), True)])
def test_what_is_fetched_and_cannot_be_read_ends_no_node(answer, fails, monkeypatch):
    monkeypatch.setattr(parcels, "ask", lambda *_: read_parts(answer))
    with pytest.raises(parcels.ObjectPullError, match="cannot be read") if fails else contextlib.nullcontext():
        assert parcels.fetch(None, 1) is None


# ---- who may ask ---------------------------------------------------------------------------------


class Link:
    """A SuperLink in this process, with two nodes that it knows."""

    def __init__(self) -> None:
        app = create_app()
        parcel_routes.add_routes(app)
        self.state = app.state.linkstate_factory.state()
        self.app = app
        self.keys = [generate_key_pairs() for _ in range(2)]
        self.nodes = [
            self.state.create_node(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME, public_key_to_bytes(public), 0)
            for _, public in self.keys
        ]

    def post(self, path: str, node: int, content: bytes = b"", key: int | None = None) -> tuple[int, bytes]:
        """Ask under a node's number, with the key of one or with none."""
        headers = {"content-type": PROTOBUF_MEDIA_TYPE}
        if key is not None:
            private, public = self.keys[key]
            stamp = now().isoformat()
            signed = b64encode(sign_message(private, stamp.encode())).decode()
            shown = b64encode(public_key_to_bytes(public)).decode()
            headers |= {
                TIMESTAMP_HEADER: stamp,
                FLEET_HTTP_SIGNATURE_HEADER: signed,
                FLEET_HTTP_PUBLIC_KEY_HEADER: shown,
            }
        envelope = PushObjectRequest(node=Node(node_id=node), object_content=content)

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                return await client.post(path, content=envelope.SerializeToString(), headers=headers)

        answer = asyncio.run(ask())
        return answer.status_code, answer.content


@pytest.fixture(scope="module")
def link():
    return Link()


@pytest.mark.parametrize("path", [HAND_IN, FETCH])
def test_a_node_asks_with_its_own_key_alone(link, path, monkeypatch):
    monkeypatch.setattr(parcel_routes, "FETCH_SECONDS", 0.0)
    assert link.post(path, link.nodes[0])[0] == 401
    assert link.post(path, link.nodes[0], key=1)[0] == 401
    assert link.post(path, link.nodes[0], key=0)[0] != 401


@pytest.mark.parametrize("path", [SEND, COLLECT])
def test_a_run_asks_with_its_token_alone(link, path):
    status, said = link.post(path, 1, key=0)
    assert status in (401, 403)
    assert b"oken" in said or b"uthenti" in said


def test_a_node_without_a_message_is_told_so(link, monkeypatch):
    monkeypatch.setattr(parcel_routes, "FETCH_SECONDS", 0.0)
    status, said = link.post(FETCH, link.nodes[0], key=0)
    assert status == 200
    assert read_parts(PullObjectResponse.FromString(said).object_content) == [b""]


def test_a_parcel_that_cannot_be_read_or_is_another_nodes_is_refused(link):
    other = PushMessagesRequest(node=Node(node_id=link.nodes[1])).SerializeToString()
    for content in (b"", b"\xff" * 9, write_parts([b"\xff\xff"]), write_parts([other])):
        assert link.post(HAND_IN, link.nodes[0], content, key=0)[0] == 400


# ---- waiting -------------------------------------------------------------------------------------


def test_who_waits_is_woken_by_the_bell_by_the_clock_and_by_the_end():
    async def scenario() -> None:
        bells, found = parcel_routes.Bells(), list[int]()
        waiting = asyncio.create_task(bells.wait("node", 600.0, lambda: list(found)))
        await asyncio.sleep(0.05)
        bells.ring(["another"])
        await asyncio.sleep(0.05)
        assert not waiting.done()
        found.append(1)
        bells.ring(["node"])
        assert await waiting == [1]
        assert await bells.wait("node", 0.01, list) == []
        last = asyncio.create_task(bells.wait("node", 600.0, list))
        await asyncio.sleep(0.05)
        bells.close()
        assert await last == []

    asyncio.run(scenario())
