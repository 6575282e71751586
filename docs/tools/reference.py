"""The pages of the reference that are generated: from the command line, the typed settings and the registries.

They are made whenever the site is built, so that they cannot say anything else than the code.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_type_hints

import click

#: the packages whose ``__all__`` is public
PUBLIC = (
    "fedanon",
    "fedanon.anonymizers",
    "fedanon.attacks",
    "fedanon.metrics",
    "fedanon.models",
    "fedanon.privacy",
    "fedanon.sdc",
    "fedanon.testing",
)


def generated_pages() -> dict[str, str]:
    """Every generated page by its path in docs/."""
    return {
        "reference/cli.md": cli_page(),
        "reference/exit_codes.md": exit_codes_page(),
        **settings_pages(),
        "reference/manifest.md": manifest_page(),
        "reference/manifest.schema.json": manifest_schema_text(),
        "reference/methods.md": methods_page(),
        "reference/metrics.md": metrics_page(),
        "reference/attack_catalogue.md": attacks_page(),
        "reference/api/index.md": api_index(),
        **{f"reference/api/{package}.md": api_page(package) for package in PUBLIC},
    }


# ---- tables --------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([_cell(text) for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", r"\|") or " "


def plain(text: str) -> str:
    """The text of a docstring with reST roles as code and formulas as they are."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", text)
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def first_paragraph(component: object) -> str:
    """What a component says of itself in a paragraph."""
    return plain(" ".join((inspect.getdoc(component) or "").split("\n\n")[0].split()))


# ---- command line --------------------------------------------------------------------------------


