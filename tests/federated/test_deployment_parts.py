"""What recovery is made of: processes that end with their parent, forks that are killed, messages that are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
from flwr.common.constant import ErrorCode

from fedanon.errors import ConfigError
from fedanon.federated import packing, wire
from fedanon.federated.deployment import steady_grid, worker
from fedanon.federated.deployment.presence import present, who_is_present
from fedanon.federated.deployment.steady_grid import SteadyGrid
from fedanon.federated.engines import LocalGrid
from tests.federated.conftest import prepared_app, settings
from tests.federated.test_recovery import is_alive

PARENT = """
import sys, time, os
from fedanon.federated.deployment.processes import start
child = start([sys.executable, "-c", "import time; time.sleep(600)"], os.environ)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not offer it")
def test_a_child_ends_with_a_parent_that_is_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    end = time.monotonic() + 60
    while is_alive(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not is_alive(child)


def test_one_process_at_a_time_is_present(tmp_path):
    path = tmp_path / "node.pid"
    assert who_is_present(path) is None
    with present(path, "This node"):
        assert who_is_present(path) == os.getpid()
        with pytest.raises(ConfigError, match=f"This node is running already, as process {os.getpid()}"):  # noqa: SIM117
            with present(path, "This node"):
                pass
    assert who_is_present(path) is None


# ---- forks ------------------------------------------------------------------------------------------


class KilledApp:
    """An app whose process is killed as often as a file says."""

    def __init__(self, left: Path) -> None:
        self._left = left

    def __call__(self, message: Message, context: Context) -> Message:
        left = int(self._left.read_text())
        if left:
            self._left.write_text(str(left - 1))
            os.kill(os.getpid(), signal.SIGKILL)
        context.state["note"] = ConfigRecord({"seen": 1})
        return Message(RecordDict(), reply_to=message)


@pytest.fixture
def asked() -> tuple[Message, Context]:
    LocalGrid(prepared_app(settings()), settings())  # an identity for messages
    message = wire.request(1, "query", 0, wire.request_content(0, wire.pack_arrays([])))
    return message, Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={})


@pytest.mark.parametrize(("kills", "answers"), [(0, True), (1, True), (2, False)])
def test_a_killed_fork_is_started_once_more(tmp_path, monkeypatch, asked, kills, answers):
    left = tmp_path / "left"
    left.write_text(str(kills))
    monkeypatch.setattr(worker, "client_app", lambda: KilledApp(left))
    reply = worker.answer(*asked, lambda: None)
    assert reply.has_content() == answers
    assert ("note" in asked[1].state) == answers
    assert answers or reply.error.code == ErrorCode.CLIENT_APP_CRASHED


def test_the_text_of_a_foreign_exception_stays_at_the_node(monkeypatch, asked):
    def fail(*_: object) -> Message:
        raise ValueError("CANARY-5512")

    monkeypatch.setattr(worker, "client_app", lambda: fail)
    reply = worker.answer(*asked, lambda: None)
    assert reply.error.reason == "The node failed with a ValueError; its own log says more."


# ---- messages ---------------------------------------------------------------------------------------


class LossyGrid(LocalGrid):
    """A grid that loses the first messages to a node, which is away for some looks."""

    def __init__(self, loses: int, away: int) -> None:
        chosen = settings()
        super().__init__(prepared_app(chosen), chosen)
        self.loses, self.away = loses, away
        self.sent: list[int] = []

    def get_node_ids(self) -> Iterable[int]:
        self.away -= 1
        return [node for node in super().get_node_ids() if node != 2 or self.away < 0]

    def _deliver(self, message: Message) -> Message:
        assert packing.PACKED in message.content
        self.sent.append(node := message.metadata.dst_node_id)
        if node == 2 and self.loses:
            self.loses -= 1
            return Message(Error(code=ErrorCode.NODE_UNAVAILABLE, reason="gone"), reply_to=message)
        return super()._deliver(message)


def ask(grid: SteadyGrid) -> list[int]:
    content = wire.request_content(0, wire.pack_arrays([]))
    replies = grid.send_and_receive([wire.request(node, "query", 0, content) for node in (1, 2, 3)], timeout=60)
    assert all(wire.read_facts(reply)[0] == reply.metadata.src_node_id - 1 for reply in replies)
    return sorted(reply.metadata.src_node_id for reply in replies)


def test_a_node_that_was_away_is_asked_again():
    lossy = LossyGrid(loses=2, away=1)
    assert ask(SteadyGrid(lossy, return_seconds=60)) == [1, 2, 3]
    assert lossy.sent.count(2) == 3
    assert lossy.sent.count(1) == 1


def test_a_node_that_stays_away_is_waited_for_once(monkeypatch):
    monkeypatch.setattr(steady_grid, "LONGEST_PAUSE", 0.01)
    lossy = LossyGrid(loses=5, away=10**9)
    grid = SteadyGrid(lossy, return_seconds=0.2)
    assert ask(grid) == [1, 3]
    grid._return_seconds = 10**9  # it is given up: the next question does not wait for it
    assert ask(grid) == [1, 3]
    lossy.loses = 0
    assert ask(grid) == [1, 2, 3]


def test_large_contents_travel_as_they_are(monkeypatch):
    content = wire.request_content(1, wire.pack_arrays([]))
    assert packing.unpack(packing.pack(content)) == content
    monkeypatch.setattr(packing, "MAX_BYTES", 1)
    assert packing.pack(content) is content
    broken = RecordDict({packing.PACKED: ConfigRecord({packing.DATA: b"\xff\xff"})})
    assert packing.unpack(broken) is broken
