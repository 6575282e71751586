"""The task of a chain: what the experiments on disclosure control compute."""

from __future__ import annotations

import pytest

from fedanon.errors import ConfigError, UnknownComponentError
from fedanon.harness.tasks.chain import ChainTask

KEYS = "sex,race,marital-status,education,workclass"


def test_a_chain_is_measured_by_its_lists() -> None:
    task = ChainTask(
        dataset="adult",
        keys=KEYS,
        categories="relationship",
        chain="local_suppression:k=3 > pram:keep=0.9",
        metrics="violations_3,violations_3_sdcmicro,new_missing",
        seed=0,
    )
    found = task.run().metrics
    assert found["violations_3_sdcmicro"] == 0 < found["violations_3"]
    assert found["new_missing"] == 1046
    assert 0.07 < found["changed of relationship"] / 30162 < 0.13
    assert found["UT1 of relationship"] > 0


def test_no_steps_measure_the_original() -> None:
    found = ChainTask(dataset="adult", keys=KEYS, metrics="violations_2", profile=True, seed=0).run().metrics
    assert found["violations_2"] == 542
    assert found["records with DIS-SUDA 0"] + found["records with DIS-SUDA up to 0.1"] <= 30162
    assert 0 < found["contribution of education"] <= 100


def test_bad_chains_are_reported_before_anything_runs() -> None:
    with pytest.raises(UnknownComponentError, match="pran"):
        ChainTask(dataset="adult", chain="pran:sex", seed=0)
    with pytest.raises(ConfigError, match="'keep' parameter"):
        ChainTask(dataset="adult", chain="local_suppression:k=3 > pram:keep=2", seed=0)
