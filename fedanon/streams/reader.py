"""MessageReader: what a gateway takes in, and for what reason it refuses the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from fedanon.errors import SchemaError
from fedanon.streams.config import GatewayConfig
from fedanon.streams.encoding import Encoder

if TYPE_CHECKING:
    from fedanon.streams.fhir import ObservationReader


class Checked(NamedTuple):
    """A message that fits the schema, and what is made of it.

    Parameters
    ----------
    message : its columns.
    person : who it is of; '' if the schema does not say.
    point : coordinates of the quasi-identifiers.
    carried : the columns that are published as they are.
    """

    message: dict[str, Any]
    person: str
    point: tuple[float, ...]
    carried: dict[str, Any]


class MessageReader:
    """Parses messages, flattens FHIR resources where they come, and checks them against the schema.

    Parameters
    ----------
    config : of the gateway.
    encoder : of its schema.
    """

    def __init__(self, config: GatewayConfig, encoder: Encoder) -> None:
        self._config, self._encoder = config, encoder
        self._fhir = _fhir_reader(config)

    def read(self, data: bytes | Mapping[str, Any]) -> Checked:
        """A message as it comes; a FedanonError says why it is refused, and quotes no cell."""
        message = data if isinstance(data, Mapping) else _parse(data)
        message = self._fhir.flatten(message) if self._fhir else message
        return self.check(dict(self._encoder.check_names(message)))

    def check(self, message: dict[str, Any]) -> Checked:
        """A message whose columns are those declared."""
        encoder = self._encoder
        point, person = encoder.point(message), encoder.person(message)
        return Checked(message, person, point, encoder.carried(message))

    def time(self, message: Mapping[str, Any]) -> float:
        """The time a message states."""
        try:
            return float(message[self._config.time])
        except (TypeError, ValueError):
            raise SchemaError(f"The time column {self._config.time!r} of the message is no number.") from None


def _fhir_reader(config: GatewayConfig) -> ObservationReader | None:
    if not config.source.view:
        return None
    from fedanon.streams.fhir import ObservationReader

    return ObservationReader(config.path(config.source.view), config.time)


def _parse(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise SchemaError("The message is not JSON.") from None
