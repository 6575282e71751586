"""Series of a person: pseudonyms, shifted dates, k people per series, and a key that stays where it is."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from datetime import datetime

import pandas as pd
import pytest

from fedanon.anonymizers import Mondrian
from fedanon.data.readers import read_table
from fedanon.data.schema import Schema
from fedanon.errors import ConfigError
from fedanon.io.release_file import write_release
from tests.cli.brazil import (
    classes_of_series,
    people_of_each_series,
    read_rows,
    rows_like_no_other_persons,
    schema_text,
    write_month,
)


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "internacoes.toml"
    path.write_text(schema_text(series=True), encoding="utf-8")
    return path


@pytest.fixture
def key(run, tmp_path):
    path = tmp_path / "person.key"
    assert run("keys", "new", path).code == 0
    return path


@pytest.mark.parametrize("method", ["mondrian", "k_member", "full_domain", "anneal"])
def test_k_people_share_every_series(run, schema, key, tmp_path, method):
    month, out = write_month(tmp_path / "m.csv", 1), tmp_path / "out.csv"
    more = ("--set", "iterations=20000") if method == "anneal" else ()
    made = run("anonymize", month, "--schema", schema, "--key", key, "--method", method, "--k", 5, "-o", out, *more)
    assert made.code == 0, made.err
    assert "row for row" in " ".join(made.out.split())
    shared = people_of_each_series(out)
    assert min(shared) >= 5
    checked = run("check", out, "--schema", schema, "--json").json  # the file alone shows who is one person
    assert checked["k_reached"] == min(shared)
    measured = checked["conclusion"]["measured"]
    assert measured["counted"] == "people"
    assert measured["unique_rows"] == rows_like_no_other_persons(out)
    assert checked["classes"] == classes_of_series(out)
    verified = run("verify", f"{out}.manifest.json", "--original", month, "--key", key, "--rebuild", "--json").json
    assert verified["verified"], verified


def test_a_row_that_breaks_a_series_is_found(run, schema, key, tmp_path):
    """The claim is of series: each row may look like many others while a series is nobody else's."""
    month, out = write_month(tmp_path / "m.csv", 1), tmp_path / "out.csv"
    assert run("anonymize", month, "--schema", schema, "--key", key, "--k", "5", "-o", out).code == 0
    frame = pd.read_csv(out, sep=";", encoding="latin-1", dtype=str)
    people = frame["prontuario"].unique()
    swapped = frame["prontuario"].replace({people[0]: people[1]})  # one person now has the rows of two
    frame.assign(prontuario=swapped).to_csv(out, sep=";", encoding="latin-1", index=False)
    out.with_name("out.csv.manifest.json").unlink()
    shared = people_of_each_series(out)
    assert min(shared) < 5
    assert run("check", out, "--schema", schema, "--k", "5").code == 4
    assert run("check", out, "--schema", schema, "--json").json["k_reached"] == min(shared)


def test_pseudonyms_join_months_and_dates_keep_their_distances(run, schema, key, tmp_path):
    published = []
    for month in (1, 2):
        path, out = write_month(tmp_path / f"m{month}.csv", month), tmp_path / f"out{month}.csv"
        assert run("anonymize", path, "--schema", schema, "--key", key, "--k", "5", "-o", out).code == 0
        published.append((read_rows(path), read_rows(out)))
    ids = [{row["prontuario"] for row in released if row["prontuario"]} for _, released in published]
    assert len(ids[0] & ids[1]) > 80, "the same people have the same pseudonyms"
    assert not {row["prontuario"] for row in published[0][0]} & ids[0]
    for true, released in published:
        assert sum(_gaps(released).values()) > 10
        assert _gaps(true) >= _gaps(released), "what lies between the dates of a person is what it was"
        assert {row["alta"] for row in released} - {row["alta"] for row in true}, "the dates are others"


def _gaps(rows):
    """The distances between the dates of each person with three rows, as often as they occur."""
    days = defaultdict(list)
    for row in rows:
        if row["prontuario"]:
            days[row["prontuario"]].append(_day(row["alta"]))
    return Counter(tuple(sorted((day - min(all_)).days for day in all_)) for all_ in days.values() if len(all_) == 3)


def _day(text):
    return datetime.strptime(text, "%d/%m/%Y").date()


def test_keys_that_are_missing_open_or_changed_are_refused(run, schema, key, tmp_path):
    month, out = write_month(tmp_path / "m.csv", 1), tmp_path / "out.csv"
    made = ("anonymize", month, "--schema", schema, "--k", "5", "-o", out)
    without = run(*made)
    assert (without.code, out.exists()) == (2, False)
    assert "give the key" in without.err
    assert "would not join" in run(*made, "--key", tmp_path / "no.key").err
    assert run("keys", "new", key).code == 2, "a key is never replaced"
    other = tmp_path / "other.key"
    mark = run("keys", "new", other, "--json").json["fingerprint"]
    schema.write_text(f'key_fingerprint = "{mark}"\n{schema_text(series=True)}', encoding="utf-8")
    changed = run(*made, "--key", key)
    assert (changed.code, out.exists()) == (2, False)
    assert "would not join" in changed.err
    assert run(*made, "--key", other).code == 0
    assert json.loads(out.with_name("out.csv.manifest.json").read_text())["key_fingerprint"] == mark
    assert "fingerprint" in run("verify", f"{out}.manifest.json", "--original", month, "--key", key).out
    assert "give the key" in run("check", out, "--schema", schema, "--original", month).err
    (tmp_path / "broken.key").write_text("fedanon-person-key-1 00")
    assert "no key of pseudonyms" in run(*made, "--key", tmp_path / "broken.key", "--force").err


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_key_is_its_owners_alone(run, schema, key, tmp_path):
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o640)
    month = write_month(tmp_path / "m.csv", 1)
    opened = run("anonymize", month, "--schema", schema, "--key", key, "--k", "5")
    assert opened.code == 2
    assert "chmod 600" in opened.err


def test_neither_key_nor_people_leave(run, schema, key, tmp_path):
    month, out = write_month(tmp_path / "m.csv", 1), tmp_path / "out.csv"
    made = run("anonymize", month, "--schema", schema, "--key", key, "--k", "5", "-o", out)
    secret = key.read_text().split()[1]
    people = {row["prontuario"] for row in read_rows(month)}
    for text in (made.out, out.read_text("latin-1"), out.with_name("out.csv.manifest.json").read_text()):
        assert secret not in text
        assert not [person for person in people if f"\n{person};" in text or f'"{person}"' in text]


def test_parquet_publishes_pseudonyms_too(run, schema, key, tmp_path):
    """Columns of a Parquet file that pass by would pass as they are."""
    month = write_month(tmp_path / "m.csv", 1)
    frame = pd.DataFrame(read_rows(month))
    source, out = tmp_path / "m.parquet", tmp_path / "out.parquet"
    frame.to_parquet(source)
    made = run("anonymize", source, "--schema", schema, "--key", key, "--k", "5", "-o", out)
    assert made.code == 0, made.err
    released = pd.read_parquet(out)
    assert not set(released["prontuario"].dropna()) & set(frame["prontuario"])
    assert run("check", out, "--schema", schema, "--json").json["k_reached"] >= 5


def test_python_cannot_write_without_the_key(schema, tmp_path):
    month = write_month(tmp_path / "m.csv", 1)
    table = read_table(month, Schema.read(schema))
    release = Mondrian(k=5).anonymize(table, rng=0)  # to train a model nothing is published
    assert "prontuario" not in release.to_frame()
    with pytest.raises(ConfigError, match="give the key"):
        write_release(release, table, tmp_path / "out.csv")
