"""A real broker: TLS, a persistent session, a gateway that is killed, a broker that goes away and comes back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fedanon.errors import ConfigError
from fedanon.streams.config import BrokerConfig, GatewayConfig, SinkConfig, SourceConfig
from fedanon.streams.dead_letters import DEAD_LETTERS
from fedanon.streams.mqtt import MqttOutlet, MqttSource
from fedanon.streams.running import run_gateway
from fedanon.streams.window_check import check_windows
from tests.streams.recount import short_combinations
from tests.streams.test_gateway import gateway_file, windows, write_readings
from tests.streams.wards import QUASI

MOSQUITTO = shutil.which("mosquitto") or next((p for p in ("/usr/sbin/mosquitto",) if Path(p).exists()), None)
pytestmark = pytest.mark.skipif(MOSQUITTO is None, reason="needs the broker mosquitto")
mqtt = pytest.importorskip("paho.mqtt.client")
PacketTypes = pytest.importorskip("paho.mqtt.packettypes").PacketTypes
ReasonCode = pytest.importorskip("paho.mqtt.reasoncodes").ReasonCode
PASSWD = shutil.which("mosquitto_passwd")
SOURCE = 'topic = "ward/+/vitals"\ndead_letters = "dead"'


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def broker(folder: Path, port: int, *lines: str) -> Iterator[None]:
    """Mosquitto on loopback; what it holds survives a restart."""
    folder.mkdir(exist_ok=True)
    config = folder / "mosquitto.conf"
    user = "user root\n" if os.geteuid() == 0 else ""
    config.write_text(
        f"{user}persistence true\npersistence_location {folder}/\nautosave_interval 1\nautosave_on_changes true\n"
        f"max_queued_messages 0\nmax_inflight_messages 200\nlistener {port} 127.0.0.1\n"
        + ("" if any("allow_anonymous" in line for line in lines) else "allow_anonymous true\n")
        + "\n".join(lines),
        encoding="utf-8",
    )
    assert MOSQUITTO is not None
    process = subprocess.Popen([MOSQUITTO, "-c", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait(lambda: is_open(port))
        yield
    finally:
        process.terminate()
        process.wait(10)


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def wait(done: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


def client(port: int, name: str, ca: Path | None = None, on_message: Any = None) -> Any:
    made = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, clean_session=False)
    if on_message is not None:
        made.on_message = on_message
        made.on_connect = lambda each, *_: each.subscribe("anonymous", qos=1)
    if ca is not None:
        made.tls_set(ca_certs=str(ca))
    made.reconnect_delay_set(1, 1)
    made.connect("127.0.0.1", port)
    made.loop_start()
    return made


def end(*clients: Any) -> None:
    for each in clients:
        each.disconnect()
        each.loop_stop()


def send(sender: Any, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        sender.publish("ward/1/vitals", json.dumps(row), qos=1).wait_for_publish(30)


def listening(folder: Path, sender: Any) -> None:
    """Wait until a gateway listens and has taken in what was sent: until one more message is refused.

    It has subscribed then, and the broker keeps what comes while it is away.
    """
    marks: list[str] = []

    def refused() -> bool:
        if len(marks) < 200:
            marks.append(f"not JSON {len(marks)} {time.monotonic()}")
            sender.publish("ward/1/vitals", marks[-1], qos=1)
        letters = folder / "state" / DEAD_LETTERS
        return letters.exists() and any(mark in letters.read_text(encoding="utf-8") for mark in marks)

    wait(refused)


def configure(folder: Path, port: int, tls: str = "") -> Path:
    path = gateway_file(
        folder,
        "records",
        source='kind = "mqtt"\ntopic = "ward/+/vitals"',
        sink='format = "csv"\nrows = 50\ntopic = "anonymous"',
    )
    path.write_text(path.read_text(encoding="utf-8") + f"[broker]\nport = {port}\n{tls}", encoding="utf-8")
    return path


class Subscriber:
    """Leaves out publications whose number it has seen."""

    def __init__(self, port: int, ca: Path | None = None) -> None:
        self.seen: dict[int, list[dict[str, Any]]] = {}
        self.client = client(port, "reader", ca, lambda _c, _u, message: self._take(json.loads(message.payload)))

    def _take(self, publication: dict[str, Any]) -> None:
        self.seen.setdefault(publication["publication"], publication["rows"])

    @property
    def rows(self) -> int:
        return sum(map(len, self.seen.values()))


def in_thread(path: Path) -> tuple[threading.Event, threading.Thread, list[Any]]:
    stop, done = threading.Event(), list[Any]()
    thread = threading.Thread(target=lambda: done.append(run_gateway(GatewayConfig.read(path), stop)))
    thread.start()
    return stop, thread, done


def certificates(folder: Path) -> Path:
    """A broker's certificate for 127.0.0.1, its own authority."""
    folder.mkdir(exist_ok=True)
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
    extension = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder / "key.pem", "-out", folder / "ca.crt"]
    subprocess.run(["openssl", *command.split(), *map(str, extension)], check=True, capture_output=True)
    return folder / "ca.crt"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_readings_come_and_leave_over_tls(tmp_path: Path) -> None:
    port, ca = free_port(), certificates(tmp_path / "broker")
    rows = write_readings(tmp_path / "in.jsonl", 300)
    path = configure(tmp_path / "gateway", port, f'tls = true\nca = "{ca}"')
    with broker(tmp_path / "broker", port, f"certfile {ca}", f"keyfile {ca.with_name('key.pem')}"):
        reader = Subscriber(port, ca)
        stop, thread, done = in_thread(path)
        sender = client(port, "sender", ca)
        listening(tmp_path / "gateway", sender)
        send(sender, rows)
        listening(tmp_path / "gateway", sender)
        stop.set()
        thread.join()
        (gateway,) = done
        wait(lambda: reader.rows == gateway.counts.published)
        end(sender, reader.client)
    assert gateway.counts.taken == len(rows)
    assert gateway.counts.refused >= 1
    shown = [reader.seen[number] for number in sorted(reader.seen)]
    assert short_combinations(shown, QUASI, 4) == 0


