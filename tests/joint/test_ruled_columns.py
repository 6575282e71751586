"""Nodes that anonymize together: dates, bands and codes by rule, also codes that only one node has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.hierarchy import MISSING
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.joint import JOINT_METHODS
from fedanon.joint.axes import list_codes, make_axes
from tests.joint.test_claims import check_federation

ATTRIBUTES = {
    "day": {"role": "quasi_identifying", "type": "date", "range": ["2010-01-01", "2030-01-01"]},
    "age": {
        "role": "quasi_identifying",
        "type": "numeric",
        "range": [0, 110],
        "integer": True,
        "bands": 5,
        "top": 90,
    },
    "ill": {"role": "sensitive", "type": "text"},
}


def test_dates_and_bands() -> None:
    rng = np.random.default_rng(0)
    days = pd.to_datetime("2015-01-01") + pd.to_timedelta(rng.integers(0, 3600, 300), unit="D")
    columns = {"day": days.strftime("%Y-%m-%d"), "age": rng.integers(0, 130, 300).astype(str), "ill": ["x", "y"] * 150}
    frame, schema = pd.DataFrame(columns), Schema.from_dict({"attributes": ATTRIBUTES})
    tables = [Table.from_frame(frame.iloc[i::3].reset_index(drop=True), schema) for i in range(3)]
    assert check_federation(tables, {"counts": "plain"}, k=10, k_local=2, leaving=0)


CODES = {
    "cid": {"role": "quasi_identifying", "type": "icd10"},
    "cep": {"role": "quasi_identifying", "type": "code", "form": "99999-999", "prefixes": [1, 2, 5]},
    "drug": {"role": "quasi_identifying", "type": "atc"},
    "ill": {"role": "sensitive", "type": "text"},
}


def node_with_codes(seed: int, rows: int = 120) -> Table:
    """Codes that other nodes mostly do not have; some end early, some are national, some are missing."""
    rng = np.random.default_rng(seed)
    cids, drugs = ["E11.9", "E119", "I10", "C4A.0", "J18", f"Q2{seed}.1"], ["A10BA02", "A10", "C", f"N0{seed + 1}AB"]
    columns = {
        "cid": rng.choice(cids, rows),
        "cep": [f"{town}{rest}-{seed}00" for town, rest in rng.integers([10, 100], [60, 999], (rows, 2)).tolist()],
        "drug": np.where(rng.random(rows) < 0.1 * seed, "?", rng.choice(drugs, rows)),
        "ill": rng.choice(["x", "y"], rows),
    }
    return Table.from_frame(
        pd.DataFrame(columns), Schema.from_dict({"missing_values": ["?"], "attributes": CODES}), missing="category"
    )


@pytest.mark.parametrize("method", [*JOINT_METHODS])
@pytest.mark.parametrize("counts", ["plain", "secure"])
def test_codes_that_only_one_node_has(method: str, counts: str) -> None:
    tables = [node_with_codes(seed) for seed in range(3)]
    assert check_federation(tables, {"method": method, "counts": counts}, k=10, k_local=2, leaving=0)


def test_all_nodes_have_the_same_bins_and_every_code_lies_in_its_own() -> None:
    """The bin of a code holds it by the rule itself, and rows of another month have their bin too."""
    tables = [list_codes(node_with_codes(seed)) for seed in range(3)]
    axes = [[axis.to_array().tolist() for axis in make_axes(table.schema)] for table in tables]
    assert axes[0] == axes[1] == axes[2]
    for table in tables:
        assert list_codes(table) is table
        for i, column in enumerate(table.columns):
            labels = [column.hierarchy.labels[code] for code in table.codes[:, i]]
            for cell, label in zip(table.frame[column.name], labels, strict=True):
                assert label == MISSING if cell == "?" else label in column.attribute.rule.path(cell)
