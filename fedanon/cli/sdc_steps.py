"""The grammar of a step on the command line: METHOD[:COLUMN,...][,NAME=VALUE,...].

Columns come first. A parameter's value runs to the next NAME=, so it may hold commas; nothing needs quotes in a shell::

    pram:sex,race,keep=0.9
    local_suppression:sex,race,education,k=3,importance=sex,race
    mondrian:k=5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.anonymizers.perturbative.step import Step


def parse_step(text: str) -> Step:
    """A step from its text."""
    from fedanon.anonymizers.perturbative.step import Step

    method, _, rest = text.partition(":")
    columns: list[str] = []
    settings: dict[str, str] = {}
    name = None
    for item in rest.split(",") if rest.strip() else []:
        head, equals, value = item.partition("=")
        if equals:
            name = _new_name(head.strip(), settings, method)
            settings[name] = value.strip()
        elif name is None:
            columns.append(item.strip())
        else:
            settings[name] += f",{item.strip()}"
    if not method.strip() or not all(columns):
        raise ConfigError("A step is METHOD[:COLUMN,...][,NAME=VALUE,...], such as pram:sex,race,keep=0.9.")
    return Step(method.strip(), tuple(columns), settings)


def _new_name(name: str, settings: dict[str, str], method: str) -> str:
    if name in settings:
        raise ConfigError(f"The step {method!r} gives the parameter {name!r} twice.")
    return name
