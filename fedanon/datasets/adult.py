"""UCI Adult: the table most of the literature compares on."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from fedanon.data.schema import Role
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import bundled_bytes, bundled_schema, text_frame

NUMERIC_QUASI_IDENTIFIERS = ("age", "education-num", "hours-per-week")


def complete_rows(file: str = "adult.data.xz") -> pd.DataFrame:
    """The rows of a file without a missing cell, in file order."""
    frame = _frame(file)
    return frame[~(frame == "?").any(axis=1)].reset_index(drop=True)


def _frame(file: str) -> pd.DataFrame:
    data = bundled_bytes(file)
    # adult.test begins with a line that is not data
    data = data.partition(b"\n")[2] if data.startswith(b"|") else data
    frame = text_frame(data, bundled_schema("adult").names)
    # the labels of adult.test end with a dot
    return frame.assign(income=frame["income"].str.removesuffix("."))


def _adult() -> Table:
    return Table.from_frame(complete_rows(), bundled_schema("adult"))


def _adult_holdout() -> Table:
    return Table.from_frame(complete_rows("adult.test.xz"), bundled_schema("adult"))


def _adult_all() -> Table:
    frame = pd.concat([_frame("adult.data.xz"), _frame("adult.test.xz")], ignore_index=True)
    return Table.from_frame(frame, bundled_schema("adult"), missing="category")


def _adult_numeric() -> Table:
    schema = bundled_schema("adult").with_quasi_identifiers(NUMERIC_QUASI_IDENTIFIERS)
    # education says the same as education-num, so here it is the one to be dropped
    schema = schema.replacing(replace(schema["education"], role=Role.IDENTIFYING))
    return Table.from_frame(complete_rows(), replace(schema, name="adult_numeric"))


_TITLE = "UCI Adult (1994 US census income)"
_LICENSE = "CC BY 4.0"

for _name, _dataset in {
    "adult": Dataset(
        f"{_TITLE}: the complete rows of adult.data", 30162, _LICENSE, _adult, ("adult.data.xz",), bundled=True
    ),
    "adult_holdout": Dataset(
        f"{_TITLE}: the complete rows of adult.test, on which nothing is tuned",
        15060,
        _LICENSE,
        _adult_holdout,
        ("adult.test.xz",),
        bundled=True,
    ),
    "adult_all": Dataset(
        f"{_TITLE}: adult.data and adult.test, missing values as a category",
        48842,
        _LICENSE,
        _adult_all,
        ("adult.data.xz", "adult.test.xz"),
        bundled=True,
    ),
    "adult_numeric": Dataset(
        f"{_TITLE}: the complete rows, numeric quasi-identifiers age, education-num, hours-per-week",
        30162,
        _LICENSE,
        _adult_numeric,
        ("adult.data.xz",),
        bundled=True,
    ),
}.items():
    DATASETS.register(_name)(_dataset)
