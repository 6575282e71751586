"""Whether people or records are counted, from the schema to every sentence; and columns nobody has decided about."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from fedanon import Schema, read_table
from fedanon.anonymizers import Mondrian
from fedanon.errors import SchemaError
from tests.cli.conftest import Run

COLUMNS = """
[attributes.id]
role = "identifying"
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
[attributes.sex]
role = "quasi_identifying"
type = "categorical"
values = ["0", "1"]
[attributes.status]
role = "sensitive"
type = "numeric"
range = [0, 1]
"""


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """300 people with two rows each, as in a trial that records two events of every patient."""
    rng = np.random.default_rng(1)
    people = [(person, int(rng.integers(20, 85)), int(rng.integers(2))) for person in range(300)]
    rows = [f"{person},{age},{sex},{status}\n" for person, age, sex in people for status in (0, 1)]
    path = tmp_path / "trial.csv"
    path.write_text("id,age,sex,status\n" + "".join(rows))
    return path


def schema(folder: Path, said: str, columns: str = COLUMNS) -> Path:
    path = folder / "schema.toml"
    path.write_text(f'name = "trial"\n{said}\n{columns}')
    return path


def test_a_repeating_identifier_stops_until_the_schema_says_whose_rows_these_are(
    run: Run, trial: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    stopped = run("anonymize", trial, "--schema", schema(tmp_path, ""), "--k", "5", "-o", out)
    assert stopped.code == 3
    assert "The identifying column 'id' repeats: 300 values on 600 rows." in stopped.err
    assert 'person_id = "id"' in stopped.err
    assert "one_row_per_person = " in stopped.err
    assert not out.exists()


def test_records_are_called_records(run: Run, trial: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    said = schema(tmp_path, "one_row_per_person = false")
    done = run("anonymize", trial, "--schema", said, "--k", "5", "-o", out)
    assert done.code == 0, done.err
    assert "shared by at least 5 records (5-anonymity)" in done.out
    assert "5 people" not in done.out
    manifest = json.loads(Path(f"{out}.manifest.json").read_text())
    assert (manifest["counted"], manifest["claim_text"]) == (
        "records",
        "every published record is shared by at least 5 records (5-anonymity)",
    )
    found = run("anonymize", trial, "--schema", said, "--k", "5", "--json").json
    assert (found["counted"], found["people"], found["n"]) == ("records", None, 600)


def test_people_are_counted_where_they_are_known(run: Run, trial: Path, tmp_path: Path) -> None:
    said = schema(tmp_path, 'person_id = "id"')
    done = run("anonymize", trial, "--schema", said, "--k", "5")
    assert done.code == 0, done.err
    assert "shared by at least 5 people (5-anonymity)" in done.out
    published = Mondrian(k=5).anonymize(read_table(trial, Schema.read(said)), rng=0).to_frame()
    people = defaultdict(set)
    for line, (_, row) in zip(trial.read_text().splitlines()[1:], published.iterrows(), strict=True):
        people[row["age"], row["sex"]].add(line.split(",")[0])
    assert min(map(len, people.values())) >= 5


def test_a_column_without_a_role_is_undecided_and_stops_everything(run: Run, trial: Path, tmp_path: Path) -> None:
    for columns in (
        COLUMNS.replace('role = "sensitive"\n', ""),
        COLUMNS.replace('role = "sensitive"', 'role = "undecided"'),
    ):
        said = schema(tmp_path, 'person_id = "id"', columns)
        out = tmp_path / "out.csv"
        stopped = run("anonymize", trial, "--schema", said, "--k", "5", "-o", out)
        assert (stopped.code, out.exists()) == (3, False)
        assert "The role of 1 columns is undecided, so nothing is published: status." in stopped.err
        # it can still be looked at
        assert "status" not in read_table(trial, Schema.read(said)).frame


@pytest.mark.parametrize("role", ["sensitive", "insensitive", "identifying"])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ('type = "numeric"\nrange = [0, 0]', "300 values outside the declared range [0, 0]"),
        ('type = "categorical"\nvalues = ["0"]', "300 values (of 1 kinds) that its taxonomy does not list"),
    ],
)
def test_every_declared_column_is_checked(trial: Path, tmp_path: Path, role: str, kind: str, said: str) -> None:
    columns = COLUMNS.replace('role = "sensitive"\ntype = "numeric"\nrange = [0, 1]', f'role = "{role}"\n{kind}')
    declared = Schema.read(schema(tmp_path, 'person_id = "id"', columns))
    with pytest.raises(SchemaError) as caught:
        read_table(trial, declared)
    assert f"The column 'status' has {said}. Correct them, declare them" in str(caught.value)


def test_either_people_or_rows(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="person_id and one_row_per_person; give one"):
        Schema.read(schema(tmp_path, 'person_id = "id"\none_row_per_person = true'))
    with pytest.raises(SchemaError, match="one_row_per_person must be true or false"):
        Schema.read(schema(tmp_path, 'one_row_per_person = "yes"'))
