"""Registries: found by importing and by the entry points of other distributions, and clear about what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import pytest

from fedanon.errors import ConfigError, UnknownComponentError
from fedanon.models import MODELS
from fedanon.registry import Registry

GROUP = "fedanon_test.fruits"
REGISTRIES = {
    "fedanon.anonymizers": "fedanon.anonymizers:ANONYMIZERS",
    "fedanon.attacks": "fedanon.attacks:ATTACKS",
    "fedanon.datasets": "fedanon.datasets:DATASETS",
    "fedanon.metrics": "fedanon.metrics:METRICS",
    "fedanon.models": "fedanon.models:MODELS",
    "fedanon.strategies": "fedanon.learning.strategies:STRATEGIES",
    "fedanon.privacy_models": "fedanon.privacy:PRIVACY_MODELS",
    "fedanon.readers": "fedanon.data.readers:READERS",
    "fedanon.tasks": "fedanon.harness.tasks:TASKS",
}

Install = Callable[[Mapping[str, str], str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a distribution `orchard` of one module with these entry points."""

    def write(entries: Mapping[str, str], code: str) -> None:
        metadata = tmp_path / "orchard-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: orchard\nVersion: 1.0\n")
        lines = "".join(f"{name} = {target}\n" for name, target in entries.items())
        (metadata / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
        (tmp_path / "orchard.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "orchard", raising=False)

    return write


@pytest.mark.parametrize("group", REGISTRIES)
def test_every_family_is_open_to_other_distributions(group: str) -> None:
    module, _, name = REGISTRIES[group].partition(":")
    registry = getattr(import_module(module), name)
    assert registry.group == group
    assert registry.names()


def test_an_entry_point_names_the_component(install: Install) -> None:
    install({"apple": "orchard:Apple"}, "class Apple: ...\n")
    fruits: Registry[type] = Registry("fruit", group=GROUP)
    assert fruits.names() == ["apple"]
    assert fruits["apple"].__name__ == "Apple"


def test_an_entry_point_names_a_module_that_registers(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    fruits: Registry[str] = Registry("fruit", group=GROUP)
    monkeypatch.setattr(sys.modules[__name__], "FRUITS", fruits, raising=False)
    code = f"from {__name__} import FRUITS\nFRUITS.register('pear')('a pear')\nFRUITS.register('plum')('a plum')\n"
    install({"anything": "orchard"}, code)
    assert fruits.items() == [("pear", "a pear"), ("plum", "a plum")]


def test_what_registers_itself_under_the_same_name_is_registered_once(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decorator may register something else than the object it leaves behind, as that of metrics does."""
    fruits: Registry[str] = Registry("fruit", group=GROUP)
    monkeypatch.setattr(sys.modules[__name__], "FRUITS", fruits, raising=False)
    code = f"from {__name__} import FRUITS\nFRUITS.register('pear')('a pear')\ndef pear(): ...\n"
    install({"pear": "orchard:pear"}, code)
    assert fruits.items() == [("pear", "a pear")]


def test_what_cannot_be_imported_is_named_each_time(install: Install) -> None:
    install({"apple": "orchard:Apple"}, "import no_such_module\n")
    fruits: Registry[type] = Registry("fruit", group=GROUP)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"fruit 'apple' of orchard cannot be imported \(ModuleNotFoundError\)"):
            fruits.names()


def test_a_name_that_is_taken_is_refused(install: Install) -> None:
    install({"apple": "orchard:Apple"}, "class Apple: ...\n")
    fruits: Registry[type] = Registry("fruit", group=GROUP)
    fruits.register("apple")(int)
    with pytest.raises(ConfigError, match="fruit 'apple' of orchard has a name that is taken"):
        fruits.names()
    with pytest.raises(ValueError, match="registered twice"):
        fruits.register("apple")(str)


def test_a_block_leaves_nothing_behind() -> None:
    fruits: Registry[type] = Registry("fruit")
    fruits.register("apple")(int)
    with fruits.restored():
        fruits.register("pear")(str)
        assert fruits.names() == ["apple", "pear"]
    assert fruits.names() == ["apple"]
    with pytest.raises(UnknownComponentError, match=r"Unknown fruit 'appel'. Did you mean 'apple'\? Known: apple"):
        fruits["appel"]


def test_an_old_name_is_accepted_with_a_warning_and_not_listed() -> None:
    things: Registry[str] = Registry("thing")
    things.register("new")("component")
    things.alias("old", "new")
    with pytest.warns(FutureWarning, match="The thing 'old' is now called 'new'"):
        assert things["old"] == "component"
    assert "old" in things
    assert things.names() == ["new"]


@pytest.mark.parametrize(("old", "new"), [("saga", "lr_thesis"), ("xgb_published", "xgb_thesis")])
def test_models_of_stored_experiments_keep_their_names(old: str, new: str) -> None:
    with pytest.warns(FutureWarning, match=new):
        assert MODELS[old] is MODELS[new]
