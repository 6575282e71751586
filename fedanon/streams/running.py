"""Running a gateway: source, clock, outlet and metrics put together, until the source ends or somebody says stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedanon.data.schema import Schema
from fedanon.errors import DataError
from fedanon.streams.config import GatewayConfig
from fedanon.streams.gateway import Gateway
from fedanon.streams.sources import FileSource, HttpSource, ReadingSource, StdinSource

if TYPE_CHECKING:
    from fedanon.streams.mqtt import DeadLetterTopic, MqttOutlet

log = logging.getLogger("fedanon.streams")

#: messages that are journaled together, and seconds after which the clock is looked at without one
BATCH, TICK = 500, 0.25


class SteadyClock:
    """Seconds since 1970 that never go back, and do not jump while the gateway runs, whatever happens to the clock.

    Parameters
    ----------
    floor : the last moment that was noted before.
    """

    def __init__(self, floor: float) -> None:
        self._base = max(time.time(), floor) - time.monotonic()

    def __call__(self) -> float:
        """The moment."""
        return self._base + time.monotonic()


def replay_file(config: GatewayConfig, path: Path) -> Gateway:
    """Take in a file as fast as possible, by the time of its messages; the stream ends with it."""
    gateway = Gateway(config, clock="message")
    source = FileSource(path, gateway.place)
    try:
        while (batch := source.read(BATCH, 0.0)) is not None:
            gateway.take(batch, 0.0)
        gateway.finish()
        gateway.write_status()
    finally:
        source.close()
        gateway.close()
    return gateway


def run_gateway(config: GatewayConfig, stop: threading.Event) -> Gateway:
    """Take in what comes until the source ends, then publish or drop what waits; or until ``stop`` is set."""
    with ExitStack() as closing:
        outlet, dead = _open_outlet(config, stop), _open_dead_letters(config)
        for opened in (outlet, dead):
            if opened is not None:
                closing.callback(opened.close)
        gateway = Gateway(config, outlet=outlet, dead=dead.send if dead else None)
        closing.callback(gateway.close)
        if config.metrics_port:
            closing.callback(MetricsServer(gateway, config.metrics_port).close)
        source = open_source(config, gateway.place)
        closing.callback(source.close)
        if _pump(gateway, source, stop):
            gateway.finish()
        gateway.write_status()
        if outlet is not None:
            outlet.flush()
    return gateway


def _open_outlet(config: GatewayConfig, stop: threading.Event) -> MqttOutlet | None:
    """Where publications go besides the windows."""
    if not config.sink.topic:
        return None
    from fedanon.streams.mqtt import MqttOutlet, flat_publication

    make: Any = flat_publication
    if config.sink.messages == "fhir":
        from fedanon.streams.fhir import bundle

        quasi = [a.name for a in Schema.read(config.path(config.schema)).quasi_identifiers]
        make = partial(bundle, quasi=quasi, time=config.time)
    folder = config.path(config.state)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return MqttOutlet(config.broker, config.sink.topic, Path(config.folder), folder / "sent", stop.is_set, make)


def _open_dead_letters(config: GatewayConfig) -> DeadLetterTopic | None:
    if not config.source.dead_letters:
        return None
    from fedanon.streams.mqtt import DeadLetterTopic

    return DeadLetterTopic(config.broker, config.source.dead_letters, Path(config.folder))


def _pump(gateway: Gateway, source: ReadingSource, stop: threading.Event) -> bool:
    """Take in what comes; whether the source has ended."""
    clock, was_full = SteadyClock(gateway.moment), False
    ticked = shown = clock()
    while not stop.is_set():
        full = gateway.is_full
        if full and not was_full:
            log.warning("The buffer is full: %d readings wait; the source has to wait too.", gateway.engine.waiting)
        was_full = full
        if full:
            stop.wait(TICK)
            batch = []
        else:
            found = source.read(BATCH, TICK)
            if found is None:
                return True
            batch = found
        now = clock()
        if batch:
            gateway.take(batch, now)
        elif now - ticked >= TICK:
            gateway.tick(now)
            ticked = now
        if now - shown > 5:
            gateway.write_status()
            shown = now
    return False


def open_source(config: GatewayConfig, place: int) -> ReadingSource:
    """The source that gateway.toml names, after the message at ``place``."""
    source = config.source
    if source.kind == "file":
        return FileSource(config.path(source.path), place)
    if source.kind == "http":
        return HttpSource(source.queue, source.listen, source.port)
    if source.kind == "mqtt":
        from fedanon.streams.mqtt import MqttSource

        return MqttSource(config.broker, source.topic, source.queue, Path(config.folder))
    return StdinSource(source.queue)


# ---- metrics -------------------------------------------------------------------------------------

_HELP = {
    "taken": "Readings taken in.",
    "refused": "Messages that could not be taken in.",
    "repeated": "Messages that came again.",
    "published": "Readings published.",
    "dropped": "Readings of which nothing is published.",
    "publications": "Publications.",
    "windows": "Windows written.",
}


def exposition(gateway: Gateway) -> str:
    """What Prometheus reads."""
    lines: list[str] = []
    for name, value in gateway.counts.to_dict().items():
        full = f"fedanon_stream_{name}_total"
        lines += [f"# HELP {full} {_HELP[name]}", f"# TYPE {full} counter", f"{full} {value}"]
    full = "fedanon_stream_waiting"
    lines += [f"# HELP {full} Readings that wait.", f"# TYPE {full} gauge", f"{full} {gateway.engine.waiting}"]
    return "\n".join(lines) + "\n"


class MetricsServer:
    """Answers GET /metrics on 127.0.0.1."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        def text() -> bytes:
            return exposition(gateway).encode()

        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), _metrics_handler(text))
        except OSError as error:
            raise DataError(f"Metrics cannot be served on port {port}: {error.strerror}.") from None
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


def _metrics_handler(text: Callable[[], bytes]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path == "/metrics"
            body = text() if found else b""
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    return Handler
