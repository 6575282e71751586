"""Samples of populations, with weights and households: the public table of the disclosure control literature."""

from __future__ import annotations

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.readers import read_frame
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import need

FILE = "eusilc/eusilcS.csv"
KEYS = ("pl030", "pb220a", "hsize", "age")
REGIONS = (
    *("Burgenland", "Carinthia", "Lower Austria", "Salzburg", "Styria", "Tyrol", "Upper Austria", "Vienna"),
    "Vorarlberg",
)
AMOUNTS = ("py010n", "py050n", "py090n", "py100n", "py110n", "py120n", "py130n", "py140n")


def eusilc_schema() -> Schema:
    """Keys, weight and household as in section 6.3 of Morais 2022, by what it prints: pl030 is a key, db040 is not."""
    quasi, other = Role.QUASI_IDENTIFYING, Role.INSENSITIVE
    attributes: list[Attribute] = [
        FreeText("db030", Role.IDENTIFYING),
        Numeric("hsize", quasi, 1, 20, integer=True),
        Categorical("db040", other, Hierarchy.flat(list(REGIONS))),
        Numeric("age", quasi, -1, 110, integer=True),
        Categorical("rb090", Role.SENSITIVE, Hierarchy.flat(["male", "female"])),
        Categorical("pl030", quasi, Hierarchy.flat([str(status) for status in range(1, 8)])),
        Categorical("pb220a", quasi, Hierarchy.flat(["AT", "EU", "Other"])),
        Numeric("netIncome", Role.SENSITIVE, -1e6, 1e6),
        *(Numeric(name, other, -1e6, 1e6) for name in AMOUNTS),
        Numeric("db090", other, 0, 1000),
        Numeric("rb050", other, 0, 1000),
    ]
    return Schema(
        tuple(attributes),
        name="eusilc",
        title="EU-SILC, synthetic sample",
        weight="rb050",
        household="db030",
        one_row_per_person=True,
        missing_values=("NA",),
    )


def _read() -> Table:
    return Table.from_frame(read_frame(need(FILE, dataset="eusilc")), eusilc_schema(), missing="category")


DATASETS.register("eusilc")(
    Dataset(
        "Synthetic sample of EU-SILC (Austria 2006), with weights and households",
        11725,
        "GPL (R package simPop); not redistributed here",
        _read,
        (FILE,),
    )
)