def cli_page() -> str:
    """Every command with its arguments and options."""
    from typer.main import get_command

    from fedanon.cli.app import app

    parts = [
        "# Command line\n\nGenerated from the commands themselves; `fedanon COMMAND --help` shows the same. Every error is "
        "one line and [an exit code](exit_codes.md). `fedanon --install-completion` sets up tab completion of commands and "
        "options in your shell.\n"
    ]
    for name, command in commands(get_command(app), "fedanon"):
        parts.append(_command_text(name, command))
    return "\n".join(parts)


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, groups before their commands."""
    yield name, command
    if isinstance(command, click.Group):
        for child in command.commands.values():
            if not child.hidden:
                yield from commands(child, f"{name} {child.name}")


def _command_text(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    text = [f"## `{name}`\n", _options_as_code(plain(inspect.cleandoc(command.help or ""))), f"\n`{name} {usage}`\n"]
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    if arguments:
        shown = [(f"`{_argument_name(p)}`", _parameter_help(p)) for p in arguments]
        text.append(table(["argument", "meaning"], shown))
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden and p.name != "help"]
    if options:
        text.append(table(["option", "meaning", "default"], [_option_row(p, context) for p in options]))
    return "\n".join(text)


def _argument_name(argument: click.Argument) -> str:
    return argument.make_metavar(click.Context(click.Command(""))) if argument.metavar is None else argument.metavar


def _parameter_help(parameter: click.Parameter) -> str:
    return _options_as_code(plain(getattr(parameter, "help", None) or ""))


def _option_row(option: click.Option, context: click.Context) -> tuple[str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = option.get_default(context, call=False)
    shown = "" if default in (None, False, "", ()) or callable(default) else f"`{default}`"
    return names, _parameter_help(option), "required" if option.required else shown


def _options_as_code(text: str) -> str:
    from fedanon.cli.options import with_names

    return re.sub(r"(?<![\w`-])(--[a-z][\w-]*)(?![\w`-])", r"`\1`", with_names(text))


# ---- errors --------------------------------------------------------------------------------------


def exit_codes_page() -> str:
    """Exit codes by the errors that give them."""
    from fedanon import errors
    from fedanon.cli import INTERNAL_ERROR, INTERRUPTED

    found = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, errors.FedanonError)]
    rows = [
        (str(code), ", ".join(f"`{e.__name__}`" for e in found if e.exit_code == code), text)
        for code, text in (
            (2, "usage or configuration: an option, a parameter or a file of settings is wrong"),
            (3, "the data do not fit: a schema, a table or a file"),
            (4, "a promise does not hold, or a node refuses what would break one"),
            (5, "the request is sound, but cannot be met on these data"),
        )
    ]
    rows = [
        ("0", "", "done"),
        *rows,
        (str(INTERNAL_ERROR), "", "internal error; `FEDANON_DEBUG=1` shows the traceback"),
    ]
    rows.append((str(INTERRUPTED), "", "interrupted; no partial output was written"))
    named = [(f"`{e.__name__}`", str(e.exit_code), first_paragraph(e)) for e in found]
    return (
        "# Exit codes and errors\n\nEvery command ends with one of these; the message on standard error is one line. It "
        "names the column, the count or the parameter, never a cell.\n\n"
        + table(["code", "errors", "meaning"], rows)
        + "\n## Errors in Python\n\nAll are in `fedanon.errors`, and `FedanonError` is the base of each.\n\n"
        + table(["error", "exit code", "meaning"], named)
    )


# ---- settings ------------------------------------------------------------------------------------


def settings_pages() -> dict[str, str]:
    """The pages of the files of settings."""
    from fedanon.federated.deployment.config import NodeConfig, ServerConfig
    from fedanon.streams import RECORD_METHODS
    from fedanon.streams.config import GatewayConfig
    from fedanon.streams.people import StickyClasses

    node = "# node.toml\n\nDescribes a node, and what a server may ask of it. `fedanon node init` writes the file with all keys and their meanings; relative paths count from its folder. A key that is not known is an error.\n"
    server = "# server.toml\n\nWhere a server listens, whom it waits for, and the run it starts. `fedanon server init` writes the file.\n"
    gateway = "# gateway.toml\n\nA gateway that publishes readings as they arrive ([streams](../explanation/streams.md)). Relative paths count from the folder of the file.\n"
    methods = [('`[method]` with `claim = "people"`', StickyClasses)]
    methods += [(f'`[method]` with `name = "{name}"` and `claim = "records"`', m) for name, m in RECORD_METHODS.items()]
    return {
        "reference/node_toml.md": node + settings_text(NodeConfig),
        "reference/server_toml.md": server + settings_text(ServerConfig),
        "reference/gateway_toml.md": gateway
        + settings_text(GatewayConfig, hide=("folder",))
        + "".join(f"\n## {title}\n\n{first_paragraph(m)}\n\n{fields_table(m)}" for title, m in methods),
        "reference/experiment_toml.md": experiment_page(),
    }


def settings_text(component: type[Any], *, hide: Sequence[str] = (), level: int = 2) -> str:
    """All fields of a dataclass, by group; nested dataclasses are tables of their own."""
    hints = get_type_hints(component)
    own = [entry for entry in fields(component) if not is_dataclass(hints[entry.name]) and entry.name not in hide]
    groups: dict[str, list[Field[Any]]] = {}
    for entry in own:
        groups.setdefault(entry.metadata.get("group", ""), []).append(entry)
    text = ""
    for group, entries in groups.items():
        text += (f"\n{'#' * level} {group}\n" if group else "") + "\n" + _fields(component, entries)
    for entry in fields(component):
        if is_dataclass(hints[entry.name]):
            nested: type[Any] = hints[entry.name]
            text += f"\n{'#' * level} `[{entry.name}]`\n\n{first_paragraph(nested)}\n"
            text += settings_text(nested, level=level + 1)
    return text


def fields_table(component: type[Any], hide: Sequence[str] = ()) -> str:
    """The fields of a dataclass as one table."""
    return _fields(component, [entry for entry in fields(component) if entry.name not in hide])


def _fields(component: type[Any], entries: Sequence[Field[Any]]) -> str:
    from fedanon.fields import default_of, describe

    hints = get_type_hints(component)
    rows = []
    for entry in entries:
        default = default_of(entry)
        shown = "required" if default is MISSING else f"`{json.dumps(_simple(default))}`"
        former = entry.metadata.get("aliases", ())
        was = f" Formerly {', '.join(f'`{name}`' for name in former)}." if former else ""
        accepts = describe(entry, hints[entry.name])
        rows.append((f"`{entry.name}`", accepts, shown, _sentence(entry.metadata.get("help", "")) + was))
    return table(["key", "accepts", "default", "meaning"], rows) if rows else ""


def _simple(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value if isinstance(value, str | int | float) else str(value)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def experiment_page() -> str:
    """The keys of an experiment, and the axes of every task."""
    from fedanon.harness.tasks import TASKS

    text = EXPERIMENT
    for name, task in TASKS.items():
        text += f'\n## `task = "{name}"`\n\n{first_paragraph(task)}\n\n'
        text += fields_table(task, hide=("seed", "method", "method_settings", "source"))
    return text


EXPERIMENT = """# Experiment TOML

