"""Fields of components and settings: declared once as dataclass fields; checked, renamed and read from text here."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from fedanon.errors import ConfigError

T = TypeVar("T")

#: parameters of a nested component by name: a table in TOML, NAME=VALUE pairs on a command line
Settings: TypeAlias = Mapping[str, Any]


def parameter(
    default: Any = MISSING,
    *,
    help: str,
    at_least: float | None = None,
    at_most: float | None = None,
    aliases: tuple[str, ...] = (),
    **tags: Any,
) -> Any:
    """Declare a dataclass field with a help text and bounds.

    Parameters
    ----------
    default : its value where none is given; required if left out. A dict is copied for every instance.
    help : what it means, for people.
    at_least, at_most : bounds of a number.
    aliases : former names, which :func:`build` still accepts with a warning. The last one is the oldest: checkpoints
        and stored results know the field by it.
    tags : anything else the owner of the field wants to state about it, kept in the field's metadata.
    """
    metadata = {"help": help, "at_least": at_least, "at_most": at_most, "aliases": aliases, **tags}
    if default is MISSING:
        return field(metadata=metadata)
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata, hash=False)
    return field(default=default, metadata=metadata)


def same_field(component: type[Any], name: str, **changes: Any) -> Any:
    """Declare a field like that of another dataclass; ``changes`` are arguments of :func:`parameter`."""
    entry = _fields(component)[name]
    return parameter(**{"default": default_of(entry), **entry.metadata, **changes})


def default_of(entry: Field[Any]) -> Any:
    """The value of a field that is not given; ``MISSING`` where one must be."""
    return entry.default if entry.default_factory is MISSING else entry.default_factory()


def check_fields(component: Any) -> None:
    """Raise ConfigError unless every field of the dataclass ``component`` fits its annotation and bounds."""
    hints = _hints(type(component))
    for entry in fields(component):
        value = getattr(component, entry.name)
        if not _fits(value, hints[entry.name], entry):
            wanted = describe(entry, hints[entry.name])
            raise ConfigError(
                f"The '{entry.name}' parameter of {type(component).__name__} must be {wanted}. Got {value!r} instead."
            )


def describe(entry: Field[Any], hint: Any) -> str:
    """Say in words what a field accepts."""
    accepted = [_in_words(kind, entry) for kind in _kinds(hint)]
    choices = [word for word in accepted if word.startswith("'")]
    words = [word for word in accepted if not word.startswith("'")]
    return " or ".join([f"one of {', '.join(choices)}"] * bool(choices) + words)


def takes_table(hint: Any) -> bool:
    """Whether a field with this annotation holds the settings of a nested component."""
    return get_origin(hint) is Mapping


def _kinds(hint: Any) -> list[Any]:
    """The types and single values an annotation allows."""
    if takes_table(hint):
        return [Mapping]
    if get_origin(hint) is Literal:
        return [repr(choice) for choice in get_args(hint)]
    return [kind for part in get_args(hint) for kind in _kinds(part)] or [hint]


def _in_words(kind: Any, entry: Field[Any]) -> str:
    if isinstance(kind, str):
        return kind
    if kind not in (int, float):
        words = {bool: "true or false", str: "a text", type(None): "none", Mapping: "a table of names and values"}
        return words.get(kind, f"a table of {getattr(kind, '__name__', kind)}")
    low, high = entry.metadata.get("at_least"), entry.metadata.get("at_most")
    bounds = [f"{sign} {bound:g}" for sign, bound in ((">=", low), ("<=", high)) if bound is not None]
    return f"{'an' if kind is int else 'a'} {kind.__name__} {' and '.join(bounds)}".rstrip()


def _fits(value: Any, hint: Any, entry: Field[Any]) -> bool:
    kinds = _kinds(hint)
    if repr(value) in kinds or (Mapping in kinds and isinstance(value, Mapping)):
        return True
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    if type(value) not in kinds and not (numeric and isinstance(value, int) and float in kinds):
        return False
    low, high = entry.metadata.get("at_least"), entry.metadata.get("at_most")
    return not numeric or ((low is None or value >= low) and (high is None or value <= high))


def listed(text: str) -> list[str]:
    """Split a text at its commas; empty entries are skipped."""
    return [entry.strip() for entry in text.split(",") if entry.strip()]


# ---- Building a component from settings ----------------------------------------------------------


def build(component: type[T], settings: Settings) -> T:
    """Make a component from settings whose values may be text, as a command line gives them.

    Former names of fields are accepted with a warning; a table given for a field that holds a dataclass is built too.
    """
    hints = _hints(component)
    settings = with_current_names(component, settings)
    known = _fields(component)
    unknown = sorted(set(settings) - set(known))
    if unknown:
        names = ", ".join(known) or "none"
        raise ConfigError(f"{component.__name__} has no parameter {', '.join(unknown)}. Its parameters: {names}.")
    needed = [name for name, entry in known.items() if default_of(entry) is MISSING and name not in settings]
    if needed:
        raise ConfigError(f"{component.__name__} needs a value for: {', '.join(needed)}.")
    values = {name: _parse(value, hints[name]) for name, value in settings.items()}
    return component(**values)


def with_current_names(component: type[Any], settings: Settings) -> dict[str, Any]:
    """Settings under the names their fields have now; a former name draws a warning."""
    former = {alias: entry.name for entry in _fields(component).values() for alias in entry.metadata.get("aliases", ())}
    for name in settings:
        if name in former:
            warn_renamed(name, former[name])
            if former[name] in settings:
                raise ConfigError(f"{name} and {former[name]} are the same parameter; give one of them.")
    return {former.get(name, name): value for name, value in settings.items()}


def warn_renamed(old: str, new: str) -> None:
    """Warn that a name has changed; Python shows the same warning once."""
    warnings.warn(f"{old!r} is now called {new!r}; the old name will go with the next release.", FutureWarning, 1)


def _fields(component: type[Any]) -> dict[str, Field[Any]]:
    return {entry.name: entry for entry in fields(component)}


_evaluated: WeakKeyDictionary[type[Any], Mapping[str, Any]] = WeakKeyDictionary()


def _hints(component: type[Any]) -> Mapping[str, Any]:
    """The annotations of a dataclass, evaluated once: components are made in every round and for every claim."""
    if component not in _evaluated:
        _evaluated[component] = get_type_hints(component)
    return _evaluated[component]


def _parse(value: Any, hint: Any) -> Any:
    """Read a text as the annotated type; what does not parse is handed on, so that the check reports it."""
    if isinstance(hint, type) and is_dataclass(hint) and isinstance(value, Mapping):
        return build(hint, value)
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


# ---- What names a checkpoint or a stored result --------------------------------------------------


def stored_name(entry: Field[Any]) -> str:
    """The oldest name of a field: hashes that name checkpoints and stored results were made with it."""
    aliases: tuple[str, ...] = entry.metadata.get("aliases", ())
    return aliases[-1] if aliases else entry.name


def stored_form(component: Any) -> dict[str, Any]:
    """The fields of a dataclass as scalars under their oldest names, nested settings as JSON text.

    This form is frozen: a hash of it names checkpoints and the cells of stored experiments.
    """
    values = {stored_name(entry): getattr(component, entry.name) for entry in fields(component)}
    return {name: stored_text(v) if isinstance(v, Mapping) else v for name, v in values.items()}


def stored_settings(component: type[Any], settings: Settings) -> dict[str, Any]:
    """The settings of a component under the oldest names of its fields."""
    known = _fields(component)
    return {stored_name(known[name]) if name in known else name: value for name, value in settings.items()}


def stored_text(settings: Settings) -> str:
    """Nested settings as they are stored, whatever the order in which they were given."""
    return json.dumps(dict(settings), sort_keys=True)
