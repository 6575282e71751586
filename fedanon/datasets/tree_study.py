"""The tables on which the rebuilding of rows from trees was shown (TimberStrike, 2025): stroke, and diabetes of Pima.

The files are not bundled: they are looked for in the folder ``timberstrike`` of ``FEDANON_DATA``.
"""

from __future__ import annotations

from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import bundled_schema, need, text_frame

FOLDER = "timberstrike"


def _stroke() -> Table:
    frame = text_frame(need(f"{FOLDER}/stroke_prep.csv", dataset="stroke").read_bytes())
    return Table.from_frame(frame, bundled_schema("stroke"))


def _pima() -> Table:
    frame = text_frame(need(f"{FOLDER}/pima_diabetes.csv", dataset="pima").read_bytes())
    return Table.from_frame(frame, bundled_schema("pima"))


for _name, _dataset in {
    "stroke": Dataset(
        "Stroke prediction as prepared by the authors of TimberStrike: rare outcomes filled up by synthetic rows",
        7774,
        "not to be redistributed",
        _stroke,
        (f"{FOLDER}/stroke_prep.csv",),
    ),
    "pima": Dataset(
        "Diabetes of Pima women",
        768,
        "CC0 1.0",
        _pima,
        (f"{FOLDER}/pima_diabetes.csv",),
    ),
}.items():
    DATASETS.register(_name)(_dataset)
