"""A schema as readable TOML, which :meth:`Schema.read` reads back to an equal schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fedanon.data.attributes import attribute_entry
from fedanon.data.hierarchy import ROOT, Hierarchy
from fedanon.data.schema import Attribute, Categorical, FreeText, Schema

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_NEEDS_ESCAPE = re.compile(r'[\x00-\x1f\x7f"\\]')
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_LINE = 110


def schema_toml(schema: Schema, *, comment: str = "", reasons: Mapping[str, str] | None = None) -> str:
    """The text of a schema file; ``comment`` is put on top, and the reason for a column's role above the column."""
    blocks = ["\n".join(_comment(comment))] if comment else []
    blocks.append("\n".join(_head(schema)))
    for attribute in schema.attributes:
        reason = (reasons or {}).get(attribute.name, "")
        blocks.append("\n".join([*_comment(f"{attribute.role}: {reason}" if reason else ""), *_attribute(attribute)]))
    return "\n\n".join(blocks) + "\n"


def _comment(text: str) -> list[str]:
    """A text may quote the name of a column, which may hold what a comment in TOML must not."""
    return [f"# {_CONTROL.sub('?', line)}".rstrip() for line in text.split("\n")] if text else []


def _head(schema: Schema) -> Iterator[str]:
    yield f"name = {_text(schema.name)}"
    for key in ("title", "target", "person_id", "weight", "household", "key_fingerprint"):
        if getattr(schema, key):
            yield f"{key} = {_text(getattr(schema, key))}"
    if schema.one_row_per_person is not None:
        yield f"one_row_per_person = {str(schema.one_row_per_person).lower()}"
    if schema.missing_values:
        yield f"missing_values = {_array(schema.missing_values)}"


def _attribute(attribute: Attribute) -> Iterator[str]:
    table = f"attributes.{_key(attribute.name)}"
    yield f"[{table}]"
    for key, value in attribute_entry(attribute).items():
        if key not in ("root", "taxonomy"):
            yield f"{key} = {toml_value(value)}"
    by_rule = isinstance(attribute, Categorical) and attribute.rule is not None
    if not isinstance(attribute, FreeText) and attribute.hierarchy is not None and not by_rule:
        yield from _hierarchy(attribute.hierarchy, table)


def toml_value(value: Any) -> str:
    """A flag, a text, a number or a list of them as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    return _number(float(value))


def _hierarchy(hierarchy: Hierarchy, table: str) -> Iterator[str]:
    root = hierarchy.labels[hierarchy.root]
    if root != ROOT:
        yield f"root = {_text(root)}"
    children = hierarchy.to_nested()
    if all(isinstance(child, str) for child in children):
        yield f"values = {_array(children)}"
    else:
        yield f"[{table}.taxonomy]"
        yield from _families(children, ())


def _families(children: list[Any], above: tuple[str, ...]) -> Iterator[str]:
    """One line a family of leaves: the dotted path to it and its members; a leaf among inner nodes stands alone.

    Dotted keys keep the order of the children and need no nesting, however deep the tree is.
    """
    for child in children:
        if isinstance(child, str):
            yield f"{_dotted(*above, child)} = []"
            continue
        [(label, below)] = child.items()
        if all(isinstance(leaf, str) for leaf in below):
            yield f"{_dotted(*above, label)} = {_array(below)}"
        else:
            yield from _families(below, (*above, label))


def _dotted(*labels: str) -> str:
    return ".".join(_key(label) for label in labels)


def _key(label: str) -> str:
    return label if _BARE_KEY.fullmatch(label) else _text(label)


def _text(value: str) -> str:
    return '"' + _NEEDS_ESCAPE.sub(_escaped, value) + '"'


def _escaped(found: re.Match[str]) -> str:
    character = found.group()
    return "\\" + character if character in '"\\' else f"\\u{ord(character):04X}"


def _number(value: float) -> str:
    """Whole numbers without a point; minus zero keeps its sign, since the schema's hash sees it."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 and str(value) != "-0.0" else repr(value)


def _array(values: Iterable[str]) -> str:
    """On one line where it fits, else wrapped."""
    items = [_text(value) for value in values]
    line = "[" + ", ".join(items) + "]"
    if len(line) <= _LINE:
        return line
    rows, row = [], ""
    for item in items:
        if row and len(row) + len(item) > _LINE:
            rows.append(row)
            row = ""
        row += f" {item},"
    return "[\n" + "".join(f"   {row}\n" for row in [*rows, row]) + "]"
