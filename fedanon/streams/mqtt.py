"""MQTT: readings from a topic, acknowledged when they are on disk; publications to another, acknowledged by the broker.

The session is persistent and messages have QoS 1: what comes while the gateway is away waits at the broker, and what
was not acknowledged comes again.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError
from fedanon.io.atomic import atomic_write
from fedanon.streams.config import BrokerConfig
from fedanon.streams.gateway import Incoming
from fedanon.streams.sources import QueueSource

log = logging.getLogger("fedanon.streams")

#: seconds between two tries to reach a broker, at first and at most
RETRY = (1, 30)
#: seconds a broker of MQTT 5 keeps the session of a gateway that is away: for ever
KEPT = 0xFFFFFFFF
#: publications on their way to the broker; numbers of MQTT messages count to 65,535 and then begin again
MOST_OPEN = 10_000


def _client(broker: BrokerConfig, name: str, folder: Path, *, manual_ack: bool = False) -> Any:
    try:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
    except ModuleNotFoundError:
        raise ConfigError("MQTT needs paho-mqtt: pip install 'fedanon[streams]'.") from None
    # MQTT 5 says when it connects for how long a session is kept, see _begin
    session: dict[str, Any] = (
        {"protocol": MQTTProtocolVersion.MQTTv5}
        if broker.version == "5"
        else {"protocol": MQTTProtocolVersion.MQTTv311, "clean_session": False}
    )
    client = Client(CallbackAPIVersion.VERSION2, client_id=name, manual_ack=manual_ack, **session)
    client.reconnect_delay_set(*RETRY)
    if broker.user:
        client.username_pw_set(broker.user, _password(folder, broker.password_file))
    if broker.tls:
        _encrypt(client, broker, folder)
    return client


def _password(folder: Path, name: str) -> str | None:
    if not name:
        return None
    try:
        return (folder / name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError):
        raise ConfigError(f"The 'password_file' {name} of the broker cannot be read.") from None


def _encrypt(client: Any, broker: BrokerConfig, folder: Path) -> None:
    files = {"ca": broker.ca, "certificate": broker.certificate, "key": broker.key}
    for parameter, name in files.items():
        if name and not (folder / name).is_file():
            raise ConfigError(f"The file {name}, the {parameter!r} of the broker, does not exist.")
    ca, certificate, key = (str(folder / name) if name else None for name in files.values())
    try:
        client.tls_set(ca_certs=ca, certfile=certificate, keyfile=key, tls_version=ssl.PROTOCOL_TLS_CLIENT)
    except (OSError, ValueError):
        raise ConfigError(
            "'ca', 'certificate' and 'key' of the broker are no certificates and a key to them."
        ) from None


def _begin(client: Any, broker: BrokerConfig, connected: Callable[[], None] = lambda: None) -> None:
    """Connect in the background, again and again where the broker is not there or refuses."""
    where = f"{broker.host}:{broker.where}"

    def answer(_client: Any, _user: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        if reason.is_failure:
            log.error("The broker at %s refuses the gateway (%s); trying again.", where, reason)
        else:
            connected()

    client.on_connect = answer
    client.on_connect_fail = lambda *_: log.warning("The broker at %s cannot be reached; trying again.", where)
    client.connect_async(broker.host, broker.where, **_session(broker))
    client.loop_start()


def _session(broker: BrokerConfig) -> dict[str, Any]:
    """What MQTT 5 needs to go on with the session there was."""
    if broker.version != "5":
        return {}
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = KEPT
    return {"clean_start": False, "properties": properties}


class MqttSource(QueueSource):
    """The messages of a topic.

    Parameters
    ----------
    broker : how it is reached.
    topic : with wildcards.
    most : messages held in memory; when there are more, the broker has to wait.
    folder : from which paths count.
    """

    def __init__(self, broker: BrokerConfig, topic: str, most: int, folder: Path) -> None:
        super().__init__(most)
        self._client = _client(broker, broker.client, folder, manual_ack=True)
        self._closed = False
        self._topic = topic
        self._client.on_subscribe = lambda _c, _u, _mid, reasons, *_: self._subscribed(reasons)
        self._client.on_message = lambda client, _, message: self._take(client, message)
        self._client.on_disconnect = lambda *_: self._disconnected()
        _begin(self._client, broker, self._subscribe)

    def _subscribe(self) -> None:
        log.info("Connected to the broker of the source.")
        self._client.subscribe(self._topic, qos=1)

    def _disconnected(self) -> None:
        if not self._closed:
            log.warning("The broker of the source is not connected.")

    def _subscribed(self, reasons: Any) -> None:
        for reason in reasons:
            if reason.is_failure:
                log.error("The broker refuses the topic %r of the source (%s): nothing will come.", self._topic, reason)
            else:
                log.info("Listening to the topic %r.", self._topic)

    def _take(self, client: Any, message: Any) -> None:
        incoming = Incoming(bytes(message.payload), may_repeat=True, ack=lambda: client.ack(message.mid, message.qos))
        while not self._closed and not self.put(incoming, timeout=0.2):
            pass  # the network waits with us

    def close(self) -> None:
        """Leave the broker, which keeps the session."""
        self._closed = True
        self._client.disconnect()
        self._client.loop_stop()


def flat_publication(number: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A publication as flat JSON."""
    return {"publication": number, "rows": rows}


