"""What stands in `gateway.toml`.

::

    schema = "ward.toml"              # what a message holds; paths count from the folder of this file
    claim = "people"                  # or "records"
    state = "state"                   # folder of the journal, the snapshot and the key of the pseudonyms
    time = "time"                     # the column with the time of a reading, in seconds; published rounded

    [method]                          # parameters of sticky classes or, with a name, of a method for records
    k = 10
    delay = 600

    [source]
    kind = "mqtt"                     # or "file", "stdin", "http"
    topic = "ward/+/vitals"

    [sink]
    windows = "windows"               # folder of the published files
    topic = "anonymous/vitals"        # also over MQTT, if given
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fedanon.errors import ConfigError
from fedanon.fields import Settings, build, check_fields, parameter
from fedanon.streams import RECORD_METHODS
from fedanon.streams.base import RecordMethod
from fedanon.streams.people import StickyClasses


@dataclass(frozen=True, kw_only=True)
class BrokerConfig:
    """How an MQTT broker is reached."""

    host: str = parameter("127.0.0.1", help="name or address of the broker")
    port: int = parameter(0, help="port; 0 is 8883 with TLS, else 1883", at_least=0, at_most=65535)
    version: Literal["3.1.1", "5"] = parameter("3.1.1", help="of MQTT: 3.1.1 or 5")
    client: str = parameter("fedanon-gateway", help="client id, by which the broker keeps the session")
    tls: bool = parameter(False, help="encrypt the connection")
    ca: str = parameter("", help="certificate of the broker's authority; empty takes those of the system")
    certificate: str = parameter("", help="client certificate")
    key: str = parameter("", help="private key of the client certificate")
    user: str = parameter("", help="user name")
    password_file: str = parameter("", help="file that holds the password")

    def __post_init__(self) -> None:
        check_fields(self)
        if self.password_file and not self.user:
            raise ConfigError("The 'password_file' of a broker needs a user.")
        if not self.tls and (self.ca or self.certificate or self.key):
            raise ConfigError("Certificates of a broker need tls = true.")

    @property
    def where(self) -> int:
        """The port."""
        return self.port or (8883 if self.tls else 1883)


def topic_matches(pattern: str, topic: str) -> bool:
    """Whether an MQTT topic is one of those a pattern with the wildcards + and # names."""
    levels, found = pattern.split("/"), topic.split("/")
    for i, level in enumerate(levels):
        if level == "#":
            return True
        if i >= len(found) or level not in ("+", found[i]):
            return False
    return len(levels) == len(found)


def check_topic(what: str, topic: str, *, wildcards: bool = False) -> None:
    """Refuse a topic that a broker would not take."""
    levels = topic.split("/")
    if not wildcards and ("+" in topic or "#" in topic):
        raise ConfigError(f"The {what} is published on, so it must not hold '+' or '#'.")
    if "#" in levels[:-1] or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise ConfigError(f"The {what} is no MQTT topic: '+' stands for a whole level, '#' for all levels at the end.")


@dataclass(frozen=True, kw_only=True)
class SourceConfig:
    """Where readings come from."""

    kind: Literal["file", "stdin", "mqtt", "http"] = parameter("stdin", help="file, stdin, mqtt or http")
    path: str = parameter("", help="a file of JSON lines, or CSV with a header line")
    topic: str = parameter("", help="MQTT topic, with wildcards")
    listen: str = parameter("127.0.0.1", help="address the HTTP source listens on")
    port: int = parameter(8750, help="port the HTTP source listens on", at_least=0, at_most=65535)
    view: str = parameter(
        "", help="ViewDefinition (SQL on FHIR) that makes messages of FHIR resources; empty: flat JSON"
    )
    dead_letters: str = parameter("", help="MQTT topic for messages that cannot be taken in, whole; empty for none")
    queue: int = parameter(1000, help="readings held in memory before the source has to wait", at_least=1)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.kind == "file" and not self.path:
            raise ConfigError("A source of the kind 'file' needs a path.")
        if self.kind == "mqtt" and not self.topic:
            raise ConfigError("A source of the kind 'mqtt' needs a topic.")
        check_topic("topic of the source", self.topic, wildcards=True)
        check_topic("topic 'dead_letters'", self.dead_letters)
        if self.dead_letters and topic_matches(self.topic, self.dead_letters):
            raise ConfigError("The topic 'dead_letters' is one the source reads: they would come back for ever.")