@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_nothing_is_lost_when_gateway_and_broker_go_away_and_come_back(tmp_path: Path, version: str) -> None:
    port = free_port()
    rows = write_readings(tmp_path / "in.jsonl", 400)
    path = configure(tmp_path / "gateway", port, f'version = "{version}"')
    command = [sys.executable, "-m", "fedanon.cli", "stream", "run", str(path)]
    with broker(tmp_path / "broker", port):
        reader, sender = Subscriber(port), client(port, "sender")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as gateway:
            try:
                listening(tmp_path / "gateway", sender)
                send(sender, rows[:150])
                wait(lambda: reader.rows > 50)
            finally:
                gateway.send_signal(signal.SIGKILL)
        send(sender, rows[150:250])
    stop, thread, done = in_thread(path)
    with broker(tmp_path / "broker", port):
        wait(lambda: bool(reader.client.is_connected() and sender.is_connected()))
        send(sender, rows[250:])
        listening(tmp_path / "gateway", sender)
        stop.set()
        thread.join()
        (last,) = done
        wait(lambda: reader.rows == last.counts.published)
        end(sender, reader.client)
    assert last.counts.taken == len(rows)
    assert sorted(reader.seen) == list(range(last.counts.publications))
    written = [row for window in windows(tmp_path / "gateway") for row in window]
    assert len(written) >= last.counts.published - 50
    check_windows(tmp_path / "gateway" / "windows", QUASI).require()


