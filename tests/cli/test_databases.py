"""Tables in databases: read by a query, released to a file or a new table, and no password anywhere."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from fedanon.datasets.source import DataSource
from fedanon.errors import ConfigError, DataError
from fedanon.io.sql import public_name, read_query, write_new_table
from tests.cli import postgres
from tests.cli.conftest import Run
from tests.hospital_table import CREATE, hospital_rows, hospital_schema, write_sqlite

QUERY = "SELECT cpf, idade, sexo, hospital, peso, obito FROM stays WHERE cid LIKE '%' AND nome <> ':nobody'"
SCHEMA = hospital_schema("cpf", "idade", "sexo", "hospital", "peso", "obito")
ROWS = hospital_rows(120)


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    path = tmp_path / "schema.toml"
    path.write_text(SCHEMA, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL's initdb and postgres are not on this machine")
    with postgres.running() as running:
        yield running


@pytest.fixture
def postgres_address(server: postgres.Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with the hospital's stays; the environment says who logs in."""
    import psycopg

    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    with psycopg.connect("dbname=postgres", autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS stays, released")
        connection.execute(CREATE)
        with connection.cursor() as cursor:
            shown = ROWS.assign(nascimento=ROWS["nascimento"].dt.date)
            marks = ", ".join(["%s"] * shown.shape[1])
            cursor.executemany(f"INSERT INTO stays VALUES ({marks})", shown.astype(object).to_numpy().tolist())
    return "postgresql:///postgres"


@pytest.fixture
def duckdb_address(tmp_path: Path) -> str:
    import duckdb

    with duckdb.connect(str(tmp_path / "h.duckdb")) as connection:
        connection.execute(CREATE)
        shown = ROWS.assign(nascimento=ROWS["nascimento"].dt.strftime("%Y-%m-%d"))
        marks = ", ".join("?" * shown.shape[1])
        connection.executemany(f"INSERT INTO stays VALUES ({marks})", shown.astype(object).to_numpy().tolist())
    return f"duckdb:///{tmp_path / 'h.duckdb'}"


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return write_sqlite(ROWS, tmp_path / "h.db")
    found: str = request.getfixturevalue({"duckdb": "duckdb_address", "postgresql": "postgres_address"}[request.param])
    return found


def test_a_query_gives_numbers_texts_and_dates(address: str) -> None:
    frame = read_query(address, "SELECT * FROM stays")
    assert frame["idade"].tolist() == ROWS["idade"].tolist()
    assert frame["peso"].tolist() == ROWS["peso"].tolist()
    assert frame["hospital"].tolist() == ROWS["hospital"].tolist()
    assert frame["nascimento"].tolist() == [f"{day:%Y-%m-%d}" for day in ROWS["nascimento"]]


def test_a_database_is_released_to_a_file_and_a_new_table_and_simulated(
    address: str, declared: Path, run: Run, tmp_path: Path
) -> None:
    table = (address, "--schema", declared, "--query", QUERY)
    out, key = tmp_path / "released.csv", tmp_path / "rows.json"
    made = run("anonymize", *table, "--k", "5", "-o", out, "--row-key", key, "--to-table", "released", "--json")
    assert made.code == 0, made.err
    written = read_query(address, "SELECT * FROM released")
    assert written["idade"].tolist() == pd.read_csv(out, dtype=str)["idade"].tolist()
    assert list(written.columns) == ["idade", "sexo", "peso", "obito"]
    again = run("anonymize", *table, "--k", "5", "-o", tmp_path / "more.csv", "--to-table", "released")
    assert again.code == 2
    assert "'released'" in again.err
    checked = run("check", out, "--schema", declared, "--original", address, "--query", QUERY, "--row-key", key)
    assert checked.code == 0, checked.err
    verified = run("verify", out, "--original", address, "--query", QUERY, "--row-key", key, "--rebuild", "--json")
    assert verified.code == 0, verified.out
    assert {check["outcome"] for check in verified.json["checks"]} == {"pass"}
    seen = ("--schema", declared, "--original", address, "--query", QUERY, "--row-key", key, "--no-attacks")
    told = run("report", "--privacy", out, *seen, "-o", tmp_path / "report.html")
    assert told.code == 0, told.err
    run_of = run("simulate", *table, "--partition", "by:hospital", "--k", "5", "--rounds", "2", "--json")
    assert run_of.code == 0, run_of.err
    assert run_of.json["settings"]["nodes"] == 5
    said = made.out + run_of.out + Path(f"{out}.manifest.json").read_text(encoding="utf-8")
    assert not any(secret in said for secret in (postgres.PASSWORD, str(tmp_path / "h."), "://"))


def test_reading_cannot_change_a_database(address: str) -> None:
    for query in ("DELETE FROM stays", "DROP TABLE stays"):
        with pytest.raises(DataError, match="query failed"):
            read_query(address, query)
    assert len(read_query(address, "SELECT cpf FROM stays")) == len(ROWS)


def test_a_query_that_fails_or_gives_nothing(address: str, run: Run, declared: Path) -> None:
    name = ROWS["nome"][0]
    for query, words in (
        ("SELECT nobody FROM nowhere", "query failed"),
        (f"SELECT CAST('{name}' AS INTEGER) FROM stays WHERE 1 = 1 / 0 OR nome = '", "query failed"),
        ("SELECT cpf FROM stays WHERE idade < 0", "gives no rows"),
        ("SELECT cpf, idade AS cpf FROM stays", "same name: cpf"),
    ):
        told = run("anonymize", address, "--schema", declared, "--query", query, "--k", "5")
        assert told.code == 3, query
        assert words in told.err
        assert name not in told.err
    assert run("anonymize", address, "--schema", declared, "--k", "5").code == 2


def test_a_password_in_an_address_is_refused_without_repeating_it(run: Run, declared: Path) -> None:
    for bad in ("postgresql://steward:hunter2@h/db", "postgresql:///db?password=hunter2"):
        told = run("anonymize", bad, "--schema", declared, "--query", QUERY, "--k", "5")
        assert told.code == 2
        assert "PGPASSWORD" in told.err
        assert "hunter2" not in told.err + told.out


def test_a_wrong_password_is_not_repeated(
    postgres_address: str, monkeypatch: pytest.MonkeyPatch, run: Run, declared: Path
) -> None:
    monkeypatch.setenv("PGPASSWORD", "hunter2")
    told = run("anonymize", postgres_address, "--schema", declared, "--query", QUERY, "--k", "5")
    assert told.code == 3
    assert "cannot be opened" in told.err
    assert "hunter2" not in told.err


def test_a_password_may_be_in_a_file(postgres_address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:*:{postgres.PASSWORD}\n")
    file.chmod(0o600)
    monkeypatch.delenv("PGPASSWORD")
    with pytest.raises(DataError, match="cannot be opened"):
        read_query(postgres_address, QUERY)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert len(read_query(postgres_address, QUERY)) == len(ROWS)


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    for absent in (f"sqlite:///{tmp_path}/no.db", f"duckdb:///{tmp_path}/no.db", "postgresql://127.0.0.1:1/db"):
        with pytest.raises(DataError, match=r"does not exist|cannot be opened"):
            read_query(absent, "SELECT 1")
    assert not list(tmp_path.iterdir()), "opening must not make a new database"
    for strange in ("mysql://h/db", "https://steward:hunter2@h/rows.csv", "sqlite+pysqlite:///h.db"):
        with pytest.raises(ConfigError, match="begins with one of") as caught:
            DataSource(data=(strange,), schema="s.toml", query="SELECT 1").inputs  # noqa: B018
        assert "hunter2" not in str(caught.value)
    assert public_name("postgresql://steward@host.example/ward") == "postgresql ward"


def test_a_table_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    address = write_sqlite(ROWS[:0], tmp_path / "h.db")
    strange = pd.DataFrame({"a": pd.Series(["sound", "\ud800"], dtype=object)})  # a lone surrogate cannot be stored
    with pytest.raises(DataError, match="could not be written"):
        write_new_table(address, "half", strange)
    connection = sqlite3.connect(tmp_path / "h.db")
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    connection.close()
    assert names == ["stays"]
    with pytest.raises(ConfigError, match="letters, digits and underscores"):
        write_new_table(address, 'x"; DROP TABLE stays', pd.DataFrame({"a": [1]}))


def test_an_experiment_names_a_database_and_its_results_do_not(run: Run, declared: Path, tmp_path: Path) -> None:
    address = write_sqlite(ROWS, tmp_path / "h.db")
    text = f"""
[[grid]]
task = "release"
data = "{address}"
query = "{QUERY}"
schema = "schema.toml"
k = 5
methods = ["mondrian"]
"""
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    done = run("experiment", "run", tmp_path / "own.toml", "--workers", "1", "--json")
    assert done.code == 0, done.err
    assert done.json["computed"] == 1
    manifest = (tmp_path / "results/own/manifest.json").read_text()
    assert "://" not in manifest
    assert "sqlite h" in json.loads(manifest)["data"]
