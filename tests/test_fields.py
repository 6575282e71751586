"""Fields of components: former names, nested tables and the form in which they are stored."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import pytest

from fedanon.errors import ConfigError
from fedanon.fields import Settings, build, check_fields, parameter, stored_form


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: int = parameter(1, help="size", at_least=1)

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Outer:
    nodes: int = parameter(2, help="nodes", at_least=1, aliases=("participants", "clients"))
    more: Settings = parameter({}, help="nested settings")
    inner: Inner = parameter(Inner(), help="a component")

    def __post_init__(self) -> None:
        check_fields(self)


@pytest.mark.parametrize("name", ["participants", "clients"])
def test_a_former_name_is_accepted_with_a_warning(name: str) -> None:
    with pytest.warns(FutureWarning, match=f"'{name}' is now called 'nodes'"):
        assert build(Outer, {name: "7"}).nodes == 7


def test_a_warning_is_shown_once() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            build(Outer, {"clients": 3})
    assert len(shown) == 1


def test_both_names_at_once_are_refused() -> None:
    with pytest.warns(FutureWarning), pytest.raises(ConfigError, match="clients and nodes are the same parameter"):
        build(Outer, {"clients": 3, "nodes": 3})


def test_the_current_name_draws_no_warning() -> None:
    assert build(Outer, {"nodes": 3}).nodes == 3


def test_a_table_for_a_component_is_built_and_checked() -> None:
    assert build(Outer, {"inner": {"size": "4"}}).inner == Inner(size=4)
    with pytest.raises(ConfigError, match="'size' parameter of Inner must be an int >= 1"):
        build(Outer, {"inner": {"size": 0}})


@pytest.mark.parametrize("value", ['{"k": 5}', 3, ["k"]])
def test_nested_settings_are_a_table(value: object) -> None:
    with pytest.raises(ConfigError, match="'more' parameter of Outer must be a table of names and values"):
        build(Outer, {"more": value})


def test_instances_share_no_default() -> None:
    assert Outer().more is not Outer().more
    assert hash(Outer()) == hash(Outer())


def test_the_stored_form_has_the_oldest_names_and_no_order() -> None:
    form = stored_form(Outer(more={"b": 1, "a": 2}))
    assert form["clients"] == 2
    assert form["more"] == '{"a": 2, "b": 1}'
