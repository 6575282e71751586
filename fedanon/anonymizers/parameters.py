"""Parameters of a component: declared as dataclass fields, checked and read from text in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from fedanon.errors import ConfigError

T = TypeVar("T")


def parameter(
    default: Any = MISSING, *, help: str, at_least: float | None = None, at_most: float | None = None
) -> Any:
    """A dataclass field with a help text and bounds."""
    metadata = {"help": help, "at_least": at_least, "at_most": at_most}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


def check(component: Any) -> None:
    """Raise ConfigError unless every field of the dataclass ``component`` fits its annotation and bounds."""
    hints = get_type_hints(type(component))
    for entry in fields(component):
        value = getattr(component, entry.name)
        if not _fits(value, hints[entry.name], entry):
            wanted = describe(entry, hints[entry.name])
            raise ConfigError(
                f"The '{entry.name}' parameter of {type(component).__name__} must be {wanted}. Got {value!r} instead."
            )


def describe(entry: Field[Any], hint: Any) -> str:
    """What a parameter accepts, in words."""
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(choice) for choice in get_args(hint))
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not type(None)]
    article = {"int": "an int", "float": "a float", "bool": "true or false", "str": "a text"}
    text = " or ".join(article.get(getattr(kind, "__name__", ""), str(kind)) for kind in kinds)
    low, high = entry.metadata.get("at_least"), entry.metadata.get("at_most")
    text += f" >= {low:g}" if low is not None else ""
    text += f"{' and' if low is not None else ''} <= {high:g}" if high is not None else ""
    return text + (" or none" if type(None) in get_args(hint) else "")


def build(component: type[T], settings: Mapping[str, Any]) -> T:
    """Make a component from settings whose values may be text, as a command line gives them."""
    hints = get_type_hints(component)
    known = {entry.name: entry for entry in fields(component)}  # type: ignore[arg-type]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        raise ConfigError(f"{component.__name__} has no parameter {', '.join(unknown)}. Its parameters: {names}.")
    needed = [name for name, entry in known.items() if entry.default is MISSING and name not in settings]
    if needed:
        raise ConfigError(f"{component.__name__} needs a value for: {', '.join(needed)}.")
    values = {name: _parse(value, hints[name]) for name, value in settings.items()}
    return component(**values)


def _fits(value: Any, hint: Any, entry: Field[Any]) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kinds = get_args(hint) or (hint,)
    if value is None:
        return type(None) in kinds
    if isinstance(value, bool):
        return bool in kinds
    if not (type(value) in kinds or (isinstance(value, int) and float in kinds)):
        return False
    low, high = entry.metadata.get("at_least"), entry.metadata.get("at_most")
    return (low is None or value >= low) and (high is None or value <= high)


def _parse(value: Any, hint: Any) -> Any:
    """Text read as the annotated type; what does not parse is handed on, so that the check reports it."""
    if not isinstance(value, str):
        return value
    kinds = get_args(hint) if get_origin(hint) is not Literal else tuple({type(c) for c in get_args(hint)})
    for kind in kinds or (hint,):
        if kind is type(None) and value.lower() in ("none", ""):
            return None
        if kind is bool and value.lower() in ("true", "false", "yes", "no", "1", "0"):
            return value.lower() in ("true", "yes", "1")
        if kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return value
