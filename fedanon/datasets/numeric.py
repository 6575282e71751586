"""Small numeric tables of the microaggregation literature and of the thesis; the ranges are the data's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fedanon.data.hierarchy import Hierarchy
from fedanon.data.infer import numeric_schema
from fedanon.data.readers import read_frame
from fedanon.data.schema import Categorical, FreeText, Role
from fedanon.data.table import Table
from fedanon.datasets import DATASETS, Dataset
from fedanon.datasets.files import need

EIA_COLUMNS = (
    "UTILITYID",
    *("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "INDSALES"),
    *("OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
)


def _all_columns(name: str, file: str, columns: tuple[str, ...] = ()) -> Callable[[], Table]:
    """A reader of a table whose columns, or those named, are all quasi-identifying."""

    def read() -> Table:
        frame = read_frame(need(file, dataset=name))
        kept = frame[list(columns)] if columns else frame
        return Table.from_frame(kept, numeric_schema(kept, "all", name=name))

    return read


def _wef() -> Table:
    frame = read_frame(need("wef.csv", dataset="wef"))
    schema = numeric_schema(frame, ["Age", "Height(cm)", "Weight(kg)"], name="wef")
    schema = schema.replacing(
        FreeText("ID", Role.IDENTIFYING),
        Categorical("Gender", Role.INSENSITIVE, Hierarchy.flat(["F", "M"])),
    )
    return Table.from_frame(frame, replace(schema, title="Wearable exercise frailty", one_row_per_person=True))


_LICENSE = "not redistributed here"
_TARRAGONA, _CENSUS, _EIA = (f"microaggregation/{name}.csv" for name in ("tarragona", "census", "eia"))

for _name, _dataset in {
    "tarragona": Dataset(
        "834 companies of Tarragona, 1995", 834, _LICENSE, _all_columns("tarragona", _TARRAGONA), (_TARRAGONA,)
    ),
    "census": Dataset("US census of 1995, 13 amounts", 1080, _LICENSE, _all_columns("census", _CENSUS), (_CENSUS,)),
    "eia": Dataset(
        "US energy authority 1996, utility and ten amounts",
        4092,
        _LICENSE,
        _all_columns("eia", _EIA, EIA_COLUMNS),
        (_EIA,),
    ),
    "wef": Dataset("Wearable exercise frailty: age, height and weight of 80 people", 80, _LICENSE, _wef, ("wef.csv",)),
}.items():
    DATASETS.register(_name)(_dataset)
