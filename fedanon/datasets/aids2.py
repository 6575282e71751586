"""Aids2: 2,843 patients with AIDS in Australia before July 1991, of the R package MASS; it is not shipped."""

from __future__ import annotations

from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import need, text_frame

#: as the package pydataset has it, in its folder rdata/csv/MASS
FILE = "Aids2.csv"
#: the transmission category; nine of ten patients share one
SENSITIVE = "T.categ"
_VALUES = {
    "state": ["NSW", "Other", "QLD", "VIC"],
    "sex": ["F", "M"],
    "T.categ": ["blood", "haem", "het", "hs", "hsid", "id", "mother", "other"],
}
_RANGES = {"diag": [8302, 11503], "age": [0, 82]}
_SCHEMA = {
    "name": "aids2",
    "one_row_per_person": True,
    "attributes": {
        **{
            name: {
                "role": "sensitive" if name == SENSITIVE else "quasi_identifying",
                "type": "categorical",
                "values": values,
            }
            for name, values in _VALUES.items()
        },
        **{
            name: {"role": "quasi_identifying", "type": "numeric", "range": bounds, "integer": True}
            for name, bounds in _RANGES.items()
        },
    },
}


def _read() -> Table:
    frame = text_frame(need(FILE, dataset="aids2").read_bytes())
    schema = Schema.from_dict(_SCHEMA)
    return Table.from_frame(frame[schema.names], schema)


DATASETS.register("aids2")(
    Dataset("Australian AIDS survival data (MASS), transmission category", 2843, "GPL-2 or GPL-3", _read, (FILE,))
)
