"""Docstrings for mkdocstrings: our parameters say what they mean where numpydoc expects a type, and some markup is reST."""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTION = re.compile(r"^(Parameters|Returns|Raises|Yields|Attributes|Other Parameters)\n-+$")
_ITEM = re.compile(r"^([*\w][\w, *]*?) : (.+)$")


def to_markdown(text: str) -> str:
    """A docstring whose reST roles and formulas are Markdown."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    text = re.sub(r"(?m)^( *)\.\. math::[ \n]+((?:.+\n?)+)", lambda m: f"{m[1]}$$ {' '.join(m[2].split())} $$\n", text)
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"(?m)::$", ":", text.replace("``", "`"))


def with_texts(text: str) -> str:
    """A docstring in which what stands after a parameter's name is its text, not its type."""
    lines, inside = [], False
    source = text.split("\n")
    for i, line in enumerate(source):
        if i + 1 < len(source) and _SECTION.match(f"{line}\n{source[i + 1]}"):
            inside = True
        elif inside and line and not line.startswith((" ", "-")) and not _ITEM.match(line):
            inside = i + 1 < len(source) and source[i + 1].startswith((" ", "-"))
        found = _ITEM.match(line) if inside else None
        lines += [found[1], f"    {found[2]}"] if found else [line]
    return "\n".join(lines)


class PlainDocstrings(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for everything griffe finds."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(with_texts(obj.docstring.value))