class MqttOutlet:
    """Publications on a topic, by default {"publication": number, "rows": [...]}.

    After a crash a publication may be sent again under its number; a subscriber that leaves out numbers it has seen has
    each once.

    Parameters
    ----------
    broker : how it is reached.
    topic : of the publications.
    folder : from which paths count.
    sent : file that holds the number of the last publication the broker has received.
    stopped : whether to give up waiting for the broker.
    make : the document of a publication, from its number and rows.
    """

    def __init__(
        self,
        broker: BrokerConfig,
        topic: str,
        folder: Path,
        sent: Path,
        stopped: Callable[[], bool] = lambda: False,
        make: Callable[[int, list[dict[str, Any]]], dict[str, Any]] = flat_publication,
    ) -> None:
        self._topic, self._file, self._stopped, self._make = topic, sent, stopped, make
        self._sent = int(sent.read_text(encoding="ascii")) if sent.exists() else -1
        self._last, self._open = self._sent, list[int]()
        # noted by the thread of the network, which holds a lock that publishing needs: so none of ours
        self._received, self._news, self._refusal = set[int](), threading.Event(), ""
        self._client = _client(broker, f"{broker.client}-sink", folder)
        self._client.max_queued_messages_set(0)  # as many as a window has
        self._client.on_publish = lambda _c, _u, mid, reason, *_: self._note(mid, reason)
        _begin(self._client, broker)

    def publish(self, number: int, rows: list[dict[str, Any]]) -> None:
        """Send a publication, unless the broker has it."""
        if number <= self._sent:
            return
        payload = json.dumps(self._make(number, rows), separators=(",", ":"))
        self._open.append(self._client.publish(self._topic, payload, qos=1).mid)
        self._last = number
        if len(self._open) >= MOST_OPEN:
            self.flush()

    def _note(self, mid: int, reason: Any) -> None:
        if reason.is_failure:  # only MQTT 5 says so; before, a broker throws away in silence what it does not allow
            self._refusal = str(reason)
        else:
            self._received.add(mid)
        self._news.set()

    def flush(self) -> bool:
        """Wait until the broker has received all; False if the gateway is to stop."""
        while self._open:
            self._news.clear()
            if self._refusal:
                raise ConfigError(
                    f"The broker refuses publications on the topic {self._topic!r} ({self._refusal}). Let the user "
                    "of the gateway write it; what was refused is sent again when the gateway runs again."
                )
            came = {mid for mid in self._open if mid in self._received}
            self._received.difference_update(came)
            self._open = [mid for mid in self._open if mid not in came]
            if self._open and not self._news.wait(0.5) and self._stopped():
                return False
        if self._last > self._sent:
            self._sent = self._last
            atomic_write(self._file, str(self._sent), mode=0o600)
        return True

    def close(self) -> None:
        """Leave the broker."""
        self._client.disconnect()
        self._client.loop_stop()


class DeadLetterTopic:
    """Messages that could not be taken in, on a topic for the gateway's people; sent when the broker is there.

    Parameters
    ----------
    broker : how it is reached.
    topic : of the letters.
    folder : from which paths count.
    """

    def __init__(self, broker: BrokerConfig, topic: str, folder: Path) -> None:
        self._topic, self._client = topic, _client(broker, f"{broker.client}-dead", folder)
        self._client.max_queued_messages_set(MOST_OPEN)
        _begin(self._client, broker)

    def send(self, letter: str) -> None:
        """Send a letter; what finds no room while the broker is away is in the file of the state folder."""
        self._client.publish(self._topic, letter, qos=1)

    def close(self) -> None:
        """Leave the broker."""
        self._client.disconnect()
        self._client.loop_stop()
