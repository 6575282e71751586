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
#: publications on their way to the broker; numbers of MQTT messages count to 65,535 and then begin again
MOST_OPEN = 10_000


def _client(broker: BrokerConfig, name: str, folder: Path, *, manual_ack: bool = False) -> Any:
    try:
        from paho.mqtt.client import Client, MQTTv311
        from paho.mqtt.enums import CallbackAPIVersion
    except ModuleNotFoundError:
        raise ConfigError("MQTT needs paho-mqtt: pip install 'fedanon[streams]'.") from None
    client = Client(
        CallbackAPIVersion.VERSION2, client_id=name, clean_session=False, protocol=MQTTv311, manual_ack=manual_ack
    )
    client.reconnect_delay_set(*RETRY)
    if broker.user:
        password = (folder / broker.password_file).read_text(encoding="utf-8").strip() if broker.password_file else None
        client.username_pw_set(broker.user, password)
    if broker.tls:
        client.tls_set(
            ca_certs=str(folder / broker.ca) if broker.ca else None,
            certfile=str(folder / broker.certificate) if broker.certificate else None,
            keyfile=str(folder / broker.key) if broker.key else None,
            tls_version=ssl.PROTOCOL_TLS_CLIENT,
        )
    return client


def _begin(client: Any, broker: BrokerConfig) -> None:
    """Connect in the background, again and again where the broker is not there."""
    where = f"{broker.host}:{broker.where}"
    client.on_connect_fail = lambda *_: log.warning("The broker at %s cannot be reached; trying again.", where)
    client.connect_async(broker.host, broker.where)
    client.loop_start()


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
        self._client.on_connect = lambda client, *_: self._subscribe(client, topic)
        self._client.on_message = lambda client, _, message: self._take(client, message)
        self._client.on_disconnect = lambda *_: log.warning("The broker of the source is not connected.")
        _begin(self._client, broker)

    def _subscribe(self, client: Any, topic: str) -> None:
        log.info("Connected to the broker of the source.")
        client.subscribe(topic, qos=1)

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
        self._received, self._news = set[int](), threading.Event()
        self._client = _client(broker, f"{broker.client}-sink", folder)
        self._client.max_queued_messages_set(0)  # as many as a window has
        self._client.on_publish = lambda _c, _u, mid, *_: self._note(mid)
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

    def _note(self, mid: int) -> None:
        self._received.add(mid)
        self._news.set()

    def flush(self) -> bool:
        """Wait until the broker has received all; False if the gateway is to stop."""
        while self._open:
            self._news.clear()
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
