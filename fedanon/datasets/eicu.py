"""eICU Collaborative Research Database Demo: stays in intensive care units of hospitals in four regions of the US.

The files are not bundled. They are those of <https://physionet.org/content/eicu-crd-demo/> (version 2.0.1,
ODbL 1.0), as they are or compressed with gzip or xz, in the folder ``eicu_demo`` of ``FEDANON_DATA``.
"""

from __future__ import annotations

import pandas as pd

from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import FOLDER_VARIABLE, bundled_schema, find
from fedanon.errors import DataError

SOURCE = "https://physionet.org/content/eicu-crd-demo/"
FOLDER = "eicu_demo"
TABLES = ("patient", "hospital", "apacheapsvar", "apachepredvar")
STAY = "patientunitstayid"
#: APACHE's way to say that something was not measured
NOT_MEASURED = ("-1", "-1.0")
#: top-coded: everyone older than 89
TOP_CODE, TOP_AGE = "> 89", "90"
#: what of the variables for the prediction says more about the patient
HISTORY = (
    *("hepaticfailure", "lymphoma", "metastaticcancer", "leukemia", "immunosuppression", "cirrhosis"),
    *("diabetes", "electivesurgery", "activetx", "readmit", "ventday1", "admitdiagnosis"),
)


def _eicu() -> Table:
    schema = bundled_schema("eicu")
    stays = _read("patient").merge(_read("hospital"), on="hospitalid")
    stays = stays.merge(_read("apacheapsvar"), on=STAY).merge(_read("apachepredvar")[[STAY, *HISTORY]], on=STAY)
    # a node is a region, and a stay whose end is not known teaches nothing
    stays = stays[(stays["region"] != "") & (stays["hospitaldischargestatus"] != "")]
    # one person has stays in two regions; nodes share no people
    first = stays.groupby("uniquepid")["region"].transform("first")
    stays = stays[stays["region"] == first].reset_index(drop=True)
    stays["died"] = (stays["hospitaldischargestatus"] == "Expired").map({True: "yes", False: "no"})
    stays["age"] = stays["age"].replace(TOP_CODE, TOP_AGE)
    # an operation is told from another reason by how its code begins
    stays["surgical"] = stays.pop("admitdiagnosis").str.startswith("S-").map({True: "yes", False: "no"})
    frame = stays[schema.names].replace(["", *NOT_MEASURED], None)
    return Table.from_frame(frame, schema, missing="category")


def _read(table: str) -> pd.DataFrame:
    """A table as text."""
    path = find(f"{FOLDER}/{table}.csv*")
    if path is None:
        raise DataError(
            f"The data set 'eicu' needs the file {table}.csv of {SOURCE} (.gz and .xz will do). Put it into "
            f"the folder {FOLDER} of the one that the environment variable {FOLDER_VARIABLE} names."
        )
    return pd.read_csv(path, dtype=str, keep_default_na=False)


DATASETS.register("eicu")(
    Dataset(
        "eICU demo, intensive care in four regions of the US: mortality in hospital from APACHE variables of day one",
        1979,
        "ODbL 1.0",
        _eicu,
        tuple(f"{FOLDER}/{table}.csv*" for table in TABLES),
    )
)
