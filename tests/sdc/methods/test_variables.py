"""Keys, numbers and categories apart: a masked number is no key, whatever the order of the steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedanon.data.schema import Role
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.sdc.methods.pipeline import Pipeline
from fedanon.sdc.methods.step import Step
from fedanon.sdc.metrics.diversity import diversity, sensitive_codes
from fedanon.sdc.variables import Variables, part_of_release, part_of_table, variables_of
from tests.sdc.methods.keyed import key_table

NOISE = Step("additive_noise", ("income",))
SUPPRESS = Step("local_suppression", (), {"k": "3"})
DEFAULT = Variables()
THRESHOLD = Step("threshold_suppression", ("water",), {"threshold": "0.6"})


@pytest.fixture(scope="module")
def survey() -> Table:
    """Two keys, of which some combinations are rare, and an income that is no key."""
    rng = np.random.default_rng(5)
    columns = {
        "water": [f"w{int(v)}" for v in rng.geometric(0.5, 300)],
        "roof": [f"r{int(v)}" for v in rng.geometric(0.4, 300)],
        "income": rng.integers(1, 100, 300).tolist(),
        "job": [f"j{int(v)}" for v in rng.integers(4, size=300)],
    }
    table = key_table(**columns)
    roles = [replace(table.schema["income"], role=Role.SENSITIVE), replace(table.schema["job"], role=Role.INSENSITIVE)]
    return Table.from_frame(pd.DataFrame(columns), table.schema.replacing(*roles))


def suppressed(table: Table, *steps: Step, variables: Variables = DEFAULT) -> dict[str, int]:
    frame = Pipeline(steps, variables).anonymize(table, rng=0).to_frame()
    return {name: int((frame[name].astype(str) == "*").sum()) for name in ("water", "roof", "income", "job")}


def test_a_masked_number_is_no_key(survey: Table) -> None:
    alone, after = suppressed(survey, SUPPRESS), suppressed(survey, NOISE, SUPPRESS)
    assert alone == after
    assert 0 < alone["water"] + alone["roof"] < 100
    assert alone["income"] == 0


@pytest.mark.parametrize("step", [SUPPRESS, THRESHOLD])
def test_the_order_of_steps_for_keys_and_numbers_does_not_matter(survey: Table, step: Step) -> None:
    first, second = (Pipeline(steps).anonymize(survey, rng=0).to_frame() for steps in ((NOISE, step), (step, NOISE)))
    pd.testing.assert_frame_equal(first[["water", "roof", "job"]], second[["water", "roof", "job"]])


def test_the_lists_of_a_chain(survey: Table) -> None:
    chain = (NOISE, Step("pram", ("job",)), Step("mdav", ("income",), {"k": "3"}), SUPPRESS)
    used = variables_of(Pipeline(chain).anonymize(survey, rng=0))
    assert used == Variables(("water", "roof"), ("income",), ("job",))


def test_keys_may_be_chosen(survey: Table) -> None:
    """With one key nearly nothing is rare; a column that is no quasi-identifier may be a key."""
    wide = suppressed(survey, SUPPRESS, variables=Variables(keys=("water", "roof", "job")))
    narrow = suppressed(survey, SUPPRESS, variables=Variables(keys=("roof",)))
    assert wide["water"] + wide["roof"] + wide["job"] > suppressed(survey, SUPPRESS)["water"] > 0
    assert narrow["water"] == narrow["job"] == 0
    named = Pipeline((Step("local_suppression", ("water", "job"), {"k": "2"}),)).anonymize(survey, rng=0)
    assert variables_of(named) == Variables(("water", "roof", "job"))


def test_given_numbers_are_what_a_step_takes_and_the_manifest_keeps_them(survey: Table) -> None:
    chain = Pipeline(
        (Step("rounding", (), {"base": "7"}), Step("pram")), Variables(numbers=("income",), categories=("job",))
    )
    release = chain.anonymize(survey, rng=0)
    assert [list(step["changed"]) for step in release.provenance.parameters["steps"]] == [["income"], ["job"]]
    assert Pipeline.from_provenance(release.provenance.to_dict()) == replace(
        chain, steps=tuple(Step.from_dict(step) for step in release.provenance.parameters["steps"])
    )


def test_a_column_is_in_one_list() -> None:
    with pytest.raises(ConfigError, match=r"each named once\. Not so: income"):
        Pipeline((SUPPRESS,), Variables(keys=("income",), numbers=("income",)))


def test_a_number_that_stays_a_key_is_said(survey: Table) -> None:
    table = key_table(age=[1, 2, 3, 4, 5, 6], x=["a"] * 6)
    notes = Pipeline((Step("additive_noise", ("age",)),)).anonymize(table, rng=0).provenance.notes
    assert any("Masked as numbers, yet keys by the schema: age." in note for note in notes)
    assert not any("Masked as numbers" in note for note in Pipeline((NOISE,)).anonymize(survey, rng=0).provenance.notes)


def test_the_part_of_a_release_by_its_keys(survey: Table) -> None:
    """Classes are those of the keys, and the income that was masked is sensitive again, with its new values."""
    chain = Pipeline((Step("rounding", ("income",), {"base": "50"}),))
    release = chain.anonymize(survey, rng=0)
    part = part_of_release(release, ["water", "roof"], survey.schema)
    assert part.classes.count == len(survey.frame.drop_duplicates(["water", "roof"]))
    assert part_of_table(chain.masked_table(survey), ["water", "roof"]).columns[1].name == "roof"
    assert list(sensitive_codes(part)) == ["income"]
    found = diversity(part.classes.labels, sensitive_codes(part)["income"])
    shown = release.to_frame().groupby(["water", "roof"])["income"].transform("nunique")
    np.testing.assert_array_equal(found.distinct, shown)
