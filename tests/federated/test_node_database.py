"""A node whose table is the result of a query takes part like any other; a database that changes is no way out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.errors import ConfigError, DataError
from fedanon.federated.deployment.node import NodeFolder
from tests.cli import postgres
from tests.federated.deployed import write_tables
from tests.federated.hostile_server import TEMPLATE, WIDTH, HostileServer, make_node

QUERY = "SELECT age, bmi, sex, ill FROM stays"


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database with the table of a node; it lies beside the node's folder."""
    rows = pd.read_csv(write_tables(tmp_path, 1, 300)[0])
    if request.param == "sqlite":
        with sqlite3.connect(tmp_path / "own.db") as lite:
            rows.to_sql("stays", lite, index=False)
        lite.close()
        yield "sqlite:///../own.db"
    elif request.param == "duckdb":
        import duckdb

        with duckdb.connect(str(tmp_path / "own.duckdb")) as duck:
            duck.execute("CREATE TABLE stays AS SELECT * FROM rows")
        yield "duckdb:///../own.duckdb"
    else:
        if postgres.binaries() is None:
            pytest.skip("PostgreSQL's initdb and postgres are not on this machine")
        import psycopg

        with postgres.running() as server:
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            with psycopg.connect("dbname=postgres", autocommit=True) as connection, connection.cursor() as cursor:
                cursor.execute("CREATE TABLE stays (age float, bmi float, sex text, ill text)")
                cursor.executemany("INSERT INTO stays VALUES (%s, %s, %s, %s)", rows.to_numpy().tolist())
            yield "postgresql:///postgres"


def node_with(folder: Path, data: str, query: str = QUERY, **policy: object) -> NodeFolder:
    return make_node(folder, table=data, query=query, **policy)  # type: ignore[arg-type]


def ask(server: HostileServer) -> bool:
    """Whether the node scores a model, for which it makes its release."""
    return server.score(np.zeros(WIDTH), 0.0) is not None


def test_a_node_reads_its_database_and_says_nothing_of_it(address: str, tmp_path: Path) -> None:
    node = node_with(tmp_path, address)
    node.check()
    server = HostileServer(node)
    assert ask(server)
    kept = b"".join(path.read_bytes() for path in node.folder.rglob("*") if path.is_file() and path.name != "node.toml")
    told = "".join(str(reply) for reply in server.replies).encode() + kept
    for word in (postgres.PASSWORD.encode(), b"SELECT", b"://"):
        assert word not in told


def test_the_states_of_a_database_are_releases_of_one_table(tmp_path: Path) -> None:
    rows = pd.read_csv(write_tables(tmp_path, 1, 300)[0])
    with sqlite3.connect(tmp_path / "own.db") as connection:
        rows.to_sql("stays", connection, index=False)
        server = HostileServer(node_with(tmp_path, "sqlite:///../own.db"))
        assert ask(server)
        server.start(TEMPLATE)
        assert ask(server), "the same release again"
        connection.execute("DELETE FROM stays WHERE age < 30")
        connection.commit()
        server.start(TEMPLATE)
        assert not ask(server)
    connection.close()
    assert server.refusals == ["This node refuses to answer: releases."]


@pytest.mark.parametrize(
    ("data", "query", "kind", "words"),
    [
        ("postgresql://steward:secret@host/ward", QUERY, ConfigError, "holds a password"),
        ("mysql://host/ward", QUERY, ConfigError, "begins with one of"),
        ("sqlite:///../own.db", "", ConfigError, "needs a query"),
        ("sqlite:///../own.db", "SELECT nothing FROM stays", DataError, "query failed"),
        ("sqlite:///../own.db", f"{QUERY} WHERE age > 200", DataError, "no rows"),
        ("sqlite:///../away.db", QUERY, DataError, "does not exist"),
        ("data0.csv", QUERY, ConfigError, "goes with a database"),
    ],
)
def test_what_does_not_fit_is_told_before_a_node_starts(
    data: str, query: str, kind: type[Exception], words: str, tmp_path: Path
) -> None:
    rows = pd.read_csv(write_tables(tmp_path, 1, 20)[0])
    with sqlite3.connect(tmp_path / "own.db") as connection:
        rows.to_sql("stays", connection, index=False)
    connection.close()
    with pytest.raises(kind, match=words) as told:
        node_with(tmp_path, data, query).check()
    assert "secret" not in str(told.value)
