"""A release goes to disk and comes back; its claim is checked before anything is written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from fedanon.data.cells import Intervals, Nodes
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Categorical, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, DataError, PrivacyViolationError, SchemaError
from fedanon.io import release_file
from fedanon.io.release_file import NO_CLAIM, FileForm, manifest_path, read_release
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Provenance, Release, release_of

CANARY = "CANARY-93417"
SOURCE = Provenance("by hand", {"k": 2}, 7, "0", "d", "s")

#: rows in the order of the table; the random order has tests of its own, test_row_order.py
write_release = partial(release_file.write_release, form=FileForm(keep_order=True))


@dataclass(frozen=True)
class Pairs:
    """A claim of two rows a class."""

    def check(self, release: Release, table: Table) -> None:
        if release.classes.sizes.min() < 2:
            raise PrivacyViolationError("A class is too small.")

    def to_dict(self):
        return {"model": "pairs"}

    def describe(self, unit):
        return "two by two"


@pytest.fixture
def table(schema) -> Table:
    frame = pd.DataFrame(
        {
            "id": ["1", "2", "3", "4", "5"],
            "age": ["20", "24", "50", "50", "99"],
            "ward": ["onco", "general", "ortho", "ortho", "onco"],
            "diagnosis": ["a", "b", "a", "a", "b"],
            "note": ["=1+1", "-5", "plain, text", np.nan, "@x"],
        }
    )
    return Table.from_frame(frame, schema)


@pytest.fixture
def release(table) -> Release:
    tree = table.columns[1].hierarchy
    nodes = np.array([tree.nodes["Medicine"], tree.nodes["ortho"]], dtype=np.int32)
    cells = {"age": Intervals(np.array([20.0, 50.0]), np.array([24.0, 50.0])), "ward": Nodes(nodes, tree)}
    groups = Groups.from_labels(np.array([0, 0, 1, 1, -1]))
    return release_of(table, groups, cells, claim=Pairs(), provenance=SOURCE, recoding=NearestGroup())


def test_the_table_is_written_with_guarded_formulas_and_hidden_rows(release, table, tmp_path):
    path = write_release(release, table, tmp_path / "out.csv")
    assert path.read_text() == (
        "age,ward,diagnosis,note\n"
        '"[20, 24]",Medicine,a,\'=1+1\n'
        '"[20, 24]",Medicine,b,-5\n'
        '50,ortho,a,"plain, text"\n'
        "50,ortho,a,\n"
        "*,*,,\n"
    )


def test_the_manifest_says_what_was_done(release, table, tmp_path):
    path = write_release(release, table, tmp_path / "out.csv")
    text = manifest_path(path).read_text()
    document = json.loads(text)
    assert text == json.dumps(document, indent=2, sort_keys=True) + "\n"
    assert document["csv_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert document["provenance"]["seed"] == 7
    assert (document["rows"], document["suppressed"], document["classes"], document["smallest_class"]) == (5, 1, 2, 2)
    assert document["claim"] == {"model": "pairs"}
    assert document["columns"][0] == {"name": "id", "role": "identifying", "type": "text"}
    assert document["schema_sha256"] == table.schema.sha256
    assert document["missing"] == "error"


def test_same_release_same_bytes(release, table, tmp_path):
    one, two = (write_release(release, table, tmp_path / name) for name in ("one.csv", "two.csv"))
    assert one.read_bytes() == two.read_bytes()
    assert manifest_path(one).read_bytes() == manifest_path(two).read_bytes()


def test_a_file_that_exists_is_replaced_only_if_told(release, table, tmp_path):
    path = write_release(release, table, tmp_path / "out.csv")
    before = path.read_bytes()
    path.unlink()
    for kept in (manifest_path(path), path):
        with pytest.raises(ConfigError, match="exists; overwrite=True"):
            write_release(release, table, path)
        path.write_bytes(b"older")
        manifest_path(path).unlink(missing_ok=True)
        assert kept == manifest_path(path) or path.read_bytes() == b"older"
    assert write_release(release, table, path, overwrite=True).read_bytes() == before


def test_no_claim_is_said_plainly(release, table, tmp_path):
    path = write_release(replace(release, claim=None), table, tmp_path / "out.csv")
    document = json.loads(manifest_path(path).read_text())
    assert document["claim"] is None
    assert document["claim_text"] == NO_CLAIM


def test_a_broken_claim_writes_nothing(release, table, tmp_path):
    broken = replace(release, groups=Groups.from_labels(np.array([0, 0, 1, -1, -1])))
    with pytest.raises(PrivacyViolationError):
        write_release(broken, table, tmp_path / "out.csv")
    with pytest.raises(PrivacyViolationError, match="5 rows, its table 2"):
        write_release(release, table.select_rows([0, 1]), tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_stale_manifest_never_stands_beside_a_new_table(release, table, tmp_path, monkeypatch):
    import fedanon.io.release_file as module

    path = write_release(release, table, tmp_path / "out.csv")

    def fail(path, data):
        raise DataError("disk full")

    monkeypatch.setattr(module, "atomic_write", fail)
    with pytest.raises(DataError):
        write_release(release, table, path, overwrite=True)
    assert not manifest_path(path).exists()


def test_people_are_counted_where_rows_have_persons(release, table, tmp_path):
    two_rows_each = replace(table, persons=np.array([0, 0, 1, 2, 3], dtype=np.int32))
    counted = replace(release, persons=two_rows_each.persons)
    path = write_release(counted, two_rows_each, tmp_path / "out.csv")
    assert json.loads(manifest_path(path).read_text())["smallest_class"] == 1


def test_read_back(release, table, schema, tmp_path):
    path = write_release(release, table, tmp_path / "out.csv")
    read = read_release(path, schema)
    assert tuple(read.cells) == ("age", "ward")
    assert read.suppressed.tolist() == [False, False, False, False, True]
    assert read.classes.sizes.tolist() == [2, 2]
    assert read.classes.labels[0] == read.classes.labels[1] != read.classes.labels[2] == read.classes.labels[3]
    assert read.classes.labels[4] == -1
    assert read.frame["note"].fillna("").tolist() == ["=1+1", "-5", "plain, text", "", ""]


def test_awkward_cells_come_back(tmp_path):
    labels = ["=a", "'=a", "''-1", "-1", "+x", "\tx", "\rx", "a\nb", 'say "x"', "@", "é", " "]
    schema = Schema((Categorical("=col", Role.QUASI_IDENTIFYING, Hierarchy.flat(labels)),))
    table = Table.from_frame(pd.DataFrame({"=col": labels}), schema)
    cells = {"=col": Nodes(np.arange(len(labels), dtype=np.int32), table.columns[0].hierarchy)}
    groups = Groups.from_labels(np.arange(len(labels)))
    release = release_of(table, groups, cells, claim=None, provenance=SOURCE, recoding=NearestGroup())
    path = write_release(release, table, tmp_path / "out.csv")
    assert read_release(path, schema).frame["=col"].tolist() == labels
    assert not any(line.strip('"').startswith(("=", "+", "@")) for line in path.read_text().split("\n"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (f"id,age,ward,diagnosis,note\n{CANARY},1,onco,a,\n", "identifying columns"),
        (f"age,ward,diagnosis\n1,{CANARY},a\n", "lacks 1 columns"),
        (f"age,ward,diagnosis,note,{CANARY}\n1,onco,a,,x\n", "1 columns that the schema does not declare"),
        (f"age,ward,diagnosis,note\n,onco,a,{CANARY}\n", "'age' of the release has 1 empty cells"),
    ],
)
def test_files_that_are_no_release(schema, tmp_path, text, match):
    path = tmp_path / "in.csv"
    path.write_text(text)
    with pytest.raises((SchemaError, DataError), match=match) as caught:
        read_release(path, schema)
    assert CANARY not in str(caught.value)


def test_whole_numbers_stay_whole_beside_hidden_rows(release, table):
    frame = replace(release, passthrough=release.passthrough.assign(note=np.arange(5))).to_frame()
    assert frame["note"].astype("string").fillna("").tolist() == ["0", "1", "2", "3", ""]
    assert frame.columns.tolist() == ["age", "ward", "diagnosis", "note"]
