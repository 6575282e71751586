"""Nodes that anonymize together: dates and bands by rule; codes by rule need a list, and are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.joint.axes import make_axes
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


def test_codes_are_refused() -> None:
    codes = {"cid": {"role": "quasi_identifying", "type": "icd10"}}
    with pytest.raises(ConfigError, match="these columns are rules: cid"):
        make_axes(Schema.from_dict({"attributes": codes}))