One file is one experiment (`fedanon experiment run FILE`). Every list in a grid is an axis, and every combination of values is a
cell. Cells are identified by a hash of everything that determines their numbers, so a finished cell is never recomputed.

| key | meaning |
| --- | --- |
| `title`, `about` | Title and description, for readers. |
| `baseline` | Label of the method with which the others are compared, seed by seed. |
| `[defaults]` | Keys of every grid. |
| `[[grid]]` | A grid: `name`, `task`, `methods`, `seeds` (a number, or a list), and any parameter of the task, alone or as a list. |
| `methods` | A list of names or of tables `{name, label, set = {PARAMETER = VALUE}, seeds}`; or `"all"`, `"mixed"`, `"perturbative"`, `"sweeps"`. A table may override any key of its grid. |
| `adjust`, `variants` | Settings for methods of a group; variants of the sweeps. |
| `data`, `schema` | Your own table instead of `dataset`; in a list of files, each file is one node. |
| `[[finding]]` | A sentence computed from the numbers and checked by `fedanon experiment check`. |
| `remarks` | Explanations, without numbers. |
| `[[published]]` | A table of published numbers, with the tolerance that ours should meet. |

The parameters of each task follow.
"""


# ---- manifest ------------------------------------------------------------------------------------


def manifest_schema_text() -> str:
    """The JSON Schema as it is shipped."""
    from importlib.resources import files

    return files("fedanon.io").joinpath("manifest.schema.json").read_text(encoding="utf-8")


def manifest_page() -> str:
    """The keys of a manifest, from its JSON Schema."""
    schema = json.loads(manifest_schema_text())
    kinds = schema["$defs"]
    text = (
        f"# Manifest\n\n{schema['description']}\n\nThe [JSON Schema](manifest.schema.json) is shipped with the package "
    )
    text += "(`fedanon/io/manifest.schema.json`), and tests validate every manifest that a command writes against it.\n"
    for title, name in (
        ("A release", "release"),
        ("A window of a gateway", "window"),
        ("`claim`", "claim"),
        ("`provenance`", "provenance"),
    ):
        needed = set(kinds[name].get("required", ()))
        rows = [
            (f"`{key}`", _json_type(entry, kinds), "always" if key in needed else "", _json_help(entry, kinds))
            for key, entry in kinds[name]["properties"].items()
        ]
        text += f"\n## {title}\n\n" + table(["key", "type", "present", "meaning"], rows)
    return text


def _json_type(entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    if "$ref" in entry:
        name = entry["$ref"].rpartition("/")[2]
        return {"count": "integer >= 0"}.get(name, name)
    if "anyOf" in entry:
        return " or ".join(_json_type(each, kinds) for each in entry["anyOf"])
    if "enum" in entry:
        return ", ".join(f"`{value}`" for value in entry["enum"])
    kind = entry.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else kind


def _json_help(entry: Mapping[str, Any], kinds: Mapping[str, Any]) -> str:
    if "description" in entry or "$ref" not in entry:
        return str(entry.get("description", ""))
    return str(kinds[entry["$ref"].rpartition("/")[2]].get("description", ""))


# ---- registries ----------------------------------------------------------------------------------


def methods_page() -> str:
    """Every method with its parameters."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.cli.listing import TITLES, _describe
    from fedanon.joint import JOINT_METHODS

    found = [_describe(name, each) for registry in (ANONYMIZERS, JOINT_METHODS) for name, each in registry.items()]
    text = "# Methods\n\nGenerated from the registry, as `fedanon methods` prints it. `--set NAME=VALUE` sets a parameter.\n"
    for group, title in TITLES.items():
        text += f"\n## {title}\n"
        for entry in (each for each in found if each["group"] == group):
            rows = [
                (
                    f"`{p['name']}`",
                    p["accepts"],
                    "" if p["default"] == "" else f"`{p['default']}`",
                    _sentence(p["help"]),
                )
                for p in entry["parameters"]
            ]
            text += f"\n### `{entry['name']}`\n\n{plain(entry['summary'])}\n\nClaims: {entry['claim']}.\n\n"
            text += table(["parameter", "accepts", "default", "meaning"], rows) if rows else ""
    return text


