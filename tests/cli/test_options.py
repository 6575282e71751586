"""Options that are derived from the settings of a run."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fedanon.cli.options import TableSource, takes_run_settings, takes_table_source
from fedanon.learning.settings import DpSettings, RunSettings


def given(*arguments: str, names: tuple[str, ...] = (), **defaults: Any) -> dict[str, Any]:
    """The settings a command with derived options receives."""
    received: dict[str, Any] = {}
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    @takes_run_settings(*names, **defaults)
    def command(chosen: dict[str, Any], more: int = 0) -> None:
        received.update(chosen, more=more)

    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return received


def test_without_options_a_command_receives_the_defaults() -> None:
    defaults = {entry.name: getattr(RunSettings(), entry.name) for entry in fields(RunSettings)}
    assert given() == defaults | {"more": 0}


def test_options_of_every_kind_are_read() -> None:
    found = given("--nodes", "3", "--min-replies", "1", "--exclude-suspects", "--features", "all", "--more", "2")
    assert (found["nodes"], found["min_replies"], found["exclude_suspects"], found["more"]) == (3, 1.0, True, 2)
    assert found["features"] == "all"


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--set", "method_settings"),
        ("--model-set", "model_settings"),
        ("--strategy-set", "strategy_settings"),
        ("--malicious-set", "malicious_settings"),
    ],
)
def test_nested_settings_are_pairs(option: str, setting: str) -> None:
    assert given(option, "a=1", option, "b=x=y")[setting] == {"a": "1", "b": "x=y"}


def test_every_field_of_the_privacy_budget_has_an_option() -> None:
    values = {"mode": "local", "epsilon": 2.0, "delta": 1e-6, "clip": 3.0, "learning_rate": 1.5, "randomness": "seeded"}
    assert {*values, "by_risk"} == {entry.name for entry in fields(DpSettings)}
    arguments = [text for name, value in values.items() for text in (f"--dp-{name.replace('_', '-')}", str(value))]
    assert given(*arguments, "--dp-by-risk")["dp_settings"] == values | {"by_risk": True}


@pytest.mark.parametrize(
    ("old", "value", "setting", "expected"),
    [
        ("--clients", "3", "nodes", 3),
        ("--clients-per-round", "2", "nodes_per_round", 2),
        ("--hostile", "1", "malicious", 1),
        ("--tampering", "nan", "malicious_attack", "nan"),
    ],
)
def test_a_former_option_is_accepted_with_a_warning(old: str, value: str, setting: str, expected: object) -> None:
    with pytest.warns(FutureWarning, match=f"'{old}' is now called"):
        assert given(old, value)[setting] == expected


def test_the_former_flag_for_seeded_noise_is_accepted_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="'--dp-seeded' is now called '--dp-randomness seeded'"):
        assert given("--dp-seeded", "--dp-epsilon", "1")["dp_settings"] == {"epsilon": 1.0, "randomness": "seeded"}


def test_a_command_may_take_some_settings_with_other_defaults() -> None:
    assert given(names=("rounds", "seed"), rounds=20) == {"rounds": 20, "seed": 0, "more": 0}


def source_given(*arguments: str) -> TableSource:
    """Where a command is to find its table."""
    received: list[TableSource] = []
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    @takes_table_source
    def command(source: TableSource) -> None:
        received.append(source)

    CliRunner().invoke(app, arguments, catch_exceptions=False)
    return received[0]


def test_a_command_receives_where_its_table_is() -> None:
    expected = TableSource(dataset="adult", node=["2"], missing="wildcard")
    assert source_given("--dataset", "adult", "--node", "2", "--missing", "wildcard") == expected


def test_the_former_option_for_a_node_is_accepted_with_a_warning() -> None:
    with pytest.warns(FutureWarning, match="'--client' is now called '--node'"):
        assert source_given("--client", "2") == TableSource(node=["2"])
