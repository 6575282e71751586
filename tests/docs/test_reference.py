"""The generated reference: every public name, key, command and component has an entry."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields

import pytest
import reference
from typer.main import get_command

from fedanon import ANONYMIZERS, ATTACKS, METRICS
from fedanon.cli.app import app
from fedanon.federated.deployment.config import NodeConfig, ServerConfig
from fedanon.harness.tasks import TASKS
from fedanon.streams.config import GatewayConfig


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return reference.generated_pages()


@pytest.mark.parametrize("package", reference.PUBLIC)
def test_every_public_name_has_an_entry(package: str, pages: dict[str, str]) -> None:
    module = importlib.import_module(package)
    text = pages[f"reference/api/{package}.md"]
    entries = set(re.findall(r"^### `(\w+)`", text, re.MULTILINE))
    documented = set(re.findall(r"^::: ([\w.]+)", text, re.MULTILINE))
    for name in module.__all__:
        value = getattr(module, name)
        path = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
        assert name in entries or path in documented, f"{package}.{name}"
        assert name in entries or value.__doc__, f"{package}.{name} says nothing about itself"


def test_every_command_has_an_entry(pages: dict[str, str]) -> None:
    text = pages["reference/cli.md"]
    found = list(reference.commands(get_command(app), "fedanon"))
    assert len(found) > 40
    for name, command in found:
        assert f"## `{name}`\n" in text
        assert command.help, f"{name} has no help"


@pytest.mark.parametrize(
    ("page", "config"), [("node_toml", NodeConfig), ("server_toml", ServerConfig), ("gateway_toml", GatewayConfig)]
)
def test_every_key_has_an_entry(page: str, config: type, pages: dict[str, str]) -> None:
    text = pages[f"reference/{page}.md"]
    for entry in fields(config):
        if entry.name != "folder":
            assert re.search(rf"^(\| `{entry.name}` \||#+ `\[{entry.name}\]`)", text, re.MULTILINE), entry.name
            assert entry.metadata.get("help", "nested"), f"{entry.name} says nothing about itself"


def test_every_component_has_an_entry(pages: dict[str, str]) -> None:
    for page, registry, form in (
        ("methods", ANONYMIZERS, "### `{}`"),
        ("metrics", METRICS, "| `{}` |"),
        ("attack_catalogue", ATTACKS, "### `{}`"),
        ("experiment_toml", TASKS, '## `task = "{}"`'),
    ):
        for name in registry.names():
            assert form.format(name) in pages[f"reference/{page}.md"], name


def test_every_exit_code_has_an_entry(pages: dict[str, str]) -> None:
    text = pages["reference/exit_codes.md"]
    assert re.findall(r"^\| (\d+) \|", text, re.MULTILINE) == ["0", "2", "3", "4", "5", "70", "130"]
    for name in ("SchemaError", "RefusedError", "NotApplicableError"):
        assert f"| `{name}` |" in text
