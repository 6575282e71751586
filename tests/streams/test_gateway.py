"""A gateway from the outside: windows recounted, nothing lost or twice when it is killed, messages that do not fit."""

from __future__ import annotations

import csv
import json
import logging
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fedanon.data.schema_toml import schema_toml
from fedanon.errors import ConfigError, PrivacyViolationError
from fedanon.streams import running
from fedanon.streams.config import GatewayConfig
from fedanon.streams.dead_letters import DEAD_LETTERS
from fedanon.streams.gateway import Gateway, Incoming
from fedanon.streams.ledger import Ledger, Shown
from fedanon.streams.running import MetricsServer, SteadyClock, replay_file, run_gateway
from fedanon.streams.sources import HttpSource, QueueSource
from fedanon.streams.window_check import check_windows
from fedanon.streams.windows import read_windows
from tests.streams.recount import broken_pseudonyms, short_combinations
from tests.streams.wards import QUASI, readings, schema

METHODS = {
    "records": 'name = "prospect"\nk = 4\ndelay = 40',
    "people": "k = 4\ndelay = 60\nactive = 60\nepoch = 300",
}


def gateway_file(folder: Path, claim: str = "people", *, source: str = "", sink: str = "", top: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "ward.toml").write_text(schema_toml(schema()), encoding="utf-8")
    path = folder / "gateway.toml"
    path.write_text(
        f'schema = "ward.toml"\nclaim = "{claim}"\ntime = "time"\n{top}\n'
        f"[method]\n{METHODS[claim]}\n[source]\n{source}\n[sink]\nseconds = 50\n{sink}\n",
        encoding="utf-8",
    )
    return path


def write_readings(path: Path, count: int = 1500, seed: int = 0, people: int = 40) -> list[dict[str, Any]]:
    """Readings as JSON lines; the pressure of each is its number, by which it is found again."""
    frame = readings(seed, people, count, gap=25.0, absent=0.3)
    frame["pressure"] = [i % 301 for i in range(len(frame))]
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records"))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return rows


def windows(folder: Path) -> list[list[dict[str, Any]]]:
    return [window.rows for window in read_windows(folder / "windows")]


