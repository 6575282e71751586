"""Encoder: a message as it comes becomes a reading, or is refused with a reason that quotes no cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from fedanon.data.schema import Attribute, Categorical, Numeric, Schema
from fedanon.errors import SchemaError
from fedanon.streams.space import coded_columns

Message = Mapping[str, Any]


class Encoder:
    """Checks messages against a schema, as :meth:`fedanon.data.table.Table.from_frame` does tables.

    Parameters
    ----------
    schema : every declared column must be in a message, and no other.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema, self.columns = schema, coded_columns(schema)
        self._names = frozenset(schema.names)
        self._points = [(a.name, _reader(a, schema)) for a in schema.quasi_identifiers]
        quasi = {a.name for a in schema.quasi_identifiers}
        self._carried = [
            (a.name, _checker(a, schema))
            for a in schema.attributes
            if a.name in schema.published and a.name not in quasi
        ]
        self._quasi = [name for name, _ in self._points]
        self._known: dict[tuple[Any, ...], tuple[float, ...]] = {}

    def point(self, message: Message) -> tuple[float, ...]:
        """Coordinates of the quasi-identifiers; combinations seen lately are looked up."""
        raw = tuple([message[name] for name in self._quasi])
        try:
            found = self._known.get(raw)
        except TypeError:
            raise SchemaError("A quasi-identifier of the message is a list or a table.") from None
        if found is None:
            found = tuple([read(value) for (_, read), value in zip(self._points, raw, strict=True)])
            if len(self._known) >= 100_000:
                self._known.clear()
            self._known[raw] = found
        return found

    def person(self, message: Message) -> str:
        """Who the message is of; '' where the schema does not say."""
        name = self.schema.person_id
        if name is None:
            return ""
        value = message[name]
        if value is None or isinstance(value, (dict, list, float)) or value == "":
            raise SchemaError(f"The person_id column {name!r} of the message is missing, or no text or whole number.")
        return str(value)

    def carried(self, message: Message) -> dict[str, Any]:
        """The columns that are published as they are."""
        return {name: check(message[name]) for name, check in self._carried}

    def check_names(self, message: Any) -> Message:
        """The message, if it has exactly the declared columns."""
        if not isinstance(message, Mapping):
            raise SchemaError("The message is not a JSON object.")
        if message.keys() != self._names:
            absent = sorted(self._names - message.keys())
            if absent:
                raise SchemaError(f"The message lacks {len(absent)} declared columns: {', '.join(absent[:10])}.")
            raise SchemaError(f"The message has {len(message.keys() - self._names)} columns that are not declared.")
        return message


def _is_missing(value: Any, schema: Schema) -> bool:
    return value is None or value == "" or value in schema.missing_values or value != value


def _reader(attribute: Numeric | Categorical, schema: Schema) -> Callable[[Any], float]:
    """Reads the coordinate of a quasi-identifier."""

    def read(value: Any) -> float:
        if _is_missing(value, schema):
            raise SchemaError(f"The quasi-identifier {attribute.name!r} of the message is missing.")
        if isinstance(attribute, Numeric):
            return _number(value, attribute)
        return float(_leaf(value, attribute))

    return read


def _checker(attribute: Attribute, schema: Schema) -> Callable[[Any], Any]:
    """Checks a column that is carried along; a missing value is None."""
    ranged = isinstance(attribute, Numeric) and not attribute.integer
    low, high = (attribute.low, attribute.high) if isinstance(attribute, Numeric) else (0.0, 0.0)

    def check(value: Any) -> Any:
        if ranged and type(value) is float and low <= value <= high and math.isfinite(value):
            return value  # as below, without a look at what only other values can be
        if isinstance(value, (dict, list)):
            raise SchemaError(f"The column {attribute.name!r} of the message is a list or a table.")
        if _is_missing(value, schema):
            return None
        if isinstance(attribute, Numeric):
            number = _number(value, attribute)
            return int(number) if attribute.integer or isinstance(value, int) else number
        if isinstance(attribute, Categorical):
            _leaf(value, attribute)
        return _text(value)

    return check


def _number(value: Any, attribute: Numeric) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or not attribute.low <= number <= attribute.high:
        raise SchemaError(f"The column {attribute.name!r} of the message is no number in its declared range.")
    if attribute.integer and number != math.floor(number):
        raise SchemaError(f"The column {attribute.name!r} of the message is not a whole number.")
    return number


def _leaf(value: Any, attribute: Categorical) -> int:
    code = attribute.hierarchy.codes.get(_text(value))
    if code is None:
        raise SchemaError(f"The column {attribute.name!r} of the message has a value that its taxonomy does not list.")
    return code


def _text(value: Any) -> str:
    """A value as a table of text has it: whole floats lose their '.0'."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
