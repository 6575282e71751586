"""One way to read a table, for every format and everyone who reads one."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest

from fedanon.data.readers import READERS, read_frame, read_table
from fedanon.data.schema import Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.errors import ConfigError
from fedanon.federated.sources import load_node_table
from fedanon.io.sql import read_query
from fedanon.learning.settings import RunSettings
from fedanon.privacy.models.population import Population

FRAME = pd.DataFrame(
    {"id": ["1", "2"], "age": [30, 31], "ward": ["onco", "ortho"], "diagnosis": ["a", "b"], "note": ["x", "y"]}
)


def test_a_table_is_the_same_in_every_format(schema: Schema, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "ward.csv", index=False)
    FRAME.to_parquet(tmp_path / "ward.parquet")
    text, typed = (read_table(tmp_path / f"ward.{ending}", schema) for ending in ("csv", "parquet"))
    assert text.codes.tolist() == typed.codes.tolist()
    assert len(read_frame(tmp_path / "ward.parquet")) == 2
    assert len(Population.read(tmp_path / "ward.parquet", schema)) == 2


def test_a_node_reads_parquet(schema: Schema, tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "ward.parquet")
    (tmp_path / "ward.toml").write_text(schema_toml(schema), encoding="utf-8")
    config = {"data": str(tmp_path / "ward.parquet"), "schema": str(tmp_path / "ward.toml"), "number": 3}
    table, number = load_node_table(cast("Any", SimpleNamespace(node_config=config)), RunSettings())
    assert (len(table), number) == (2, 3)


def test_another_format_is_one_registered_function(schema: Schema, tmp_path: Path) -> None:
    def read_json(path: Path, schema: Schema | None, encoding: str) -> pd.DataFrame:
        return pd.read_json(path, dtype=False)

    FRAME.to_json(tmp_path / "ward.json")
    with READERS.restored():
        READERS.register("json")(read_json)
        assert len(read_table(tmp_path / "ward.json", schema)) == 2


@pytest.mark.parametrize(
    ("library", "extra", "read"),
    [
        ("openpyxl", "excel", lambda folder: read_frame(folder / "x.xlsx")),
        ("sqlalchemy", "sql", lambda _folder: read_query("sqlite:///x.db", "SELECT 1")),
        ("fhirpathpy", "fhir", lambda folder: read_frame(folder / "x.ndjson", views=(str(folder / "v.json"),))),
    ],
)
def test_what_a_node_may_lack_is_named_where_it_is_needed(
    library: str, extra: str, read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w") as packed:
        packed.writestr("xl/workbook.xml", "")
    (tmp_path / "x.ndjson").write_text('{"resourceType": "Patient"}\n')
    select = [{"column": [{"name": "a", "path": "id"}]}]
    (tmp_path / "v.json").write_text(json.dumps({"resource": "Patient", "select": select}))
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=rf"pip install 'fedanon\[{extra}\]'"):
        read(tmp_path)
