"""PRAM on tables: given and invariant matrices, strata, what is left alone, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError
from fedanon.sdc.methods.pram import InvariantPram, Pram
from tests.sdc.methods.keyed import key_table, published


def sexes(n: int = 20_000) -> Table:
    return key_table(sex=["F", "M"] * (n // 2), unit=["cardiac", "general"] * (n // 2))


def matrix_file(folder: Path, text: str) -> str:
    path = folder / "matrix.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_keep_one_changes_nothing_and_keep_zero_everything() -> None:
    table = sexes(200)
    assert (published(table, Pram(keep=1.0))["sex"] == table.frame["sex"]).all()
    assert (published(table, Pram(keep=0.0))["sex"] != table.frame["sex"]).all()


def test_frequencies_follow_keep() -> None:
    table = sexes()
    kept = (published(table, Pram(keep=0.7, columns="sex"))["sex"] == table.frame["sex"]).mean()
    assert kept == pytest.approx(0.7, abs=4 * np.sqrt(0.7 * 0.3 / len(table)))


def test_a_matrix_file_as_in_the_seed(tmp_path: Path) -> None:
    """Seed 004, code 35: category 1 stays, category 2 leaves with probability 0.01 (here 0.5, to see it)."""
    table = sexes(2_000)
    file = matrix_file(tmp_path, "from,F,M\nF,1,0\nM,0.5,0.5\n")
    method = Pram(columns="sex", matrix=file)
    release = method.anonymize(table, rng=0)
    out = release.to_frame()["sex"]
    assert (out[table.frame["sex"] == "F"] == "F").all()
    assert 400 < (out[table.frame["sex"] == "M"] == "F").sum() < 600
    assert any("SHA-256" in note for note in release.provenance.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from,F,M\nF,0.5,0.4\nM,0,1\n", "1 rows that do not sum to one"),
        ("from,F,X\nF,1,0\nX,0,1\n", "1 categories that the column 'sex' does not have"),
        ("from,F,M\nM,1,0\nF,0,1\n", "in the same order"),
        ("from,F,M\nF,1,much\nM,0,1\n", "1 entries that are not probabilities"),
        ("from,F\nF,1\n", "lacks 1 categories"),
    ],
)
def test_a_wrong_matrix_file_is_one_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Pram(columns="sex", matrix=matrix_file(tmp_path, text)).anonymize(sexes(10), rng=0)


def test_other_bad_input(tmp_path: Path) -> None:
    file = matrix_file(tmp_path, "from,F,M\nF,1,0\nM,0,1\n")
    with pytest.raises(ConfigError, match="belongs to one column; 2 are named"):
        Pram(matrix=file).anonymize(sexes(10), rng=0)
    with pytest.raises(DataError, match="does not exist"):
        Pram(columns="sex", matrix=str(tmp_path / "none.csv")).anonymize(sexes(10), rng=0)
    with pytest.raises(ConfigError, match=r"categorical quasi-identifiers only\. It cannot change: age"):
        Pram(columns="age").anonymize(key_table(age=[1, 2], sex=["F", "M"]), rng=0)
    with pytest.raises(ConfigError, match="the table has none"):
        Pram().anonymize(key_table(age=[1, 2]), rng=0)
    with pytest.raises(ConfigError, match="'keep' parameter of Pram must be a float >= 0 and <= 1"):
        Pram(keep=1.5)
    with pytest.raises(ConfigError, match="no column 'ward' to use as strata"):
        InvariantPram(strata="ward").anonymize(sexes(10), rng=0)


def test_invariant_counts_stay_up_to_chance() -> None:
    rng = np.random.default_rng(0)
    table = key_table(x=rng.choice(["a", "b", "c", "d"], 20_000, p=[0.6, 0.3, 0.09, 0.01]).tolist())
    out = published(table, InvariantPram(pd=0.2, alpha=1.0))["x"]
    assert (out != table.frame["x"]).mean() > 0.2
    before, after = (frame.value_counts().sort_index().to_numpy() for frame in (table.frame["x"], out))
    # every count has the expectation of the original; its variance is below that of n independent draws
    assert np.all(np.abs(after - before) <= 4 * np.sqrt(before))


def test_strata_are_kept_apart() -> None:
    """Values that occur in one stratum only never appear in the other, and the strata themselves stay."""
    table = key_table(x=["a", "b"] * 500 + ["c", "d"] * 500, s=["one"] * 1000 + ["two"] * 1000)
    method = InvariantPram(pd=0.0, alpha=1.0, strata="s")
    out = published(table, method)
    assert set(out["x"][:1000]) == {"a", "b"}
    assert set(out["x"][1000:]) == {"c", "d"}
    assert (out["x"] != table.frame["x"]).any()
    assert (out["s"] == table.frame["s"]).all()
    free = published(table, InvariantPram(pd=0.0, alpha=1.0, columns="x"))
    assert set(free["x"][:1000]) == {"a", "b", "c", "d"}


def test_strata_may_be_a_column_that_is_carried_along() -> None:
    table = key_table(x=["a", "b"] * 50 + ["c", "d"] * 50, note=["one"] * 100 + [None] * 100)
    out = published(table, InvariantPram(pd=0.0, alpha=1.0, strata="note"))
    assert set(out["x"][100:]) == {"c", "d"}


@pytest.mark.parametrize("policy", ["category", "wildcard"])
@pytest.mark.parametrize("method", [Pram(keep=0.0), InvariantPram(pd=0.0, alpha=1.0)])
def test_missing_values_stay_and_do_not_spread(policy: str, method: Pram | InvariantPram) -> None:
    values = ["a", "b", None, "a", None] * 20
    table = key_table(policy, x=values)
    text = "(missing)" if policy == "category" else "*"
    out = published(table, method)["x"]
    assert [cell == text for cell in out] == [value is None for value in values]
