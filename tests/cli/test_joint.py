"""`fedanon simulate` with a method of the federation."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run

WHERE = "is one of a federation, not of one table: it goes with `fedanon simulate`"
BASE = ("simulate", "--dataset", "randhie", "--partition", "by:site", "--rounds", "1")


def test_both_claims_are_in_the_result_and_the_words_in_the_report(run: Run) -> None:
    done = run(*BASE, "--method", "federated-mondrian", "--k", "20", "--k-local", "2")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "people of the federation" in said
    assert "an attacker who knows which hospital a patient attended" in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "federated_mondrian"], "needs a value for: k"),
        (["--method", "federated_mondrian", "--k", "5", "--k-local", "9"], "k_local=9 is larger than k=5"),
        (["--method", "federated_mondrian", "--k", "5", "--set", "counts=all"], "The 'counts' parameter"),
        (["--method", "mondrian", "--k", "5", "--k-local", "2"], "--k-local goes with a method of the federation"),
    ],
)
def test_bad_settings_are_told_at_once(run: Run, arguments: list[str], message: str) -> None:
    done = run(*BASE, *arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())


@pytest.mark.parametrize("method", ["federated_mondrian", "federated-reference"])
def test_a_method_of_a_federation_is_none_of_one_table(run: Run, method: str) -> None:
    for arguments in (["anonymize", "--method", method, "--k", "5"], ["compare", "--methods", method]):
        done = run(*arguments, "--dataset", "randhie")
        assert done.code == 2
        assert WHERE in " ".join(done.err.split())


def test_methods_lists_those_of_a_federation(run: Run) -> None:
    done = run("methods", "--json")
    found = {entry["name"]: entry for entry in json.loads(done.out)}
    assert {"federated_mondrian", "federated_reference"} <= set(found)
    assert found["federated_reference"]["group"] == "federated"
    assert found["federated_mondrian"]["claim"] == "k-anonymity over the federation"


def test_what_counts_gave_away_is_said_in_words(run: Run) -> None:
    done = run(*BASE, "--method", "federated-reference", "--k", "20", "--set", "counts=secure")
    assert done.code == 0, done.err
    assert "the server saw sums over all nodes only (4 queries)" in " ".join(done.out.split())
