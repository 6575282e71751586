"""Diabetes 130-US hospitals, 1999-2008: encounters of inpatients, of whom many came more than once.

The 130 hospitals are not named. A federation is dealt out by something else: ``iid``, or skewed by what the admitting
physician practices or who pays (``dirichlet:0.5:medical_specialty``, ``dirichlet:0.5:payer_code``), which says nothing
about hospitals. ``by:COLUMN`` is not possible: people who come again are seen by others and may have another payer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from fedanon.data.schema import Role
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import bundled_bytes, bundled_schema, text_frame
from fedanon.datasets.icd9_chapters import icd9_chapters

FILE = "diabetes_130.csv.xz"
UNKNOWN = "?"
DIAGNOSES = ("diag_1", "diag_2", "diag_3")
SOON, WHEN, DAYS = "readmitted_30d", "readmitted", "time_in_hospital"

#: groups of the codes of `IDs_mapping.csv`; codes that are not listed mean that nothing is known
ADMISSION_TYPES = {"1": "emergency", "2": "urgent", "3": "elective", "4": "newborn", "7": "trauma center"}
ADMISSION_SOURCES = {
    **dict.fromkeys(("1", "2", "3"), "referral"),
    **dict.fromkeys(("4", "5", "6", "10", "18", "22", "25", "26"), "transfer"),
    "7": "emergency room",
    "8": "court",
    **dict.fromkeys(("11", "12", "13", "14", "23", "24"), "birth"),
}
DISCHARGES = {
    "1": "home",
    **dict.fromkeys(("6", "8"), "home with care"),
    **dict.fromkeys(("2", "9", "15", "29"), "other hospital"),
    **dict.fromkeys(("3", "4", "24"), "nursing facility"),
    **dict.fromkeys(("5", "10", "12", "16", "17", "23", "27", "28", "30"), "other care"),
    "7": "left against advice",
    "22": "rehabilitation",
    **dict.fromkeys(("11", "19", "20", "21"), "died"),
    **dict.fromkeys(("13", "14"), "hospice"),
}
#: specialties are grouped by how their names begin; others are few
SPECIALTIES = {
    "InternalMedicine": "internal medicine",
    "Emergency": "emergency",
    "Family": "general practice",
    "Cardiology": "cardiology",
    "Surg": "surgery",
    "Nephrology": "nephrology",
    "Orthopedics": "orthopedics",
    "Radiolog": "radiology",
    "Pulmonology": "pulmonology",
    "Psychiatry": "psychiatry",
    UNKNOWN: UNKNOWN,
}


def _frame() -> pd.DataFrame:
    """The encounters with codes as words and diagnoses by chapter; columns that say next to nothing are left out."""
    frame = text_frame(bundled_bytes(FILE))
    frame["admission_type"] = _grouped(frame["admission_type_id"], ADMISSION_TYPES)
    frame["admission_source"] = _grouped(frame["admission_source_id"], ADMISSION_SOURCES)
    frame["discharge"] = _grouped(frame["discharge_disposition_id"], DISCHARGES)
    frame["medical_specialty"] = frame["medical_specialty"].map(_specialty)
    for name in DIAGNOSES:
        frame[name] = icd9_chapters(frame[name])
    frame[SOON] = (frame[WHEN] == "<30").map({True: "yes", False: "no"})
    return frame


def _grouped(codes: pd.Series[Any], groups: Mapping[str, str]) -> pd.Series[Any]:
    return codes.map(groups).fillna(UNKNOWN)


def _specialty(name: str) -> str:
    return next((group for start, group in SPECIALTIES.items() if name.startswith(start)), "other")


def _predicting(target: str, name: str) -> Callable[[], Table]:
    """A reader of the table with one target; whether and when someone came again does not go together."""

    def read() -> Table:
        schema = bundled_schema("diabetes_130")
        schema = replace(schema.replacing(replace(schema[target], role=Role.SENSITIVE)), target=target, name=name)
        after = {SOON, WHEN} - {target}
        schema = replace(schema, attributes=tuple(a for a in schema.attributes if a.name not in after))
        return Table.from_frame(_frame()[schema.names], schema, missing="category")

    return read


_TITLE = "Diabetes 130-US hospitals, 1999-2008 (the hospitals are not named): encounters of 71,518 people"

for _name, _target, _what in (
    ("diabetes_130", SOON, "readmission within 30 days"),
    ("diabetes_130_when", WHEN, "readmission within 30 days, later or never (three classes)"),
    ("diabetes_130_days", DAYS, "days in hospital (a number)"),
):
    DATASETS.register(_name)(
        Dataset(f"{_TITLE}; {_what}", 101766, "CC BY 4.0", _predicting(_target, _name), (FILE,), bundled=True)
    )