@pytest.mark.parametrize("claim", ["records", "people"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_windows_of_a_replay_keep_the_claim(claim: str, ending: str, tmp_path: Path) -> None:
    config = GatewayConfig.read(gateway_file(tmp_path, claim, sink=f'format = "{ending}"'))
    rows = write_readings(tmp_path / "in.jsonl")
    done = replay_file(config, tmp_path / "in.jsonl").counts
    assert done.taken == len(rows)
    assert done.published + done.dropped == len(rows)
    assert done.published > len(rows) / 2
    shown = windows(tmp_path)
    assert len(shown) == done.windows > 2
    assert sum(map(len, shown)) == done.published
    recount = broken_pseudonyms if claim == "people" else short_combinations
    assert recount(shown, QUASI, 4) == 0
    assert all(float(row["time"]) % 60 == 0 for window in shown for row in window)
    found = check_windows(tmp_path / "windows", QUASI)
    found.require()
    assert (found.windows, found.rows, found.broken) == (done.windows, done.published, 0)


def test_a_changed_or_missing_window_is_found(tmp_path: Path) -> None:
    config = GatewayConfig.read(gateway_file(tmp_path, sink='format = "csv"'))
    write_readings(tmp_path / "in.jsonl")
    replay_file(config, tmp_path / "in.jsonl")
    first, *_, last = sorted((tmp_path / "windows").glob("*.csv"))
    lines = first.read_text(encoding="utf-8").splitlines(keepends=True)
    first.write_text("".join([lines[0], *lines[2:]]), encoding="utf-8")
    found = check_windows(tmp_path / "windows", QUASI)
    assert any("is not the file its manifest describes" in fault for fault in found.faults)
    with pytest.raises(PrivacyViolationError):
        found.require()
    del last
    second = sorted((tmp_path / "windows").glob("*.manifest.json"))[1]
    second.unlink()
    assert any("Window 1 is missing" in fault for fault in check_windows(tmp_path / "windows", QUASI).faults)


def test_a_short_class_is_not_written() -> None:
    ledger = Ledger("records", 3, ["age"])
    ledger.require([Shown({"age": "[1, 2]"}, p) for p in ("a", "b", "c")])
    ledger.require([Shown({"age": "[1, 2]"}, "a")])
    with pytest.raises(PrivacyViolationError, match="1 classes"):
        ledger.require([Shown({"age": "7"}, p) for p in ("a", "b", "b")])


def test_messages_that_do_not_fit_are_counted_and_not_quoted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gateway = Gateway(GatewayConfig.read(gateway_file(tmp_path)))
    good = {"patient": "SECRET", "age": 30, "unit": "renal", "time": 1.0, "pressure": 100}
    bad: list[Any] = [
        b"{not json SECRET",
        b"[1, 2]",
        {**good, "age": "SECRET"},
        {**good, "age": 777},
        {**good, "unit": "SECRET"},
        {**good, "patient": ""},
        {**good, "SECRET": 1},
        {**good, "age": None},
        {**good, "age": [1]},
        {name: value for name, value in good.items() if name != "time"},
    ]
    acks: list[int] = []
    gateway.take([Incoming(data, ack=lambda i=i: acks.append(i)) for i, data in enumerate([*bad, good])], 1.0)
    assert acks == list(range(len(bad) + 1))
    assert (gateway.counts.taken, gateway.counts.refused) == (1, len(bad))
    assert "SECRET" not in caplog.text
    assert "777" not in caplog.text
    letters = (tmp_path / "state" / DEAD_LETTERS).read_text(encoding="utf-8").splitlines()
    assert len(letters) == len(bad)
    assert (tmp_path / "state" / DEAD_LETTERS).stat().st_mode & 0o077 == 0
    gateway.close()


def test_a_message_that_comes_again_is_taken_once(tmp_path: Path) -> None:
    message = {"patient": "a", "age": 30, "unit": "renal", "time": 1.0, "pressure": 100}
    path = gateway_file(tmp_path)
    gateway = Gateway(GatewayConfig.read(path))
    gateway.take([Incoming(message, may_repeat=True)] * 2, 1.0)
    gateway.close()  # as if it had been killed: nothing but the journal
    again = Gateway(GatewayConfig.read(path))
    again.take([Incoming(message, may_repeat=True), Incoming({**message, "time": 2.0}, may_repeat=True)], 2.0)
    assert (again.counts.taken, again.counts.repeated) == (2, 1)
    again.close()


def test_another_method_does_not_go_on_from_the_state_of_the_first(tmp_path: Path) -> None:
    path = gateway_file(tmp_path)
    write_readings(tmp_path / "in.jsonl", 400)
    replay_file(GatewayConfig.read(path), tmp_path / "in.jsonl")
    path.write_text(path.read_text(encoding="utf-8").replace("k = 4", "k = 3"), encoding="utf-8")
    with pytest.raises(ConfigError, match="is not that of its state folder"):
        Gateway(GatewayConfig.read(path))


def test_the_clock_neither_goes_back_nor_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SteadyClock(floor=time.time() + 1000)
    first = clock()
    assert first >= time.time() + 999
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert first <= clock() < first + 100


# ---- killed at random points ---------------------------------------------------------------------


def expected(folder: Path, claim: str, rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The windows of a run that nobody disturbs, with the same key."""
    folder.mkdir()
    (folder / "state").mkdir()
    (folder / "state" / "gateway.key").write_bytes((folder.parent / "killed" / "state" / "gateway.key").read_bytes())
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    replay_file(GatewayConfig.read(gateway_file(folder, claim, sink='format = "csv"')), folder / "in.jsonl")
    return windows(folder)


def kill_until_done(folder: Path, file: Path, kills: int) -> int:
    """Run a replay that is killed again and again; how often it was before it ended."""
    command = [sys.executable, "-m", "tests.streams.slow_replay", folder / "gateway.toml", file, kills]
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("claim", ["records", "people"])
@pytest.mark.parametrize("kills", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_is_lost_or_twice_when_it_is_killed(
    claim: str, kills: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every kill is at a random sync, rename or publication; the windows are those of a run that nobody disturbs."""
    folder = tmp_path / "killed"
    gateway_file(folder, claim, sink='format = "csv"')
    rows = write_readings(folder / "in.jsonl", max(1200, 15 * kills))
    killed = kill_until_done(folder, folder / "in.jsonl", kills)
    shown, whole = windows(folder), expected(tmp_path / "whole", claim, rows)
    found, due = (Counter(tuple(row.values()) for window in part for row in window) for part in (shown, whole))
    lost, twice = (due - found).total(), (found - due).total()
    with capsys.disabled():
        print(
            f"\n{claim}: {killed} SIGKILLs in {len(rows):,} readings, {found.total():,} published in "
            f"{len(shown)} windows: {lost} lost, {twice} twice"
        )
    assert (killed, lost, twice) == (kills, 0, 0)
    assert shown == whole
    check_windows(folder / "windows", QUASI).require()


# ---- sources -------------------------------------------------------------------------------------


def test_json_lines_and_csv_give_the_same_windows(tmp_path: Path) -> None:
    rows = write_readings(tmp_path / "in.jsonl", 600)
    with (tmp_path / "in.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    shown = []
    for name in ("in.jsonl", "in.csv"):
        folder = tmp_path / name.replace(".", "_")
        (folder / "state").mkdir(parents=True)
        (folder / "state" / "gateway.key").write_bytes(b"k" * 32)
        replay_file(GatewayConfig.read(gateway_file(folder, sink='format = "csv"')), tmp_path / name)
        shown.append(windows(folder))
    assert shown[0] == shown[1]


def post(port: int, body: Any) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        code = error.code
        error.close()
        return code


def test_http_answers_when_the_reading_is_on_disk(tmp_path: Path) -> None:
    gateway = Gateway(GatewayConfig.read(gateway_file(tmp_path)))
    source = HttpSource(10, "127.0.0.1", 0)
    metrics = MetricsServer(gateway, 0)
    good = {"patient": "a", "age": 30, "unit": "renal", "time": 1.0, "pressure": 100}
    answers: list[int] = []
    sender = threading.Thread(target=lambda: answers.append(post(source.port, [good, {**good, "time": 2.0}])))
    sender.start()
    found: list[Incoming] = []
    while len(found) < 2:
        found += source.read(10, 1.0) or []
    assert answers == [], "nothing is answered before it is taken in"
    gateway.take(found, 1.0)
    sender.join()
    assert answers == [202]
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
        assert b"fedanon_stream_taken_total 2\n" in answer.read()
    metrics.close()
    source.close()
    gateway.close()


def test_http_says_no_when_there_is_no_room() -> None:
    source = HttpSource(1, "127.0.0.1", 0)
    source.patience = 0.2
    assert post(source.port, [{"a": 1}, {"a": 2}]) == 503
    source.close()


def test_a_file_is_published_by_run_too(tmp_path: Path) -> None:
    rows = write_readings(tmp_path / "in.jsonl", 300)
    config = GatewayConfig.read(gateway_file(tmp_path, "records", source='kind = "file"\npath = "in.jsonl"'))
    done = run_gateway(config, threading.Event())
    assert done.counts.taken == len(rows)
    assert Counter(done.counts.to_dict())["published"] > 0
    assert done.engine.waiting == 0


def test_standard_input_is_published_until_it_ends(tmp_path: Path) -> None:
    rows = write_readings(tmp_path / "in.jsonl", 300)
    path = gateway_file(tmp_path, "records", source='kind = "stdin"', sink='format = "csv"')
    lines = (tmp_path / "in.jsonl").read_bytes() + b"no JSON\n\n"
    command = [sys.executable, "-m", "fedanon.cli", "stream", "run", "--json", str(path)]
    done = subprocess.run(command, input=lines, check=True, capture_output=True)
    counts = json.loads(done.stdout)
    assert (counts["taken"], counts["refused"], counts["waiting"]) == (len(rows), 1, 0)
    assert sum(map(len, windows(tmp_path))) == counts["published"]
    check_windows(tmp_path / "windows", QUASI).require()


def test_a_full_buffer_makes_the_source_wait_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is taken in while as many readings wait as may; when the clock has let them go, the rest comes."""
    caplog.set_level(logging.WARNING, logger="fedanon")  # a simulation of the same process may have silenced it
    monkeypatch.setattr(running, "BATCH", 10)
    path = gateway_file(tmp_path, sink='format = "csv"')
    text = path.read_text(encoding="utf-8").replace(METHODS["people"], METHODS["people"] + "\nbuffer = 20")
    path.write_text(text, encoding="utf-8")
    gateway = Gateway(GatewayConfig.read(path))
    rows = [{"patient": f"p{i}", "age": 30 + i % 9, "unit": "renal", "time": 0.0, "pressure": i} for i in range(45)]
    source, stop, most = QueueSource(100), threading.Event(), 0
    for row in rows:
        source.put(Incoming(row))
    source.put(None)
    moment = [1000.0]
    monkeypatch.setattr(running, "SteadyClock", lambda _: lambda: moment[0])

    def tick(seconds: float) -> bool:
        nonlocal most
        most = max(most, gateway.engine.waiting)
        assert source._queue.qsize() > 0, "the source still holds what is not taken in"
        moment[0] += 61.0  # longer than the delay
        return False

    monkeypatch.setattr(stop, "wait", tick)
    assert running._pump(gateway, source, stop)
    gateway.finish()
    gateway.close()
    assert gateway.counts.taken == len(rows)
    assert 20 <= most <= 30
    full = [record for record in caplog.records if "The buffer is full" in record.message]
    assert 1 <= len(full) <= 3
    assert gateway.counts.published + gateway.counts.dropped == len(rows)


@pytest.mark.parametrize("claim", ["records", "people"])
def test_times_that_jump_neither_lose_readings_nor_break_the_claim(claim: str, tmp_path: Path) -> None:
    """A replay by the times of messages that go back a day, and forward ten years, and back."""
    rows = write_readings(tmp_path / "in.jsonl", 400)
    for i, row in enumerate(rows):
        row["time"] += {3: -86_400.0, 5: 3.15e6}.get(i // 50, 0.0) if i % 50 == 0 else 0.0
        row["time"] = max(row["time"], 0.0)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    config = GatewayConfig.read(gateway_file(tmp_path, claim, sink='format = "csv"'))
    gateway = replay_file(config, tmp_path / "in.jsonl")
    assert gateway.counts.taken == len(rows)
    assert gateway.counts.published + gateway.counts.dropped == len(rows)
    recount = broken_pseudonyms if claim == "people" else short_combinations
    assert recount(windows(tmp_path), QUASI, 4) == 0
    check_windows(tmp_path / "windows", QUASI).require()


BLOCKED = """
import importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(name=name.split(".")[0])
sys.meta_path.insert(0, Block())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name.split(".")[0] in {blocked!r} else found(name, *more)
from fedanon.cli.__main__ import main
sys.argv = ["fedanon", *sys.argv[1:]]
main()
"""
HEAVY = ("xgboost", "torch", "matplotlib", "pyarrow", "scipy", "sklearn", "flwr")


@pytest.mark.parametrize(("claim", "more"), [("people", ("pandas", "numba")), ("records", ("pandas",))])
def test_a_gateway_works_without_what_an_edge_has_no_room_for(
    claim: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    """Without pyarrow windows are CSV files; people need no pandas and no compiler either."""
    rows = write_readings(tmp_path / "in.jsonl", 300)
    path = gateway_file(tmp_path, claim)
    command = [sys.executable, "-c", BLOCKED.format(blocked=(*HEAVY, *more)), "stream"]
    done = subprocess.run(
        [*command, "replay", "--json", str(path), str(tmp_path / "in.jsonl")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["taken"] == len(rows)
    assert not list((tmp_path / "windows").glob("*.parquet"))
    checked = subprocess.run(
        [*command, "check", str(tmp_path / "windows"), "--schema", str(tmp_path / "ward.toml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


def test_a_broker_that_is_not_there_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("paho.mqtt.client")
    path = gateway_file(tmp_path, source='kind = "mqtt"\ntopic = "ward/vitals"')
    path.write_text(path.read_text(encoding="utf-8") + '[broker]\nhost = "127.0.0.1"\nport = 1\n', encoding="utf-8")
    stop = threading.Event()
    message = "The broker at 127.0.0.1:1 cannot be reached; trying again."

    def stop_when_said() -> None:
        end = time.monotonic() + 30
        while message not in caplog.text and time.monotonic() < end:
            time.sleep(0.05)
        stop.set()

    threading.Thread(target=stop_when_said).start()
    with caplog.at_level(logging.WARNING, logger="fedanon"):
        run_gateway(GatewayConfig.read(path), stop)
    assert message in caplog.text
