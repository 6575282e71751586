"""Health data: the RAND experiment and NHANES, which are bundled, and UCI heart disease of four hospitals."""

from __future__ import annotations

import pandas as pd

from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import Source, bundled_bytes, bundled_schema, find, need, text_frame

HEART_SITES = ("cleveland", "hungarian", "switzerland", "va")
HEART_TABLE = "heart_four_sites.csv"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/heart-disease/"
_HEART_SHA256 = {
    "cleveland": "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8",
    "hungarian": "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796",
    "switzerland": "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314",
    "va": "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f",
}
_HEART_SOURCES = {
    f"processed.{site}.data": Source(f"{_UCI}processed.{site}.data", sha256) for site, sha256 in _HEART_SHA256.items()
}
_HEART_COLUMNS = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak,slope,ca,thal,num"


def _randhie() -> Table:
    schema = bundled_schema("randhie")
    frame = text_frame(bundled_bytes("randhie.csv.xz"))
    known = frame[[a.name for a in schema.quasi_identifiers]].notna().all(axis=1)
    return Table.from_frame(frame[known].reset_index(drop=True), schema)


def _nhanes() -> Table:
    return Table.from_frame(text_frame(bundled_bytes("nhanes.csv.xz")), bundled_schema("nhanes"), missing="category")


def _heart() -> Table:
    frame = _heart_frame()
    # the sources write codes as 1.0; '?' and the empty cell mean missing
    frame = frame.apply(lambda column: column.str.replace(r"\.0$", "", regex=True)).replace("?", None)
    frame["disease"] = frame.pop("num").map(lambda degree: "no" if degree == "0" else "yes")
    return Table.from_frame(frame, bundled_schema("heart"))


def _heart_frame() -> pd.DataFrame:
    """One table of the four hospitals, or the four files of UCI put together."""
    table = find(HEART_TABLE)
    if table is not None:
        return text_frame(table.read_bytes())
    parts = []
    for site in HEART_SITES:
        path = need(f"processed.{site}.data", dataset="heart", fetchable=True)
        parts.append(text_frame(path.read_bytes(), _HEART_COLUMNS.split(",")).assign(site=site))
    return pd.concat(parts, ignore_index=True)


for _name, _dataset in {
    "randhie": Dataset(
        "RAND Health Insurance Experiment, year 1, six enrollment sites; "
        "124 of 5,638 persons with a missing quasi-identifier are left out",
        5514,
        "public domain",
        _randhie,
        ("randhie.csv.xz",),
        bundled=True,
    ),
    "nhanes": Dataset(
        "NHANES 2017-2018, adults (diabetes), missing values as a category",
        5261,
        "public domain",
        _nhanes,
        ("nhanes.csv.xz",),
        bundled=True,
    ),
    "heart": Dataset(
        "UCI heart disease, four hospitals",
        920,
        "CC BY 4.0",
        _heart,
        (HEART_TABLE,),
        sources=_HEART_SOURCES,
    ),
}.items():
    DATASETS.register(_name)(_dataset)
