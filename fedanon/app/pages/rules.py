"""Rules: what values a column may have and how fine they are published; a taxonomy as a tree or as an outline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app.pages.columns import look_at_columns, write_schema
from fedanon.app.project import SCHEMA, source_options
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.data.attributes import KEYS, attribute_entry, is_date, read_attribute, type_name
from fedanon.data.hierarchy import ROOT, Hierarchy
from fedanon.data.schema import Attribute, Categorical, Schema

LEVELS = ("day", "month", "quarter", "year", "decade")
#: a larger taxonomy is shown as an outline alone
MOST_NODES = 200
_NUMBERS = ("round_to", "top", "bottom")
_TEXTS = ("unit", "form", "age_at")
#: what is decided on other pages, or in the schema file, and stays
_ELSEWHERE = ("shift_days", "pseudonym", "distinct_at", "root")


def _attribute(state: State, request: Request) -> tuple[Schema, Attribute]:
    look_at_columns(state)
    schema, index = state.project.read_schema(), int(request.path_params["index"])
    if index >= len(schema.attributes):
        raise FormError(state, "rule.no_column")
    return schema, schema.attributes[index]


def show(state: State, request: Request) -> PageView:
    """The page."""
    schema, attribute = _attribute(state, request)
    tree = attribute.hierarchy if isinstance(attribute, Categorical) and attribute.rule is None else None
    entry = attribute_entry(attribute)
    return view(
        "rule",
        step="columns",
        index=schema.names.index(attribute.name),
        attribute=attribute,
        entry=entry,
        kind=type_name(attribute),
        kinds=list(KEYS),
        levels=LEVELS,
        is_date=is_date(attribute),
        tree=tree_lines(tree) if tree is not None and len(tree.labels) <= MOST_NODES else [],
        groups=_groups(tree) if tree is not None else [],
        values=0 if tree is None else tree.n_leaves,
        outline="" if tree is None else "\n".join(_outline(tree.to_nested(), 0)),
        command_words=["schema", "check", SCHEMA, *source_options(state.project.source)],
    )


def save(state: State, request: Request, form: FormData) -> Response:
    """Keep the rule of a column."""
    schema, attribute = _attribute(state, request)
    kind = text_of(form, "type", type_name(attribute))
    entry = _entry(state, form, kind, attribute)
    changed = read_attribute(attribute.name, entry, None)
    write_schema(state, Schema.from_dict(schema.replacing(changed).to_dict()))
    return go(f"/columns/{schema.names.index(attribute.name)}")


def _entry(state: State, form: FormData, kind: str, attribute: Attribute) -> dict[str, Any]:
    """The entry of a schema file that the form describes."""
    entry: dict[str, Any] = {"role": str(attribute.role), "type": kind}
    if kind != type_name(attribute):
        return {**entry, **_first_rule(state, kind, attribute)}
    known = KEYS[kind]
    entry |= {name: value for name, value in attribute_entry(attribute).items() if name in _ELSEWHERE}
    for name in _NUMBERS:
        if name in known and text_of(form, name):
            entry[name] = _number(state, text_of(form, name))
    for name in _TEXTS:
        if name in known and text_of(form, name):
            entry[name] = text_of(form, name)
    if "bands" in known and text_of(form, "bands"):
        bands = [_number(state, part) for part in text_of(form, "bands").split(",")]
        entry["bands"] = bands[0] if len(bands) == 1 else bands
    if kind == "numeric":
        entry["integer"] = bool(text_of(form, "integer"))
    if "range" in known and text_of(form, "low") and text_of(form, "high"):
        ends = [text_of(form, "low"), text_of(form, "high")]
        dates = kind == "date" and not text_of(form, "age_at")
        entry["range"] = ends if dates else [_number(state, end) for end in ends]
    if kind == "date":
        entry["format"] = [part.strip() for part in text_of(form, "format").split("|") if part.strip()]
        if not text_of(form, "age_at") and text_of(form, "level") in LEVELS:
            entry["level"] = text_of(form, "level")
    elif "level" in known and text_of(form, "level"):
        entry["level"] = text_of(form, "level")
    if kind == "code":
        entry["prefixes"] = [int(_number(state, part)) for part in text_of(form, "prefixes").split(",")]
    if kind == "categorical":
        entry["taxonomy"] = _nested(state, form, attribute)
    return entry


def _first_rule(state: State, kind: str, attribute: Attribute) -> dict[str, Any]:
    """What a column of another type begins with: as its values are found."""
    return dict(state.desk.ask("rule", source=state.source(), name=attribute.name, kind=kind))


def _number(state: State, text: str) -> float:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise FormError(state, "rule.bad_number") from None


# ---- taxonomies ----------------------------------------------------------------------------------


def tree_lines(tree: Hierarchy) -> list[dict[str, Any]]:
    """The nodes in the order of the outline, with their depth; all but the root."""
    return list(_lines(tree.to_nested(), 0, ROOT))


def _lines(children: list[Any], depth: int, parent: str) -> Iterator[dict[str, Any]]:
    for child in children:
        if isinstance(child, str):
            yield {"label": child, "depth": depth, "parent": parent, "group": False}
        else:
            [(label, below)] = child.items()
            yield {"label": label, "depth": depth, "parent": parent, "group": True}
            yield from _lines(below, depth + 1, label)


def _groups(tree: Hierarchy) -> list[str]:
    return [line["label"] for line in tree_lines(tree) if line["group"]]


def _outline(children: list[Any], depth: int) -> Iterator[str]:
    for child in children:
        if isinstance(child, str):
            yield "  " * depth + child
        else:
            [(label, below)] = child.items()
            yield "  " * depth + label
            yield from _outline(below, depth + 1)


def _nested(state: State, form: FormData, attribute: Attribute) -> list[Any]:
    """The taxonomy of the form: from its tree, or from its outline."""
    assert isinstance(attribute, Categorical)
    if text_of(form, "by") == "outline":
        text = form.get("outline", "")
        nested = read_outline(str(text).replace("\r\n", "\n"), set(attribute.hierarchy.codes))
        if nested is None:
            raise FormError(state, "rule.bad_outline")
        return nested
    return _moved(form, tree_lines(attribute.hierarchy))


def read_outline(text: str, leaves: set[str]) -> list[Any] | None:
    """The taxonomy of an outline; None unless it names every value once, groups being what others hang below."""
    top: list[Any] = []
    open_lists: list[list[Any]] = [top]
    seen: set[str] = set()
    for line in text.splitlines():
        if not line.strip():
            continue
        label, depth = line.strip(), (len(line) - len(line.lstrip(" "))) // 2
        if depth >= len(open_lists) or label in seen:
            return None
        del open_lists[depth + 1 :]
        seen.add(label)
        if label in leaves:
            open_lists[depth].append(label)
        else:
            below: list[Any] = []
            open_lists[depth].append({label: below})
            open_lists.append(below)
    return _without_empty(top) if leaves <= seen else None


def _moved(form: FormData, lines: list[dict[str, Any]]) -> list[Any]:
    """The tree with the groups renamed and the nodes moved as the form says."""
    names = {
        line["label"]: text_of(form, f"label_{i}", line["label"]) or line["label"]
        for i, line in enumerate(lines)
        if line["group"]
    }
    parents = {}
    for i, line in enumerate(lines):
        chosen = text_of(form, f"parent_{i}", "")
        parents[line["label"]] = lines[int(chosen)]["label"] if chosen.isdigit() and int(chosen) < len(lines) else ROOT
    new = text_of(form, "new_group")
    order = [line["label"] for line in lines]
    if new and new not in order:
        order.insert(0, new)
        names[new], parents[new] = new, ROOT
        for i, line in enumerate(lines):
            if text_of(form, f"into_{i}"):
                parents[line["label"]] = new
    for label in order:  # a group inside itself hangs below everything
        above, seen = parents[label], {label}
        while above != ROOT:
            if above in seen:
                parents[label] = ROOT
                break
            seen.add(above)
            above = parents[above]

    def below(parent: str) -> list[Any]:
        children = [label for label in order if parents[label] == parent]
        return [{names[label]: below(label)} if label in names else label for label in children]

    return _without_empty(below(ROOT))


def _without_empty(children: list[Any]) -> list[Any]:
    """The same without groups in which nothing is."""
    kept: list[Any] = []
    for child in children:
        if isinstance(child, str):
            kept.append(child)
            continue
        [(label, below)] = child.items()
        inner = _without_empty(below)
        kept += [{label: inner}] if inner else []
    return kept
