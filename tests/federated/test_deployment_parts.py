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
from flwr.supercore.state.alembic import utils as migrations
from sqlalchemy import create_engine, inspect, text

from fedanon.errors import ConfigError
from fedanon.federated import packing, wire
from fedanon.federated.deployment import steady_grid, worker
from fedanon.federated.deployment.presence import present, who_is_present
from fedanon.federated.deployment.steady_grid import SteadyGrid
from fedanon.federated.deployment.superlink import make_database
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


# ---- the database of a SuperLink -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:No path_separator found:DeprecationWarning")  # Flower's own
def test_a_database_is_made_whole_or_not_at_all(tmp_path, monkeypatch):
    """Killed while it makes its tables, Flower would find half of them at its next start, and refuse for good."""
    path, real = tmp_path / "state.db", migrations.run_migrations

    def die_half_way(engine):
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE node (node_id INTEGER)"))
        raise KeyboardInterrupt

    monkeypatch.setattr(migrations, "run_migrations", die_half_way)
    with pytest.raises(KeyboardInterrupt):
        make_database(path)
    assert not path.exists()
    monkeypatch.setattr(migrations, "run_migrations", real)
    make_database(path)
    assert [each.name for each in tmp_path.iterdir()] == ["state.db"]
    before = path.read_bytes()
    make_database(path)
    assert path.read_bytes() == before
    engine = create_engine(f"sqlite:///{path}")
    real(engine)  # as Flower does at every start
    assert {"node", "run", "alembic_version"} <= set(inspect(engine).get_table_names())
    engine.dispose()


WATCHING = """
import subprocess, sys, threading, time, types
from fedanon.federated.deployment.superlink import end_with_superexec
lifespan = types.SimpleNamespace(superexec_process=None)
threading.Thread(target=end_with_superexec, args=[lifespan], daemon=True).start()
subprocess.Popen(["true"])  # nobody waits for it: it stays visible, as a child that has ended
time.sleep(1.5)
print("alive", flush=True)
lifespan.superexec_process = subprocess.Popen(["sleep", "0.1"])
time.sleep(600)
"""


def test_a_superlink_ends_with_the_process_that_starts_its_runs_and_with_no_other():
    with subprocess.Popen([sys.executable, "-c", WATCHING], stdout=subprocess.PIPE) as link:
        assert link.stdout is not None
        assert link.stdout.readline() == b"alive\n"
        assert link.wait(60) == -signal.SIGTERM
