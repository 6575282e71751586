"""Every method on a table whose columns are rules, rows alone and as series: cells are true, read back, and keep k."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import takes_k
from fedanon.data.cells import cell_texts, parse_cells
from fedanon.data.person_key import PersonKey
from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import build
from fedanon.metrics.information_loss import truthfulness
from tests.cli.brazil import schema_text, write_month

#: what a method needs beside its defaults, to be quick
GIVEN = {"anneal": {"iterations": 2_000}, "blocks": {"iterations": 2_000}}


@cache
def table_of(*, numeric: bool, series: bool) -> Table:
    """A month of 70 people; with ``numeric``, categories are carried along."""
    document = tomllib.loads(schema_text(series=series))
    for name in ("cep", "sexo") if numeric else ():
        document["attributes"][name]["role"] = "insensitive"
    schema = Schema.from_dict(document)
    with TemporaryDirectory() as folder:
        path = write_month(Path(folder) / "m.csv", 1, people=70)
        return read_table(path, schema.with_key(PersonKey(bytes(32))) if series else schema)


@pytest.mark.parametrize("series", [False, True], ids=["rows", "series"])
@pytest.mark.parametrize("name", sorted(set(ANONYMIZERS) - {"longitudinal_reverse_mapping"}))  # it needs panels
def test_methods_take_rules(name, series):
    component = ANONYMIZERS[name]
    method = build(component, {**({"k": 4} if takes_k(component) else {}), **GIVEN.get(name, {})})
    table = table_of(numeric=method.numeric_only, series=series)
    if name == "dp_microaggregation" and series:
        with pytest.raises(ConfigError, match="no pseudonyms"):
            method.anonymize(table, rng=0)
        return
    release = method.anonymize(table, rng=0)
    frame = release.to_frame()
    for attribute in table.schema.quasi_identifiers:
        shown = frame[attribute.name].tolist()
        # a suppressed row shows '*', which is written as the whole range
        again = cell_texts(parse_cells(shown, attribute), attribute).tolist()
        assert all(one in (other, "*") for one, other in zip(shown, again, strict=True))
    if method.truthful:
        assert truthfulness(table, release) == 1
    if release.claim is not None and series:
        assert release.has_pseudonyms
        names = [attribute.name for attribute in table.schema.quasi_identifiers]
        series_of = frame.dropna(subset="prontuario").groupby("prontuario")[names]
        alike = series_of.apply(lambda rows: tuple(sorted(rows.itertuples(index=False, name=None))))
        assert alike.value_counts().min() >= 4