def openssl(*arguments: object) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def client_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate for a client, signed by the authority of :func:`certificates`."""
    key, request, made = (folder / f"{name}.{ending}" for ending in ("key", "csr", "crt"))
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", *curve, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
    authority = ("-CA", folder / "ca.crt", "-CAkey", folder / "key.pem", "-CAcreateserial")
    openssl("x509", "-req", "-in", request, *authority, "-days", 2, "-out", made)
    return made, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_client_certificate_opens_the_broker_and_none_does_not(tmp_path: Path) -> None:
    port, ca = free_port(), certificates(tmp_path / "broker")
    made, key = client_certificate(tmp_path / "broker", "gateway")
    lines = [f"certfile {ca}", f"keyfile {ca.with_name('key.pem')}", f"cafile {ca}", "require_certificate true"]
    rows = write_readings(tmp_path / "in.jsonl", 60)
    opened = configure(tmp_path / "gateway", port, f'tls = true\nca = "{ca}"\ncertificate = "{made}"\nkey = "{key}"')
    closed = configure(tmp_path / "stranger", port, f'tls = true\nca = "{ca}"')
    with broker(tmp_path / "broker", port, *lines):
        stop, thread, done = in_thread(opened)
        other_stop, other, others = in_thread(closed)
        sender = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="sender", clean_session=False)
        sender.tls_set(ca_certs=str(ca), certfile=str(made), keyfile=str(key))
        sender.connect("127.0.0.1", port)
        sender.loop_start()
        listening(tmp_path / "gateway", sender)
        send(sender, rows)
        listening(tmp_path / "gateway", sender)
        for each in (stop, other_stop):
            each.set()
        thread.join()
        other.join()
        end(sender)
    assert done[0].counts.taken == len(rows)
    assert others[0].counts.taken == others[0].counts.refused == 0


@pytest.mark.skipif(PASSWD is None, reason="needs mosquitto_passwd")
def test_a_password_opens_the_broker_and_dead_letters_reach_their_topic(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port, folder = free_port(), tmp_path / "broker"
    folder.mkdir()
    subprocess.run([str(PASSWD), "-b", "-c", folder / "users", "ward", "open sesame"], check=True, capture_output=True)
    (folder / "users").chmod(0o600)
    for name, password in (("gateway", "open sesame"), ("stranger", "wrong")):
        path = configure(tmp_path / name, port, 'user = "ward"\npassword_file = "password"')
        text = path.read_text(encoding="utf-8").replace('topic = "ward/+/vitals"', SOURCE)
        path.write_text(text, encoding="utf-8")
        (tmp_path / name / "password").write_text(f"{password}\n", encoding="utf-8")
    rows, letters = write_readings(tmp_path / "in.jsonl", 60), list[dict[str, Any]]()
    with broker(folder, port, "allow_anonymous false", f"password_file {folder / 'users'}"):
        stop, thread, done = in_thread(tmp_path / "gateway" / "gateway.toml")
        other_stop, other, others = in_thread(tmp_path / "stranger" / "gateway.toml")
        sender = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id="sender", clean_session=False)
        sender.username_pw_set("ward", "open sesame")
        sender.on_message = lambda _c, _u, message: letters.append(json.loads(message.payload))
        sender.on_connect = lambda each, *_: each.subscribe("dead", qos=1)
        sender.connect("127.0.0.1", port)
        sender.loop_start()
        listening(tmp_path / "gateway", sender)
        send(sender, [*rows, {**rows[0], "age": "SECRET"}])
        wait(lambda: any("SECRET" in str(letter["message"]) for letter in letters))
        for each in (stop, other_stop):
            each.set()
        thread.join()
        other.join()
        end(sender)
    assert done[0].counts.taken == len(rows)
    assert others[0].counts.taken == others[0].counts.refused == 0
    found = next(letter for letter in letters if "SECRET" in str(letter["message"]))
    assert found["reason"] == "The column 'age' of the message is no number in its declared range."
    assert "SECRET" not in caplog.text
    assert "refuses the gateway (Not authorized); trying again." in caplog.text


def test_a_topic_the_broker_refuses_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # what a broker answers by its rights; Mosquitto's own files of rights let everybody subscribe, and send nothing
    source = MqttSource(BrokerConfig(port=free_port(), version="5"), "ward/#", 10, tmp_path)
    source._client.on_subscribe(None, None, 1, [ReasonCode(PacketTypes.SUBACK, "Not authorized")], None)
    source.close()
    assert "refuses the topic 'ward/#' of the source (Not authorized)" in caplog.text


def test_dead_letters_of_a_file_reach_their_topic(tmp_path: Path) -> None:
    port, letters = free_port(), list[dict[str, Any]]()
    rows = write_readings(tmp_path / "in.jsonl", 60)
    with (tmp_path / "in.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**rows[0], "age": "SECRET"}) + "\n")
    source = f'kind = "file"\npath = "{tmp_path / "in.jsonl"}"\ndead_letters = "anonymous"'
    path = gateway_file(tmp_path / "gateway", "records", source=source)
    path.write_text(path.read_text(encoding="utf-8") + f"[broker]\nport = {port}\n", encoding="utf-8")
    with broker(tmp_path / "broker", port):
        reader = client(port, "reader", on_message=lambda _c, _u, message: letters.append(json.loads(message.payload)))
        wait(reader.is_connected)
        run_gateway(GatewayConfig.read(path), threading.Event())
        wait(lambda: bool(letters))
        end(reader)
    assert [json.loads(letter["message"])["age"] for letter in letters] == ["SECRET"]


def test_a_publication_the_broker_refuses_is_not_taken_for_received(tmp_path: Path) -> None:
    port, folder = free_port(), tmp_path / "broker"
    folder.mkdir()
    rights = folder / "rights"
    rights.write_text("topic read anonymous\n", encoding="utf-8")
    rights.chmod(0o600)
    made = BrokerConfig(port=port, version="5")
    with broker(folder, port, f"acl_file {rights}"):
        outlet = MqttOutlet(made, "anonymous", tmp_path, tmp_path / "sent")
        outlet.publish(0, [{"age": "[20, 30]"}])
        with pytest.raises(ConfigError, match="refuses publications on the topic 'anonymous'"):
            outlet.flush()
        outlet.close()
    assert not (tmp_path / "sent").exists()
    with broker(folder, port):
        reader = Subscriber(port)
        outlet = MqttOutlet(made, "anonymous", tmp_path, tmp_path / "sent")
        outlet.publish(0, [{"age": "[20, 30]"}])
        assert outlet.flush()
        wait(lambda: reader.rows == 1)
        outlet.close()
        end(reader.client)


def test_dead_letters_may_not_come_back() -> None:
    with pytest.raises(ConfigError, match="for ever"):
        SourceConfig(kind="mqtt", topic="ward/#", dead_letters="ward/1/dead")
    SourceConfig(kind="mqtt", topic="ward/+/vitals", dead_letters="ward/1/dead")


@pytest.mark.parametrize("topic", ["ward/#/vitals", "ward/a+", "ward#"])
def test_a_topic_that_no_broker_takes_is_refused(topic: str) -> None:
    with pytest.raises(ConfigError, match="topic of the source is no MQTT topic"):
        SourceConfig(kind="mqtt", topic=topic)


def test_wildcards_are_for_the_source_alone() -> None:
    SourceConfig(kind="mqtt", topic="+/vitals/#", dead_letters="ops/dead")
    with pytest.raises(ConfigError, match="topic of the sink is published on"):
        SinkConfig(topic="anonymous/+")
    with pytest.raises(ConfigError, match="'dead_letters' is published on"):
        SourceConfig(kind="mqtt", topic="ward/+", dead_letters="#")


def test_publications_may_not_come_back(tmp_path: Path) -> None:
    path = configure(tmp_path / "gateway", 1)
    text = path.read_text(encoding="utf-8").replace('topic = "anonymous"', 'topic = "ward/out/vitals"')
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="come back as readings"):
        GatewayConfig.read(path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ({"user": "ward", "password_file": "absent"}, "'password_file' absent of the broker cannot be read"),
        ({"tls": True, "ca": "absent.crt"}, "file absent.crt, the 'ca' of the broker, does not exist"),
        ({"tls": True, "ca": "no.crt"}, "are no certificates and a key to them"),
    ],
)
def test_files_of_the_broker_that_are_missing_or_wrong_are_named(
    tmp_path: Path, lines: dict[str, Any], message: str
) -> None:
    (tmp_path / "no.crt").write_text("nothing", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        MqttSource(BrokerConfig(port=1, **lines), "ward/#", 10, tmp_path)


def test_publications_appear_as_fhir(tmp_path: Path) -> None:
    port = free_port()
    rows = write_readings(tmp_path / "in.jsonl", 200)
    path = configure(tmp_path / "gateway", port)
    text = path.read_text(encoding="utf-8").replace('topic = "anonymous"', 'topic = "anonymous"\nmessages = "fhir"')
    path.write_text(text, encoding="utf-8")
    bundles: dict[str, dict[str, Any]] = {}

    def take(_client: Any, _user: Any, message: Any) -> None:
        made = json.loads(message.payload)
        bundles[made["identifier"]["value"]] = made

    with broker(tmp_path / "broker", port):
        reader, sender = client(port, "reader", on_message=take), client(port, "sender")
        stop, thread, done = in_thread(path)
        listening(tmp_path / "gateway", sender)
        send(sender, rows)
        listening(tmp_path / "gateway", sender)
        stop.set()
        thread.join()
        wait(lambda: len(bundles) == done[0].counts.publications)
        end(sender, reader)
    entries = [entry["resource"] for made in bundles.values() for entry in made["entry"]]
    assert len(entries) == done[0].counts.published > 0
    assert all(entry["resourceType"] == "Observation" for entry in entries)
