"""Tables: what does not fit the schema is refused with a count, never with a value."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from fedanon.data.hierarchy import MISSING, Hierarchy
from fedanon.data.infer import interval_hierarchy
from fedanon.data.schema import Categorical, FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError, FedanonError, SchemaError

CANARY = "CANARY-93417"
QI = Role.QUASI_IDENTIFYING


def of(attribute, values, **options):
    return Table.from_frame(pd.DataFrame({attribute.name: values}), Schema((attribute,)), **options)


def refused(match, attribute, values, **options):
    with pytest.raises(FedanonError, match=match) as caught:
        of(attribute, values, **options)
    assert CANARY not in str(caught.value)
    assert "93417" not in str(caught.value)


AGE = Numeric("age", QI, 0, 110, True)
WARD = Categorical("ward", QI, Hierarchy.flat(["a", "b"]))


def test_numbers_that_do_not_fit():
    refused("2 values that are not numbers", AGE, ["1", CANARY, "x"])
    refused("1 values that are not numbers", AGE, [1, CANARY])  # mixed types
    refused("1 values that are not numbers", AGE, ["1", "nan"])
    refused("1 values that are infinite", AGE, ["1", "inf"])
    refused("1 values that are infinite", AGE, [1.0, -np.inf])
    refused("1 values outside", AGE, [1, 93417])
    refused("1 values that are not whole", AGE, [1, 1.5])
    refused("1 missing values", AGE, [1, np.nan])


def test_categories_that_do_not_fit():
    refused("2 values \\(of 1 kinds\\) that its taxonomy does not list", WARD, ["a", CANARY, CANARY])
    refused("1 missing values", WARD, ["a", None])


def test_mixed_types_are_taken_as_text():
    ward = Categorical("ward", QI, Hierarchy.flat(["1", "2", "x"]))
    assert of(ward, [1, "2", "x"]).codes[:, 0].tolist() == [0, 1, 2]
    assert of(ward, [1.0, 2.0, 1.0]).codes[:, 0].tolist() == [0, 1, 0]


def test_missing_policies():
    table = of(WARD, ["a", None, "b"], missing="category")
    assert table.columns[0].hierarchy.labels[2] == MISSING
    assert table.codes[:, 0].tolist() == [0, 2, 1]
    table = of(AGE, ["7", None, "5"], missing="wildcard")
    assert table.codes[:, 0].tolist() == [1, 2, 0]
    assert table.columns[0].has_missing
    with pytest.raises(ConfigError, match="'missing' parameter"):
        of(WARD, ["a"], missing="drop")


def test_tokens_mean_missing():
    schema = Schema((WARD,), missing_values=("?",))
    table = Table.from_frame(pd.DataFrame({"ward": ["a", "?"]}), schema, missing="category")
    assert table.columns[0].has_missing


def test_constant_column_has_no_width_to_divide_by():
    constant = Numeric("age", QI, 5, 5)
    table = of(constant, [5, 5])
    zero = np.zeros(2, dtype=int)
    assert table.columns[0].loss(zero, zero).tolist() == [0, 0]
    assert table.distinct.count == 1


def test_a_hundred_thousand_categories():
    values = [str(i) for i in range(100_000)]
    table = of(Categorical("code", QI, Hierarchy.flat(values)), values[::-1])  # minutes, if it compared all pairs
    assert table.codes[0, 0] == 99_999


def test_columns_have_to_be_declared_and_present(schema):
    row = {"id": ["1"], "age": ["1"], "ward": ["onco"], "diagnosis": ["a"], "note": ["n"]}
    with pytest.raises(FedanonError, match="lack 1 declared columns: age"):
        Table.from_frame(pd.DataFrame({k: v for k, v in row.items() if k != "age"}), schema)
    with pytest.raises(FedanonError, match="1 columns that the schema does not declare: extra"):
        Table.from_frame(pd.DataFrame({**row, "extra": ["x"]}), schema)
    twice = pd.DataFrame([["1", "1", "onco", "a", "n", "n"]], columns=[*row, "note"])
    with pytest.raises(FedanonError, match="same name: note"):
        Table.from_frame(twice, schema)
    with pytest.raises(DataError, match="no rows"):
        Table.from_frame(pd.DataFrame(row).iloc[:0], schema)


def test_thousands_of_columns_take_no_quadratic_time():
    def cost(count: int) -> float:
        names = [f"c{i}" for i in range(count)]
        schema = Schema(tuple(FreeText(name, Role.INSENSITIVE) for name in names))
        frame = pd.DataFrame([["x"] * count], columns=names)
        start = time.process_time()
        Table.from_frame(frame, schema)
        return time.process_time() - start

    # four times the columns: four times the work, sixteen times if it were quadratic
    assert min(cost(8_000) for _ in range(2)) < 9 * max(cost(2_000) for _ in range(2))


def test_duplicate_ids_are_one_person():
    schema = Schema((FreeText("pid", Role.IDENTIFYING), AGE), person_id="pid")
    table = Table.from_frame(pd.DataFrame({"pid": ["x", "y", "x"], "age": [1, 2, 3]}), schema)
    assert table.persons.tolist() == [0, 1, 0]
    assert table.n_units == 2
    assert "pid" not in table.frame
    with pytest.raises(FedanonError, match="'pid' has 1 missing"):
        Table.from_frame(pd.DataFrame({"pid": ["x", None], "age": [1, 2]}), schema)


def test_one_row_per_person_is_not_believed_where_a_persons_number_repeats():
    frame = pd.DataFrame({"nr_prontuario": [CANARY, "y", CANARY], "ward_id": ["a", "a", "b"], "age": [1, 2, 3]})
    columns = (FreeText("nr_prontuario", Role.IDENTIFYING), FreeText("ward_id", Role.IDENTIFYING), AGE)
    with pytest.raises(SchemaError, match=r"'nr_prontuario' is a person's number .* repeats: 2 values on 3") as caught:
        Table.from_frame(frame, Schema(columns, one_row_per_person=True))
    assert CANARY not in str(caught.value)
    assert 'person_id = "nr_prontuario"' in str(caught.value)
    assert len(Table.from_frame(frame, Schema(columns, one_row_per_person=False))) == 3
    alone = frame.assign(nr_prontuario=["x", "y", "z"])
    assert len(Table.from_frame(alone, Schema(columns, one_row_per_person=True))) == 3, "a ward may repeat"


def test_a_person_id_that_counts_people_twice_is_refused():
    columns = (FreeText("encounter_id", Role.IDENTIFYING), FreeText("patient", Role.IDENTIFYING), AGE)
    schema = Schema(columns, person_id="encounter_id")
    frame = pd.DataFrame({"encounter_id": list("abcd"), "patient": [CANARY, CANARY, "y", "z"], "age": [1, 2, 3, 4]})
    with pytest.raises(SchemaError, match=r"'encounter_id' has 4 values where 'patient', .* has 3") as caught:
        Table.from_frame(frame, schema)
    assert CANARY not in str(caught.value)
    assert Table.from_frame(frame, Schema(columns, person_id="patient")).n_units == 3
    sparse = frame.assign(patient=[None, None, None, "z"])
    assert Table.from_frame(sparse, schema).n_units == 4, "most of the other is missing"


def test_one_row_and_some_rows():
    table = of(AGE, ["40", "10", "30", "10"])
    some = table.select_rows([3, 0])
    assert some.columns[0].values.tolist() == [10, 40]
    assert some.codes[:, 0].tolist() == [0, 1]
    assert len(table.select_rows([2])) == 1


def test_the_hash_sees_rows_and_schema():
    table = of(AGE, ["40", "10"])
    assert table.sha256 == of(AGE, ["40", "10"]).sha256
    assert table.sha256 != of(AGE, ["10", "40"]).sha256
    assert table.sha256 != of(Numeric("age", QI, 0, 111, True), ["40", "10"]).sha256


def test_numeric_columns_with_a_tree_can_be_taken_as_categorical():
    table = of(Numeric("age", QI, 0, 99, True, interval_hierarchy(0, 99)), [1, 7])
    assert table.with_taxonomies().columns[0].hierarchy.n_leaves == 100
    assert of(AGE, [1]).with_taxonomies().columns[0].values is not None
