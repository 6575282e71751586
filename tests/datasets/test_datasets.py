"""Data sets by name: the known numbers of rows, pinned bytes, and clear errors when a file is not at hand."""

from __future__ import annotations

import lzma
import os
from functools import cache

import pandas as pd
import pytest

from fedanon.data.partition import by_column
from fedanon.data.schema import Categorical, Numeric
from fedanon.datasets import DATASETS, describe, eicu, fetch, files, load
from fedanon.datasets.icd9_chapters import icd9_chapters
from fedanon.errors import ConfigError, DataError, UnknownComponentError
from fedanon.models.target import outcome_of

DIABETES = ["diabetes_130", "diabetes_130_days", "diabetes_130_when"]
BUNDLED = ["adult", "adult_all", "adult_holdout", "adult_numeric", *DIABETES, "nhanes", "randhie"]
STUDY = ["pima", "stroke"]
OTHERS = [
    "adult_thesis",
    "adult_thesis_central",
    "census",
    "eia",
    "eicu",
    "eusilc",
    "heart",
    *STUDY,
    "tarragona",
    "wef",
]
#: described by a file that is not in our folder of data
ELSEWHERE = ["aids2"]
THESIS_ORDER = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]

#: those of 100,000 rows take seconds to read
loaded = cache(load)


@pytest.fixture
def nothing_at_hand(monkeypatch, tmp_path):
    monkeypatch.delenv("FEDANON_DATA", raising=False)
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path)


def test_names():
    assert DATASETS.names() == sorted(BUNDLED + OTHERS + ELSEWHERE)
    with pytest.raises(UnknownComponentError, match="Did you mean 'adult'"):
        load("adlt")


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled(name):
    table = loaded(name)
    assert len(table) == DATASETS[name].rows
    assert table.schema.target is not None


def test_adult_numeric_publishes_no_copy_of_its_quasi_identifiers():
    table = load("adult_numeric")
    assert [c.name for c in table.columns] == ["age", "education-num", "hours-per-week"]
    assert "education" not in table.frame


def test_labels_of_the_test_part_lose_their_dot():
    assert sorted(load("adult_all").frame["income"].unique()) == ["<=50K", ">50K"]


def test_describe_knows_what_is_at_hand(nothing_at_hand):
    known = {info.name: info for info in describe()}
    assert sorted(known) == sorted(BUNDLED + OTHERS + ELSEWHERE)
    assert all(known[name].available and known[name].bundled for name in BUNDLED)
    assert not any(known[name].available for name in OTHERS + ELSEWHERE)


@pytest.mark.parametrize("name", OTHERS + ELSEWHERE)
def test_absent_files_say_what_to_do(nothing_at_hand, name):
    with pytest.raises(DataError, match="FEDANON_DATA") as caught:
        load(name)
    assert ("fedanon data fetch heart" in str(caught.value)) == (name == "heart")


def test_fetch(nothing_at_hand, monkeypatch):
    import pooch

    assert fetch("adult") == []
    with pytest.raises(DataError, match="cannot be downloaded"):
        fetch("wef")

    def no_network(*arguments, **options):
        raise OSError("no route")

    monkeypatch.setattr(pooch, "retrieve", no_network)
    with pytest.raises(DataError, match="could not be downloaded"):
        fetch("heart")


def test_a_damaged_bundle_is_refused(monkeypatch):
    monkeypatch.setitem(files.BUNDLED, "nhanes.csv.xz", "0" * 64)
    with pytest.raises(DataError, match="SHA-256"):
        load("nhanes")


def test_unpacking_is_capped():
    assert files.unpack(lzma.compress(b"abc"), "x") == b"abc"
    with pytest.raises(DataError, match="more than 1 MiB"):
        files.unpack(lzma.compress(bytes(50 * 2**20)), "x", limit=2**20)
    with pytest.raises(DataError, match="too early"):
        files.unpack(lzma.compress(os.urandom(1000))[:500], "x")
    with pytest.raises(DataError, match="cannot be unpacked"):
        files.unpack(b"no xz at all", "x")


