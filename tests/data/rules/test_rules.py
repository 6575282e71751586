"""Every rule: any value of its domain encodes, generalizes to a cell that holds it, and reads back; seen or not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedanon.anonymizers.base import publish_smallest_cells
from fedanon.data.cells import as_written, cell_losses, cell_texts, parse_cells
from fedanon.data.groups import Groups
from fedanon.data.rules import DateRule, IcdRule
from fedanon.data.schema import Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.data.table import Table
from fedanon.errors import SchemaError
from fedanon.metrics.published import covers
from fedanon.models.encoding import Encoding
from fedanon.privacy.models.population import Population
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance, release_of
from tests.data.rules.columns import COLUMNS, schema_of

KINDS = st.sampled_from(sorted(COLUMNS))


@st.composite
def grouped_values(draw: st.DrawFn, *, parts: int = 1) -> tuple[str, list[list[str]], list[int]]:
    """A kind of column, some of its values for each part, and a group for each value of the first."""
    kind = draw(KINDS)
    values = [draw(st.lists(COLUMNS[kind][1], min_size=2, max_size=12)) for _ in range(parts)]
    groups = draw(st.lists(st.integers(0, 3), min_size=len(values[0]), max_size=len(values[0])))
    return kind, values, groups


def table_of(kind: str, values: list[str]) -> Table:
    return Table.from_frame(pd.DataFrame({"x": values}), schema_of(kind))


@settings(max_examples=60, deadline=None)
@given(grouped_values())
def test_cells_hold_their_values_and_read_back(case):
    kind, [values], groups = case
    table, partition = table_of(kind, values), Groups.from_labels(np.array(groups))
    [column] = table.columns
    cells = publish_smallest_cells(table, partition)["x"]
    assert covers(cells.select(partition.labels), column, table.codes[:, 0]).all()
    assert np.array_equal(as_written(cells, column.attribute).keys(), cells.keys())
    texts = cell_texts(cells, column.attribute)
    for attribute in (column.attribute, schema_of(kind)["x"]):  # beside the original, and by the schema alone
        again = parse_cells(texts, attribute)
        assert cell_texts(again, attribute).tolist() == texts.tolist()
        assert cell_losses(again, attribute) == pytest.approx(cell_losses(cells, column.attribute))
    low, high = partition.minimum(table.codes), partition.maximum(table.codes)
    assert column.loss(low[:, 0], high[:, 0]) == pytest.approx(cell_losses(cells, column.attribute))


@settings(max_examples=40, deadline=None)
@given(grouped_values(parts=2))
def test_two_files_of_one_schema_agree(case):
    """A cell costs the same, and has the same features, whatever else is in the file."""
    kind, [one, other], _ = case
    alone, together = table_of(kind, one), table_of(kind, [*one, *other])
    encoding = Encoding.from_schema(schema_of(kind))
    assert np.array_equal(encoding.encode_table(alone), encoding.encode_table(together)[: len(one)])
    whole = Groups.from_labels(np.zeros(len(one), dtype=int))
    some = Groups.from_labels(np.r_[np.zeros(len(one), dtype=int), np.full(len(other), -1)])
    first, second = publish_smallest_cells(alone, whole)["x"], publish_smallest_cells(together, some)["x"]
    attributes = alone.columns[0].attribute, together.columns[0].attribute
    assert cell_texts(first, attributes[0]).tolist() == cell_texts(second, attributes[1]).tolist()
    assert cell_losses(first, attributes[0]) == pytest.approx(cell_losses(second, attributes[1]))
    assert alone.schema.sha256 == together.schema.sha256 == schema_of(kind).sha256


@settings(max_examples=25, deadline=None)
@given(grouped_values())
def test_carried_columns_are_published_as_declared(case):
    """A sensitive column is as fine as its rule says, and reading what was published changes nothing more."""
    kind, [values], _ = case
    entry = COLUMNS[kind][0]
    schema = Schema.from_dict({"attributes": {"x": {"role": "sensitive", **entry}}})
    once = Table.from_frame(pd.DataFrame({"x": values}), schema).frame
    again = Table.from_frame(once, schema).frame
    assert once["x"].tolist() == again["x"].tolist()
    if kind not in ("day", "two formats", "unit", "postal", "area", "atc", "icd10", "icd9"):
        coded = table_of(kind, values)
        shown = cell_texts(coded.columns[0].own_cells, coded.columns[0].attribute)[coded.codes[:, 0]]
        assert once["x"].tolist() == shown.tolist()
    else:
        assert once["x"].tolist() == values


@pytest.mark.parametrize("kind", sorted(COLUMNS))
def test_schemas_are_written_and_read(kind, tmp_path):
    schema = schema_of(kind)
    path = tmp_path / "schema.toml"
    path.write_text(schema_toml(schema), encoding="utf-8")
    assert Schema.read(path) == schema
    assert Schema.read(path).sha256 == schema.sha256 == Schema.from_dict(schema.to_dict()).sha256
    known = schema.without_values()
    assert known == schema, "a rule holds no values of the table"


@pytest.mark.parametrize(
    ("kind", "values", "what"),
    [
        ("day", ["01/02/2024", "2024-02-01", "31/02/2024"], "has 2 values that are no dates in the format %d/%m/%Y"),
        ("day", ["01/02/2024", "01/02/1800"], "has 1 values outside the declared range"),
        ("age", ["1990-01-01", "2025-01-01"], "has 1 values that are no dates of birth until 2024-02-29"),
        ("unit", ["5 mg/dL", "7", "8 mmol/L", "1_0"], "has 2 values that are no numbers in mg/dL"),
        ("rounded", ["5", "121"], r"has 1 values outside the declared range \[0, 120\]"),
        ("postal", ["01310-100", "0131-100", "A1310-100"], r"has 2 values \(of 2 kinds\) that do not have the form"),
        ("icd10", ["E11.9", "diabetes", "11E"], r"has 2 values \(of 2 kinds\) that do not have the form of icd10"),
        ("icd9", ["250.83", "25083111"], r"has 1 values \(of 1 kinds\)"),
        ("atc", ["A10BA02", "A1"], r"has 1 values \(of 1 kinds\)"),
    ],
)
def test_what_does_not_fit_is_counted_and_not_shown(kind, values, what):
    with pytest.raises(SchemaError, match=what) as error:
        table_of(kind, values)
    assert not any(value in str(error.value) for value in values[1:])


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        ("day", ["01/01/2024", "31/01/2024"], "2024-01"),
        ("day", ["01/01/2024", "31/03/2024"], "2024-Q1"),
        ("day", ["01/01/2024", "31/12/2024"], "2024"),
        ("day", ["01/01/2010", "31/12/2019"], "2010s"),
        ("day", ["03/01/2024", "17/02/2024"], "[2024-01-03, 2024-02-17]"),
        ("day", ["29/02/2024", "29/02/2024"], "2024-02-29"),
        ("month", ["03/01/2024", "17/02/2024"], "[2024-01-01, 2024-02-29]"),
        ("month", ["20/03/1990", "21/03/1990"], "[1990-03-15, 1990-03-31]"),
        ("age", ["1934-02-28", "1934-03-01"], "89+"),
        ("age", ["1934-02-28", "1900-01-01"], "90+"),
        ("age", ["1990-03-01", "1984-02-29"], "[33, 40]"),
        ("cuts", ["17", "0"], "[0, 17]"),
        ("cuts", ["18", "64"], "[18, 64]"),
        ("cuts", ["70", "65"], "[65, 120]"),
        ("open", ["3", "-5"], "<18"),
        ("open", ["3", "21"], "<25"),
        ("open", ["99", "140"], "90+"),
        ("open", ["3", "140"], "*"),
        ("rounded", ["37", "37"], "35"),
        ("rounded", ["37.5", "118"], "[40, 120]"),
        ("postal", ["01310100", "01310-999"], "01310*"),
        ("postal", ["01310100", "01999-999"], "01*"),
        ("postal", ["01310100", "01310-100"], "01310-100"),
        ("postal to 2", ["01310100", "01310-999"], "01*"),
        ("area", ["115A", "(11) 77"], "(11*"),
        ("atc", ["A10BA02", "A10BA03"], "A10BA*"),
        ("atc", ["A10BA02", "a10b"], "A10B*"),
        ("icd10", ["E119", "E11.9"], "E11.9"),
        ("icd10", ["E119", "E11"], "E11.-"),
        ("icd10", ["E119", "E10.0"], "E10-E14"),
        ("icd10", ["E119", "E66"], "IV: E00-E99"),
        ("icd10", ["E119", "I10"], "*"),
        ("icd10", ["U07.1", "U09.9"], "U00-U49"),
        ("icd10", ["X90", "Y05.1"], "X85-Y09"),
        ("icd10", ["C4A.9", "C43.0"], "C43-C44"),
        ("block", ["E119", "E10.0"], "E10-E14"),
        ("icd9", ["250.83", "25001"], "250.-"),
        ("icd9", ["8", "001.1"], "001-009"),
        ("icd9", ["V57", "V58.11"], "V50-V59"),
        ("icd9", ["E880.1", "E8889"], "E880-E888"),
        ("icd9", ["250.83", "278.0"], "III: 240-279"),
    ],
)
def test_golden_cells(kind, values, texts):
    entry = dict(COLUMNS[kind][0])
    if kind == "rounded":
        entry["integer"] = False
    schema = Schema.from_dict({"attributes": {"x": {"role": "quasi_identifying", **entry}}})
    table = Table.from_frame(pd.DataFrame({"x": values}), schema)
    cells = publish_smallest_cells(table, Groups.from_labels(np.zeros(2, dtype=int)))["x"]
    assert cell_texts(cells, table.columns[0].attribute).tolist() == [texts]


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ({"type": "date", "format": "%d/%m"}, "'x': The date format '%d/%m' does not say year and month"),
        ({"type": "date"}, "'x': a date needs a range of two dates"),
        ({"type": "date", "range": ["2024-01-01", "2023-01-01"]}, "begins with the earlier"),
        ({"type": "date", "range": ["1.1.24", "2023-01-01"]}, "written as 2024-12-31"),
        ({"type": "date", "range": ["2024-01-01", "2024-02-01"], "level": "week"}, "must be one of: day, month"),
        ({"type": "date", "range": ["2024-01-01", "2024-02-01"], "top": 5}, "unknown keys: top"),
        (
            {"type": "date", "range": ["2024-01-01", "2024-02-01"], "format": "%m/%Y", "shift_days": 9},
            "does not say the day",
        ),
        ({"type": "date", "age_at": "2024-01-01", "level": "month"}, "unknown keys: level"),
        ({"type": "code", "form": "99999-999"}, "needs its prefixes"),
        ({"type": "code", "form": "99999-999", "prefixes": [5, 2]}, "must grow"),
        ({"type": "code", "form": "99999-999", "prefixes": [8]}, "between 1 and one less"),
        ({"type": "code", "form": "BR-9", "prefixes": [1]}, "made of 9, A, X"),
        ({"type": "code", "form": "999", "prefixes": [1], "level": 2}, "levels of the code are: code, 1"),
        ({"type": "icd10", "level": "kapitel"}, "levels of a diagnosis are"),
        ({"type": "numeric", "range": [0, 9], "bands": [3, 2]}, "must grow"),
        ({"type": "numeric", "range": [0, 9], "bands": "wide"}, "bands must be a width"),
        ({"type": "numeric", "range": [0, 9], "bands": 2, "round_to": 5}, "give one"),
        ({"type": "numeric", "range": [0, 9], "top": 2, "bottom": 3}, "bottom must lie below top"),
        ({"type": "numeric", "range": [0, 9], "top": 10}, "must lie in the range"),
        ({"type": "date", "age_at": "2024-01-01", "bottom": 0}, "must lie in the range"),
        ({"type": "numeric", "range": [0, 9], "top": "high"}, "top must be a number"),
        ({"type": "text", "pseudonym": 1}, "pseudonym must be true or false"),
    ],
)
def test_broken_rules(entry, match):
    with pytest.raises(SchemaError, match=match):
        Schema.from_dict({"attributes": {"x": {"role": "quasi_identifying", **entry}}})


def test_reading_takes_each_distinct_cell_once():
    seen = {"days": 0, "codes": 0}

    class Days(DateRule):
        def read(self, texts):
            texts = list(texts)
            seen["days"] += len(texts)
            return super().read(texts)

    class Codes(IcdRule):
        def path(self, text):
            seen["codes"] += 1
            return super().path(text)

    rows = 5_000
    frame = pd.DataFrame({"d": ["01/02/2024", "02/02/2024"] * rows, "c": ["E11.9", "I10"] * rows})
    schema = Schema.from_dict(
        {
            "attributes": {
                "d": {"role": "quasi_identifying", **COLUMNS["day"][0]},
                "c": {"role": "quasi_identifying", "type": "icd10"},
            }
        }
    )
    schema = schema.replacing(replace(schema["d"], rule=Days(("%d/%m/%Y",))), replace(schema["c"], rule=Codes("icd10")))
    seen["codes"] = 0
    Table.from_frame(frame, schema)
    assert seen == {"days": 2, "codes": 2}


def test_all_columns_that_do_not_fit_are_named_at_once():
    attributes = {
        "day": {"role": "quasi_identifying", **COLUMNS["day"][0]},
        "cep": {"role": "insensitive", **COLUMNS["postal"][0]},
        "cid": {"role": "sensitive", "type": "icd10"},
    }
    frame = pd.DataFrame({"day": ["01/02/2024", "x"], "cep": ["1", "2"], "cid": ["E11", "I10"]})
    with pytest.raises(SchemaError, match="in 2 columns") as error:
        Table.from_frame(frame, Schema.from_dict({"attributes": attributes}))
    assert "'day' has 1 values that are no dates" in str(error.value)
    assert "'cep' has 2 values (of 2 kinds) that do not have the form of code" in str(error.value)


def test_a_population_has_other_codes_than_the_release(tmp_path):
    """What a cell matches does not depend on which codes stand beside it in either file."""
    schema = schema_of("icd10")
    path = tmp_path / "population.csv"
    path.write_text("x\n" + "\n".join(["A00", "E10.1", "E11", "E14.9", "E66", "Z99"]) + "\n", encoding="utf-8")
    population = Population.read(path, schema)
    cells = parse_cells(["E10-E14", "E11.-", "IV: E00-E99", "*", "I10", "E14.9"], schema["x"])
    low, high = population.bounds({"x": cells})
    inside = (population.points >= low.T) & (population.points <= high.T)
    assert inside.sum(axis=0).tolist() == [3, 1, 4, 6, 0, 1]


@settings(max_examples=25, deadline=None)
@given(grouped_values(parts=2))
def test_new_rows_take_the_nearest_group(case):
    """A release is carried over to another file, whose codes it may not know: to each row as if it came alone."""
    kind, [one, other], groups = case
    table, more = table_of(kind, one), table_of(kind, [*one, *other])
    partition = Groups.from_labels(np.array(groups))
    made = Provenance("none", {}, 0, "", "", "")
    cells = publish_smallest_cells(table, partition)
    release = release_of(table, partition, cells, claim=None, provenance=made, recoding=NearestGroup())
    shown = release.recode(more).to_frame()["x"].tolist()
    assert shown[: len(one)] == release.recode(table).to_frame()["x"].tolist()
    assert set(shown) <= set(release.to_frame()["x"])