@dataclass(frozen=True, kw_only=True)
class SinkConfig:
    """Where publications go."""

    windows: str = parameter("windows", help="folder of the published files")
    format: Literal["auto", "parquet", "csv"] = parameter("auto", help="parquet, csv; auto is parquet where installed")
    seconds: float = parameter(60.0, help="a window ends after so long", at_least=0.1)
    rows: int = parameter(100_000, help="or when it has so many rows", at_least=1)
    topic: str = parameter("", help="MQTT topic on which publications appear too; empty for none")
    messages: Literal["json", "fhir"] = parameter("json", help="what appears there: flat JSON, or a FHIR Bundle each")

    def __post_init__(self) -> None:
        check_fields(self)
        check_topic("topic of the sink", self.topic)


@dataclass(frozen=True, kw_only=True)
class GatewayConfig:
    """A gateway."""

    schema: str = parameter(help="schema of the messages (TOML)")
    claim: Literal["records", "people"] = parameter(help="whether the readings of a person stay one series")
    method: Settings = parameter(help="the method and its parameters")
    state: str = parameter("state", help="folder of the journal, the snapshot and the key")
    time: str = parameter("", help="numeric column with the time of a reading in seconds; published rounded")
    step: float = parameter(60.0, help="published times are rounded down to multiples of it", at_least=0)
    id: str = parameter("", help="column that tells messages apart; else equal messages are one")
    seed: int = parameter(0, help="of what a method draws at random", at_least=0)
    metrics_port: int = parameter(0, help="port on 127.0.0.1 for Prometheus; 0 for none", at_least=0, at_most=65535)
    source: SourceConfig = field(default_factory=SourceConfig)
    sink: SinkConfig = field(default_factory=SinkConfig)
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    folder: str = "."

    def __post_init__(self) -> None:
        check_fields(self)
        if self.record_method is None and self.sticky_classes is None:  # builds them, so that wrong parameters show
            raise ConfigError("The claim of a gateway must be 'records' or 'people'.")
        if self.sink.topic and topic_matches(self.source.topic, self.sink.topic):
            raise ConfigError(
                "The topic of the sink is one the source reads: publications would come back as readings."
            )

    @classmethod
    def read(cls, path: Path) -> GatewayConfig:
        """Read a gateway.toml."""
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"The file {path} does not exist.") from None
        except (OSError, UnicodeError, tomllib.TOMLDecodeError):
            raise ConfigError(f"{path.name} cannot be read as TOML.") from None
        if "folder" in document:
            raise ConfigError("GatewayConfig has no parameter folder.")
        return build(cls, document | {"folder": str(path.parent)})

    @cached_property
    def record_method(self) -> RecordMethod | None:
        """The method of a stream of records."""
        if self.claim != "records":
            return None
        settings = dict(self.method)
        name = settings.pop("name", "prospect")
        return build(RECORD_METHODS[str(name)], settings)

    @cached_property
    def sticky_classes(self) -> StickyClasses | None:
        """The sticky classes of a stream of people."""
        return build(StickyClasses, dict(self.method)) if self.claim == "people" else None

    def path(self, name: str) -> Path:
        """A path of the configuration, from the folder of its file."""
        return Path(self.folder) / name

    def to_claim(self) -> Mapping[str, Any]:
        """What a manifest says of how a window was made; nothing about where."""
        return {"claim": self.claim, "method": dict(self.method), "step": self.step}
