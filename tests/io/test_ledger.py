"""The ledger of a series: whatever moment a run is cut off at, no release is published that it does not know."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from fedanon.anonymizers import Mondrian
from fedanon.anonymizers.series import SeriesStep, release_next, start_history
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import DataError
from fedanon.io.ledger import SeriesLedger, ledger_path, pending_path, settle_pending
from fedanon.io.manifest import Manifest
from fedanon.io.outputs import manifest_path
from fedanon.io.release_file import FileForm, write_release

SCHEMA = Schema.from_dict(
    {
        "person_id": "who",
        "attributes": {
            "who": {"role": "identifying", "type": "text"},
            "age": {"role": "quasi_identifying", "type": "numeric", "range": [0, 99], "integer": True},
            "cost": {"role": "sensitive", "type": "numeric", "range": [0, 9], "integer": True},
        },
    }
)
FRAME = pd.DataFrame({"who": [f"p{i:02d}" for i in range(20)], "age": range(20), "cost": [i % 4 for i in range(20)]})
METHOD = Mondrian(k=4, require="l=2:cost")


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    return tmp_path / "ward.toml"


def prepare(ledger: SeriesLedger, frame: pd.DataFrame) -> SeriesStep:
    table = Table.from_frame(frame, SCHEMA)
    history = ledger.history or start_history(METHOD, SCHEMA)
    return release_next(METHOD, table, ledger.pseudonyms(frame["who"], table), history, rng=0)


def write(ledger: SeriesLedger, step: SeriesStep, path: Path) -> None:
    write_release(step.release, step.table, path, form=FileForm(announce=ledger.announce(step.release, path)))


def test_what_is_written_is_read_back(schema: Path) -> None:
    ledger = SeriesLedger.start(schema, SCHEMA.sha256)
    step = prepare(ledger, FRAME)
    write(ledger, step, schema.with_name("r1.csv"))
    settle_pending(ledger.path)
    again = SeriesLedger.read(schema, SCHEMA.sha256)
    assert again.history == step.history
    again.check_previous([Manifest.read(manifest_path(schema.with_name("r1.csv")))])
    second = prepare(again, FRAME[1:])
    write(again, second, schema.with_name("r2.csv"))
    assert SeriesLedger.read(schema, SCHEMA.sha256).history == second.history
    assert second.table.frame["cost"].dtype == FRAME["cost"].dtype


def test_cut_off_before_the_release_was_written_nothing_has_happened(schema: Path) -> None:
    ledger = SeriesLedger.start(schema, SCHEMA.sha256)

    def cut_off(text: str) -> None:
        ledger.announce(step.release, path)(text)
        raise KeyboardInterrupt

    step, path = prepare(ledger, FRAME), schema.with_name("r1.csv")
    with pytest.raises(KeyboardInterrupt):
        write_release(step.release, step.table, path, form=FileForm(announce=cut_off))
    assert pending_path(ledger.path).exists()
    assert not path.exists()
    assert SeriesLedger.start(schema, SCHEMA.sha256).key == ledger.key
    assert not pending_path(ledger.path).exists()
    assert not ledger_path(schema).exists()


@pytest.mark.parametrize("with_manifest", [True, False])
def test_cut_off_after_the_release_was_written_the_ledger_knows_it(schema: Path, with_manifest: bool) -> None:
    ledger, path = SeriesLedger.start(schema, SCHEMA.sha256), schema.with_name("r1.csv")
    step = prepare(ledger, FRAME)
    write(ledger, step, path)
    text = manifest_path(path).read_text()
    if not with_manifest:
        manifest_path(path).unlink()
    assert not ledger_path(schema).exists()
    assert SeriesLedger.read(schema, SCHEMA.sha256).history == step.history
    assert manifest_path(path).read_text() == text


def test_numbers_are_equal_however_they_are_written(schema: Path) -> None:
    ledger = SeriesLedger.start(schema, SCHEMA.sha256)
    step = prepare(ledger, FRAME)
    text = FRAME.astype({"cost": str})
    text["cost"] = text["cost"] + ".0"
    table = Table.from_frame(text, SCHEMA)
    again = release_next(METHOD, table, ledger.pseudonyms(text["who"], table), step.history, rng=0)
    assert again.claim.facts["held_back"] == {}


def test_people_are_those_of_the_table(schema: Path) -> None:
    ledger = SeriesLedger.start(schema, SCHEMA.sha256)
    table = Table.from_frame(FRAME, SCHEMA)
    with pytest.raises(DataError, match="not those of its person_id"):
        ledger.pseudonyms(FRAME["who"].sample(frac=1, random_state=0), table)
    other = replace(ledger, key=b"another key of a good length....")
    assert not set(ledger.pseudonyms(FRAME["who"], table)) & set(other.pseudonyms(FRAME["who"], table))
