"""`fedanon simulate` with a method of the federation."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run

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
