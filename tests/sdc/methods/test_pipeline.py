"""Pipelines: steps in order, each with randomness of its own, undone by leaving the last one out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, ReleasePlan, publish_smallest_cells
from fedanon.data.cells import Numbers
from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.datasets import load
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.release.recoding import NearestGroup
from fedanon.sdc.methods.base import own_columns
from fedanon.sdc.methods.pipeline import Pipeline
from fedanon.sdc.methods.step import Step, current_table
from fedanon.types import Rng
from tests.sdc.methods.keyed import key_table

PRAM = Step("invariant_pram", ("sex", "race"), {"pd": "0.3", "alpha": "1"})
NOISE = Step("additive_noise", ("capital-gain",))
MDAV = Step("mdav", ("age", "capital-gain"), {"k": "3"})


@pytest.fixture(scope="module")
def adult() -> Table:
    return load("adult").select_rows(np.arange(400))


def test_steps_work_on_what_the_one_before_left(adult: Table) -> None:
    """mdav groups the noisy gains: three records share a pair of means, which keep the mean of the noise."""
    noisy = Pipeline((NOISE,)).anonymize(adult, rng=5).to_frame()["capital-gain"].astype(float)
    both = Pipeline((NOISE, MDAV)).anonymize(adult, rng=5).to_frame()[["age", "capital-gain"]].astype(float)
    assert both.value_counts().min() >= 3
    assert both["capital-gain"].mean() == pytest.approx(noisy.mean())
    assert noisy.min() < 0, "the noise left the declared range, and mdav took it"


def test_a_step_does_not_depend_on_later_ones(adult: Table) -> None:
    short = Pipeline((PRAM, NOISE)).anonymize(adult, rng=7)
    long = Pipeline((PRAM, NOISE, Step("pram", ("workclass",)))).anonymize(adult, rng=7)
    untouched = [name for name in adult.frame if name != "workclass"]
    pd.testing.assert_frame_equal(short.to_frame()[untouched], long.to_frame()[untouched])


def test_a_step_without_columns_leaves_alone_what_a_later_one_masks(adult: Table) -> None:
    alone = Pipeline((Step("additive_noise"),)).anonymize(adult, rng=7).to_frame()
    then = Pipeline((Step("additive_noise"), Step("rounding", ("capital-gain",)))).anonymize(adult, rng=7).to_frame()
    pd.testing.assert_series_equal(alone["age"], then["age"])


def test_without_last_is_the_chain_before(adult: Table) -> None:
    pipeline = Pipeline((PRAM, NOISE, MDAV))
    undone = Pipeline.from_provenance(pipeline.anonymize(adult, rng=3).provenance.to_dict()).without_last()
    first, second = undone.anonymize(adult, rng=3), Pipeline((PRAM, NOISE)).anonymize(adult, rng=3)
    pd.testing.assert_frame_equal(first.to_frame(), second.to_frame())
    assert first.provenance == second.provenance


def test_provenance_holds_the_chain(adult: Table) -> None:
    release = Pipeline((PRAM, NOISE)).anonymize(adult, rng=3)
    first, second = release.provenance.parameters["steps"]
    assert (first["method"], first["columns"], first["parameters"]) == (
        "invariant_pram",
        ["sex", "race"],
        {"pd": 0.3, "alpha": 1, "strata": ""},
    )
    assert (first["spawn_key"], second["spawn_key"]) == ([0], [1])
    assert second["changed"] == {"capital-gain": len(adult)}
    assert release.provenance.parameters["masked"] == ["capital-gain"]
    assert release.provenance.data_sha256 == adult.sha256
    assert release.claim is None
    assert any("capital-gain" in note for note in release.provenance.notes)


def test_a_column_another_step_looks_at_may_be_no_quasi_identifier(adult: Table) -> None:
    step = Step("egadp", ("capital-gain",), {"given": "hours-per-week"})
    out = Pipeline((step,)).anonymize(adult, rng=0).to_frame()
    kept = out["hours-per-week"].astype(float)
    pd.testing.assert_series_equal(kept, adult.frame["hours-per-week"].astype(float))


def test_generalized_cells_are_handed_on_by_their_own_kind_only() -> None:
    table = key_table(unit=["cardiac", "orthopaedics", "oncology", "general"] * 2, age=[1, 2, 3, 4] * 2)
    recode = Step("global_recoding", ("unit",))
    suppressed = Pipeline((recode, Step("local_suppression", ("unit",), {"k": "2"}))).anonymize(table, rng=0)
    assert set(suppressed.to_frame()["unit"]) == {"Surgery", "Medicine"}
    with pytest.raises(ConfigError, match="'unit' has 8 cells that an earlier step generalized"):
        Pipeline((recode, Step("mondrian", (), {"k": "2"}))).anonymize(table, rng=0)
    cut = Step("global_recoding", ("age",), {"width": "10"})
    with pytest.raises(ConfigError, match="'age' has 8 cells that an earlier step generalized"):
        Pipeline((cut, Step("mdav", ("age",), {"k": "2"}))).anonymize(table, rng=0)


def test_suppressed_cells_are_wildcards_for_the_next_method() -> None:
    table = key_table(x=["a"] * 4 + ["b"], age=[1, 2, 3, 4, 5])
    steps = (Step("local_suppression", ("x",), {"k": "2"}), Step("mondrian", (), {"k": "5"}))
    out = Pipeline(steps).anonymize(table, rng=0).to_frame()
    assert out["x"].tolist() == ["*"] * 5
    assert out["age"].tolist() == ["[1, 5]"] * 5


def test_numbers_beyond_the_range_and_people_are_handed_over() -> None:
    table = key_table(age=[1, 2, 3], person=[1, 1, 2])
    handed = current_table(table, {**own_columns(table), "age": Numbers(np.array([-5.5, 2.0, 300.0]))}, ["age"])
    assert (handed.columns[0].attribute.low, handed.columns[0].attribute.high) == (-5.5, 300.0)  # type: ignore[union-attr]
    assert handed.n_units == 2


@pytest.fixture
def dropping() -> Iterator[None]:
    """A method that suppresses the first row."""

    with ANONYMIZERS.restored():

        @ANONYMIZERS.register("dropping")
        @dataclass(frozen=True, kw_only=True)
        class Dropping(Anonymizer):
            name = "dropping"

            def plan(self, table: Table, rng: Rng) -> ReleasePlan:
                groups = Groups.from_labels(np.where(np.arange(len(table)) == 0, -1, 0))
                return ReleasePlan(groups, publish_smallest_cells(table, groups), NearestGroup())

        yield


@pytest.mark.usefixtures("dropping")
def test_a_row_one_step_suppresses_is_not_published() -> None:
    table = key_table(x=["a", "b", "c"], y=["d", "e", "f"], note=["one", "two", "three"])
    release = Pipeline((Step("dropping", ("x",)), Step("pram", ("y",), {"keep": "1"}))).anonymize(table, rng=0)
    assert release.suppressed.tolist() == [True, False, False]
    assert release.to_frame().fillna("").to_numpy().tolist() == [["*", "*", ""], ["*", "e", "two"], ["*", "f", "three"]]


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (Step("pram", ("income",)), ConfigError, "'income' is the target"),
        (Step("pram", ("fnlwgt",)), ConfigError, "'fnlwgt' is identifying"),
        (Step("pram", ("nowhere",)), SchemaError, "no column 'nowhere'"),
        (Step("pran"), ConfigError, "Did you mean 'pram'"),
        (Step("pram", (), {"columns": "sex"}), ConfigError, "listed after its method"),
        (Step("pram", (), {"kept": "1"}), ConfigError, "no parameter kept"),
        (Step("mdav", ("age",)), ConfigError, "needs a value for: k"),
    ],
)
def test_bad_steps(adult: Table, step: Step, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Pipeline((step,)).anonymize(adult, rng=0)


def test_text_columns_and_empty_chains_are_refused() -> None:
    with pytest.raises(ConfigError, match="'note' is text"):
        Pipeline((Step("pram", ("note",)),)).anonymize(key_table(x=["a"], note=["b"]), rng=0)
    with pytest.raises(ConfigError, match="at least one step"):
        Pipeline(())
    with pytest.raises(ConfigError, match="nothing is left to run"):
        Pipeline((PRAM,)).without_last()
    with pytest.raises(DataError, match="does not describe a pipeline"):
        Pipeline.from_provenance({"method": "mdav", "parameters": {"k": 3}})
