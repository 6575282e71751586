"""SdcProblem: steps, undo, history, and risk before and after, as the command line reports them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.sdc import SdcProblem


@pytest.fixture(scope="module")
def problem() -> SdcProblem:
    table = load("adult").select_rows(np.arange(800))
    return SdcProblem(table, keys=("sex", "race", "education"), numbers=("capital-gain",), categories=("workclass",))


def test_steps_are_taken_and_undone(problem: SdcProblem) -> None:
    first = problem.apply("local_suppression", k=3)
    second = first.apply("kim_noise", c=0.2).apply("pram", keep=0.7)
    assert second.history == ["local_suppression(k=3)", "kim_noise(c=0.2)", "pram(keep=0.7)"]
    pd.testing.assert_frame_equal(second.undo(2).to_frame(), first.to_frame())
    pd.testing.assert_frame_equal(second.undo(3).to_frame(), problem.to_frame())
    changed = [name for name in first.to_frame() if (second.to_frame()[name] != first.to_frame()[name]).any()]
    assert set(changed) == {"capital-gain", "workclass"}
    with pytest.raises(ConfigError, match="There are 0 steps to undo"):
        problem.undo()
    with pytest.raises(ConfigError, match="'k' parameter"):
        problem.apply("local_suppression", k=1)


def test_risk_before_and_after(problem: SdcProblem) -> None:
    untouched, safe = (
        problem.risk("violations_3_sdcmicro"),
        problem.apply("local_suppression", k=3).risk("violations_3_sdcmicro"),
    )
    assert untouched.modified == untouched.original == safe.original > safe.modified == 0
    assert problem.profile()["anonymity_sdcmicro"]["violations_3"] == untouched.original


def test_numbers_are_measured_without_the_keys(problem: SdcProblem) -> None:
    masked = problem.apply("additive_noise", c=0.1).apply("invariant_pram")
    page = masked.summary(["il1s_sdcmicro"])
    assert page.loc["IL2", "modified"] > 0
    assert page.loc["Violations of 2-anonymity", "modified"] == page.loc["Violations of 2-anonymity", "original"]
    assert page.loc["Changed categories", "modified"] > 0
    assert "IL1s, as in sdcMicro" in page.index
    assert "1. additive_noise(c=0.1)" in repr(masked)


def test_a_column_is_in_one_list(problem: SdcProblem) -> None:
    with pytest.raises(ConfigError, match="each named once"):
        SdcProblem(problem.table, keys=("sex",), categories=("sex",))


def test_undone_steps_are_redone_until_another_is_taken(problem: SdcProblem) -> None:
    both = problem.apply("local_suppression", k=3).apply("kim_noise", c=0.2)
    back = both.undo().undo()
    assert back.redo(2).history == both.history
    pd.testing.assert_frame_equal(back.redo().redo().to_frame(), both.to_frame())
    with pytest.raises(ConfigError, match="There are 0 steps to redo"):
        back.apply("pram", keep=0.7).redo()


def test_a_page_is_plain_data_that_can_be_stored(problem: SdcProblem) -> None:
    masked = problem.apply("local_suppression", k=3).apply("kim_noise", c=0.2).apply("pram", keep=0.7).undo()
    page = json.loads(json.dumps(masked.page(["il1s_sdcmicro"]), allow_nan=False))
    assert [one["label"] for one in page["history"]] == masked.history
    assert page["undone"] == ["pram(keep=0.7)"]
    published, original = masked.to_frame(), problem.to_frame()
    assert page["history"][1]["changed"]["capital-gain"] == int((published != original)["capital-gain"].sum())
    risk = {row["metric"]: row for row in page["risk"]}
    assert (risk["violations_3"]["modified"], risk["violations_3"]["original"]) == masked.risk("violations_3")
    assert {"il2", "il1s_sdcmicro"} <= {row["metric"] for row in page["loss"]}
    again = SdcProblem.from_dict(problem.table, json.loads(json.dumps(masked.to_dict())))
    pd.testing.assert_frame_equal(again.to_frame(), published)
    assert again.redo().history == masked.redo().history
    for damaged in ({}, {**masked.to_dict(), "steps": 3}, {**masked.to_dict(), "seed": "x"}):
        with pytest.raises(ConfigError, match="cannot be read"):
            SdcProblem.from_dict(problem.table, damaged)