def metrics_page() -> str:
    """The glossary of every registered metric, and of the scores of models."""
    from fedanon.metrics import METRICS
    from fedanon.report import glossary

    of_sdc = {n for n, m in METRICS.items() if m.function.__module__.startswith("fedanon.sdc")}
    rows = [(n, METRICS[n].title, METRICS[n].better, plain(METRICS[n].help)) for n in METRICS if n not in of_sdc]
    sdc = [(n, METRICS[n].title, METRICS[n].better, plain(METRICS[n].help)) for n in METRICS if n in of_sdc]
    scores = [(n, m.title, m.better, m.text) for n, m in glossary._SCORES.items()]
    head = ["name", "title", "better", "meaning"]

    def shown(entries: Iterable[tuple[str, str, str, str]]) -> str:
        return table(head, ((f"`{name}`", *rest) for name, *rest in entries))

    return (
        "# Metrics\n\nGenerated from the registry. `fedanon.evaluate(table, release, [NAME, ...])` computes any of them, and "
        "so does `--metrics` of the commands that have it.\n\n## Loss, classes and risk\n\n"
        + shown(rows)
        + "\n## Statistical disclosure control\n\nWith equations and sources on [their own page](sdc_metrics.md).\n\n"
        + shown(sdc)
        + "\n## Scores of models\n\n`..._recoded` is on test rows generalized like the training rows, `..._holdout` on rows "
        "that no node has and no choice was based on.\n\n" + shown(scores)
    )


def attacks_page() -> str:
    """Every attack with its parameters."""
    from fedanon.attacks import ATTACKS

    text = (
        "# Attack catalogue\n\nGenerated from the registry. `fedanon attack` runs them; [attacks](attacks.md) says how, and how "
        "to read a rate. `--suite NAME,...` chooses attacks; every rate is shown with that of guessing.\n"
    )
    for target in ("release", "model", "federation"):
        text += f"\n## On a {target}\n"
        for name, attack in ATTACKS.items():
            if attack.target == target:
                text += f"\n### `{name}`\n\n**{attack.title}.** {attack.meaning}\n\n{first_paragraph(attack)}\n\n"
                text += fields_table(attack)
    return text


# ---- Python API ----------------------------------------------------------------------------------


def api_index() -> str:
    """What is public, and how long it stays."""
    rows = [
        (f"[`{package}`]({package}.md)", _sentence_of(package), str(len(importlib.import_module(package).__all__)))
        for package in PUBLIC
    ]
    return (
        "# Python API\n\nThe public interface is what the `__all__` of these packages lists. A public name that is removed or "
        "renamed is kept for one minor release with a `FutureWarning` that says what to use instead. Everything else may change "
        "at any time.\n\n" + table(["package", "what it is", "names"], rows)
    )


def _sentence_of(package: str) -> str:
    return plain((importlib.import_module(package).__doc__ or "").split("\n\n")[0])


def api_page(package: str) -> str:
    """Every public name of a package; what is also in `fedanon` is documented there."""
    module = importlib.import_module(package)
    here = {name: getattr(module, name) for name in module.__all__}
    root = importlib.import_module("fedanon")
    text = f"# `{package}`\n\n{plain(inspect.getdoc(module) or '')}\n"
    for name, value in sorted(here.items(), key=lambda item: item[0].lower()):
        if package != "fedanon" and getattr(root, name, None) is value:
            text += f"\n### `{name}`\n\nDocumented with [`fedanon`](fedanon.md).\n"
        elif inspect.isclass(value) or inspect.isfunction(value):
            hidden = "" if value.__name__ == name else "\n    options:\n      show_root_heading: false"
            text += f"\n### `{name}`\n" if hidden else ""
            text += f"\n::: {value.__module__}.{value.__qualname__}{hidden}\n"
        else:
            text += f"\n### `{name}`\n\n{_constant(value)}\n"
    return text


def _constant(value: Any) -> str:
    from fedanon.registry import Registry

    if isinstance(value, Registry):
        group = f" Other packages can add to it through the entry-point group `{value.group}`." if value.group else ""
        return f"Registry of every {value.kind} by name.{group} Names: {', '.join(f'`{n}`' for n in value.names())}."
    return f"`{value!r}`"


if __name__ == "__main__":
    for path, text in generated_pages().items():
        print(f"{path}: {len(text.splitlines())} lines")
