"""Parameters of a component: declared as dataclass fields, checked and read from text in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from fedanon.errors import ConfigError

T = TypeVar("T")


def parameter(default: Any = MISSING, *, help: str, at_least: float | None = None, at_most: float | None = None) -> Any:
    """A dataclass field with a help text and bounds."""
    metadata = {"help": help, "at_least": at_least, "at_most": at_most}
    return field(metadata=metadata) if default is MISSING else field(default=default, metadata=metadata)


def check_fields(component: Any) -> None:
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
    accepted = [_in_words(kind, entry) for kind in _kinds(hint)]
    choices = [word for word in accepted if word.startswith("'")]
    words = [word for word in accepted if not word.startswith("'")]
    return " or ".join([f"one of {', '.join(choices)}"] * bool(choices) + words)


def _kinds(hint: Any) -> list[Any]:
    """The types and single values an annotation allows."""
    if get_origin(hint) is Literal:
        return [repr(choice) for choice in get_args(hint)]
    return [kind for part in get_args(hint) for kind in _kinds(part)] or [hint]


def _in_words(kind: Any, entry: Field[Any]) -> str:
    if isinstance(kind, str):
        return kind
    if kind not in (int, float):
        return {bool: "true or false", str: "a text", type(None): "none"}[kind]
    low, high = entry.metadata.get("at_least"), entry.metadata.get("at_most")
    bounds = [f"{sign} {bound:g}" for sign, bound in ((">=", low), ("<=", high)) if bound is not None]
    return f"{'an' if kind is int else 'a'} {kind.__name__} {' and '.join(bounds)}".rstrip()


def listed(text: str) -> list[str]:
    """The entries of a text that are separated by commas; empty ones are left out."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]


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
    kinds = _kinds(hint)
    if repr(value) in kinds:
        return True
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    if type(value) not in kinds and not (numeric and isinstance(value, int) and float in kinds):
        return False
    low, high = entry.metadata.get("at_least"), entry.metadata.get("at_most")
    return not numeric or ((low is None or value >= low) and (high is None or value <= high))


def _parse(value: Any, hint: Any) -> Any:
    """Text read as the annotated type; what does not parse is handed on, so that the check reports it."""
    if not isinstance(value, str):
        return value
    kinds = _kinds(hint)
    if type(None) in kinds and value.lower() == "none":
        return None
    if bool in kinds and value.lower() in ("true", "false"):
        return value.lower() == "true"
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(value)
            except ValueError:
                continue
    return value
