"""Missing numbers stay missing, and everything else is masked, whatever the method."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.cells import is_suppressed
from fedanon.data.schema import Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.sdc.methods.numeric import NumericPerturbation
from fedanon.sdc.methods.pipeline import Pipeline
from fedanon.sdc.methods.step import Step
from fedanon.sdc.metrics.numeric_pair import numeric_pair

METHODS = sorted(name for name in ANONYMIZERS.names() if issubclass(ANONYMIZERS[name], NumericPerturbation))
MICROAGGREGATION = ("individual_ranking", "mdav", "pca", "rmd")
SETTINGS = {
    "distortion": {"significance": "0"},
    "outlier_noise": {"c": "1"},
    **{name: {"k": "3"} for name in MICROAGGREGATION},
}


def holed(policy: str, n: int = 400) -> Table:
    """Three correlated columns: some records lack all of them, some a single one."""
    rng = np.random.default_rng(8)
    z = rng.standard_normal((n, 3)) @ np.array([[1, 0.7, 0.5], [0, 1, 0.4], [0, 0, 1]])
    frame = pd.DataFrame(np.exp(z / 3) * [10, 100, 1000], columns=list("abc"))
    frame.iloc[:60] = np.nan
    frame.iloc[60:100, 0] = np.nan
    frame.iloc[90:130, 2] = np.nan
    schema = Schema(tuple(Numeric(name, Role.QUASI_IDENTIFYING, 0, 1e6) for name in "abc"))
    return Table.from_frame(frame, schema, missing=policy)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", ["category", "wildcard"])
@pytest.mark.parametrize("method", [*METHODS, *MICROAGGREGATION])
def test_every_method_takes_them(method: str, policy: str) -> None:
    table = holed(policy)
    chain = Pipeline((Step(method, ("a", "b", "c"), SETTINGS.get(method, {})),))
    release = chain.anonymize(table, rng=1)
    changed = 0
    for column in table.columns:
        cells = release.cells[column.name].select(release.groups.labels)
        assert isinstance(column.attribute, Numeric)
        silent = is_suppressed(cells, column.attribute) | np.isnan(cells.midpoints())  # type: ignore[union-attr]
        missing = table.frame[column.name].isna().to_numpy()
        np.testing.assert_array_equal(silent, missing)
        changed += int((cells.midpoints()[~missing] != table.frame[column.name][~missing]).sum())  # type: ignore[union-attr]
    assert changed > (0 if method == "outlier_noise" else 0.8 * (~table.frame.isna()).to_numpy().sum())


def test_a_column_by_itself_is_masked_as_if_it_had_no_other_records() -> None:
    """Rank swapping keeps the values of every column, those that are there."""
    table = holed("category")
    out = Pipeline((Step("rank_swapping", ("a", "c")),)).anonymize(table, rng=1).to_frame()
    for name in "ac":
        there = table.frame[name].dropna()
        assert sorted(out[name][there.index].astype(float)) == pytest.approx(sorted(there))


def test_statistics_are_those_of_the_records_that_are_there() -> None:
    """Where records are complete or empty, nothing is borrowed: ROMM keeps means and covariances to the last digit."""
    table = holed("category")
    complete = table.frame.notna().all(axis=1).to_numpy()
    table = table.select_rows(np.flatnonzero(complete | table.frame.isna().all(axis=1).to_numpy()))
    release = Pipeline((Step("romm", ("a", "b", "c")),)).anonymize(table, rng=1)
    pair = numeric_pair(table, release)
    assert pair is not None
    np.testing.assert_allclose(pair.published.mean(axis=0), pair.original.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(np.cov(pair.published.T), np.cov(pair.original.T), rtol=1e-8)


def test_reverse_mapping_and_restrictions_leave_them_missing() -> None:
    table = holed("category")
    chain = Pipeline((Step("mdav", ("a", "b", "c"), {"k": "5"}), Step("reverse_mapping", ("a", "b", "c"))))
    out = chain.anonymize(table, rng=1).to_frame()
    for name in "abc":
        there = table.frame[name].dropna()
        assert sorted(out[name][there.index].astype(float)) == pytest.approx(sorted(there))
        assert set(out[name][table.frame[name].isna()]) == {"(missing)"}


def test_a_column_without_any_value_is_refused() -> None:
    frame = pd.DataFrame({"a": [np.nan] * 9, "b": np.arange(9.0)})
    schema = Schema(tuple(Numeric(name, Role.QUASI_IDENTIFYING, 0, 30) for name in "ab"))
    with pytest.raises(InfeasibleError, match="no value in any record"):
        Pipeline((Step("kim_noise", ("a", "b")),)).anonymize(Table.from_frame(frame, schema, missing="category"), rng=0)


@pytest.mark.parametrize("settings", [{"keep_zeros": "true"}, {"non_negative": "true"}, {"reverse_map": "true"}])
def test_a_suppressed_zero_stays_suppressed(settings: dict[str, str]) -> None:
    """Restrictions look at the original, which is 0 here; what an earlier step hid stays hidden."""
    frame = pd.DataFrame({"a": [0.0] + [5.0] * 4 + [6.0] * 4, "b": np.arange(9.0)})
    schema = Schema(tuple(Numeric(name, Role.QUASI_IDENTIFYING, 0, 30) for name in "ab"))
    steps = (Step("local_suppression", ("a",), {"k": "2"}), Step("additive_noise", ("a",), settings))
    out = Pipeline(steps).anonymize(Table.from_frame(frame, schema), rng=0).to_frame()
    assert out["a"][0] == "[0, 30]"