def test_nodes_only_where_there_are_some():
    with pytest.raises(ConfigError, match="no nodes of its own"):
        load("adult", node=0)
    with pytest.raises(ConfigError, match="nodes 0 to 9"):
        load("adult_thesis", node=10)


def test_diabetes_counts_people_and_groups_codes():
    table = loaded("diabetes_130")
    assert table.n_people == 71518
    assert [c.name for c in table.columns][:3] == ["race", "gender", "age"]
    frame = table.frame
    assert frame["readmitted_30d"].eq("yes").sum() == 11357
    assert "readmitted" not in frame  # it would give the target away
    assert not {"encounter_id", "patient_nbr"} & set(frame)
    assert frame["discharge"].eq("died").sum() == 1652
    assert frame["diag_1"].eq("diabetes").sum() == 8757


def test_targets_of_the_diabetes_data_have_three_kinds():
    kinds = {name: outcome_of(loaded(name).schema).kind for name in DIABETES}
    assert kinds == {
        "diabetes_130": "binary",
        "diabetes_130_days": "regression",
        "diabetes_130_when": "multiclass",
    }


@pytest.mark.parametrize(
    ("code", "chapter"),
    [
        ("250.83", "diabetes"),
        ("250", "diabetes"),
        ("251.2", "endocrine"),
        ("249", "endocrine"),
        ("8", "infectious"),
        ("139", "infectious"),
        ("140", "neoplasms"),
        ("999", "injury"),
        ("E888", "external causes"),
        ("V57", "other contacts"),
        ("?", "?"),
    ],
)
def test_icd9_codes_by_chapter(code, chapter):
    assert icd9_chapters(pd.Series([code])).tolist() == [chapter]


@pytest.mark.needs_data
def test_eicu_by_region(monkeypatch, tmp_path):
    table = load("eicu")
    assert table.n_people == 1594
    assert [len(rows) for rows in by_column(table, "region")] == [717, 138, 666, 458]
    assert table.frame["died"].eq("yes").sum() == 174
    numbers = table.frame[["ph", "albumin", "glucose"]].apply(pd.to_numeric)
    assert (numbers.min() > 0).all()  # -1 is missing
    # as PhysioNet publishes it
    (tmp_path / "eicu_demo").mkdir()
    for name in eicu.TABLES:
        eicu._read(name).to_csv(tmp_path / "eicu_demo" / f"{name}.csv.gz", index=False)
    monkeypatch.setenv("FEDANON_DATA", str(tmp_path))
    assert load("eicu").sha256 == table.sha256


@pytest.mark.needs_data
@pytest.mark.parametrize("name", OTHERS)
def test_files_in_the_data_folder(name):
    assert len(load(name)) == DATASETS[name].rows
    assert {info.name: info for info in describe()}[name].available


@pytest.mark.needs_data
def test_thesis_nodes():
    tables = [load("adult_thesis", node=i) for i in range(10)]
    assert [len(table) for table in tables[:3]] == [3028, 3035, 3015]
    assert sum(map(len, tables)) == 30162
    age = tables[0].schema["age"]
    assert isinstance(age, Numeric)
    assert age.hierarchy is not None
    assert (age.low, age.high) == (tables[0].columns[1].values.min(), tables[0].columns[1].values.max())
    for table in (tables[0], load("adult_thesis_central")):
        assert [c.name for c in table.columns] == THESIS_ORDER
        assert isinstance(table.with_taxonomies().columns[1].attribute, Categorical)


@pytest.mark.needs_data
def test_heart_from_the_four_files_is_the_same(monkeypatch, tmp_path):
    table = load("heart")
    frame = table.frame
    assert frame["site"].value_counts().to_dict() == {"cleveland": 303, "hungarian": 294, "va": 200, "switzerland": 123}
    assert frame["disease"].eq("no").sum() == 411
    raw = files.text_frame(files.need("heart_four_sites.csv", dataset="heart").read_bytes())
    for site, part in raw.groupby("site"):
        part.drop(columns="site").to_csv(tmp_path / f"processed.{site}.data", header=False, index=False, na_rep="?")
    monkeypatch.setenv("FEDANON_DATA", str(tmp_path))
    assert load("heart").sha256 == table.sha256
