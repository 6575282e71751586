"""Texts that are the same on every machine: without the last bits of numbers, which processors round differently."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

#: significant digits kept of a number with a fraction. Numbers are doubles, exact to about 15 digits; libraries choose
#: their instructions by the processor, and sums in another order differ behind the thirteenth
DIGITS = 9
#: smaller numbers are what cancelling leaves over
TINY = 1e-12
#: facts of the machine, the day or the version, not of what was computed
DROPPED = frozenset({"seconds", "version"})

_FRACTION = re.compile(r"-?\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)", re.ASCII)


def steady_text(text: str) -> str:
    """The text with every number that has a fraction or an exponent cut to its first digits."""
    return _FRACTION.sub(lambda found: steady_number(float(found[0])), text)


def steady_number(value: float) -> str:
    """The first digits of a number."""
    return f"{value:.{DIGITS}g}" if abs(value) > TINY else "0"


def steady_json(document: Any, renamed: Mapping[str, str]) -> str:
    """JSON by the keys of old, in their order, without facts of the machine."""
    return json.dumps(_steady(document, renamed), indent=1, sort_keys=True) + "\n"


def _steady(value: Any, renamed: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        known = {renamed.get(str(key), str(key)): entry for key, entry in value.items()}
        return {key: _steady(entry, renamed) for key, entry in known.items() if key not in DROPPED}
    if isinstance(value, list | tuple):
        return [_steady(entry, renamed) for entry in value]
    if isinstance(value, float):
        return steady_number(value)
    return steady_text(value) if isinstance(value, str) else value
