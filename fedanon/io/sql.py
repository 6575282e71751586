"""Databases at the border: the rows of a query as a table, and a release as a new table.

Reading cannot change the database. A password is never part of an address: the database's own client finds it, for
PostgreSQL in ``PGPASSWORD`` or ``~/.pgpass``. What a database says about an error may quote a cell or the address, so
only the kind of the error is handed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from fedanon.data.schema import Schema
from fedanon.errors import ConfigError, DataError
from fedanon.io.typed_columns import typed_frame

DATABASES = ("sqlite", "postgresql", "duckdb")
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://")
_CHUNK = 5000
_SECRETS = ("password", "passfile", "sslpassword")


def is_database(address: object) -> bool:
    """Whether a text is an address, of a database that can be read or of something else, and no file."""
    return isinstance(address, str) and _ADDRESS.match(address) is not None


def public_name(address: str) -> str:
    """What a result may say of a database: its kind and name, without a host, a folder or a user."""
    url = _parsed(address)
    return f"{url.drivername} {Path(url.database or '').stem}".strip()


def database_file(address: str) -> Path | None:
    """The file of a database that is one."""
    url = _parsed(address)
    return None if url.drivername == "postgresql" or not url.database else Path(url.database)


def read_query(address: str, query: str, schema: Schema | None = None) -> pd.DataFrame:
    """The rows of a query, in the order the database gives them.

    Parameters
    ----------
    address : ``sqlite:///file``, ``duckdb:///file`` or ``postgresql://user@host/database``, without a password.
    query : a SELECT.
    schema : says which numbers mean missing.
    """
    if not query.strip():
        raise ConfigError("A database needs a query: --query 'SELECT ...'.")
    with _connected(address) as connection:
        result = connection.execution_options(no_parameters=True).exec_driver_sql(query)
        if not result.returns_rows:
            raise ConfigError("The query gives no table. Write a SELECT that names the columns to be read.")
        names, rows = [str(name) for name in result.keys()], result.fetchall()  # noqa: SIM118  no mapping
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise DataError(f"The query gives several columns of the same name: {', '.join(repeated)}. Rename them by AS.")
    if not rows:
        raise DataError("The query gives no rows. Check its conditions in the database's own client.")
    return typed_frame(dict(zip(names, zip(*rows, strict=True), strict=True)), schema)


def refuse_table(address: str, name: str) -> None:
    """Raise ConfigError if the database has a table or view of this name, which is never written over."""
    library = _sqlalchemy()
    if not re.fullmatch(r"[A-Za-z_]\w{0,59}", name):
        raise ConfigError("The name of a new table has letters, digits and underscores, and begins with a letter.")
    with _connected(address) as connection:
        found = library.inspect(connection)
        if name in (*found.get_table_names(), *found.get_view_names()):
            raise ConfigError(f"The database has a table {name!r} already; it is never written over. Name a new one.")


def write_new_table(address: str, name: str, frame: pd.DataFrame) -> None:
    """Write a table under a name the database does not have; all of it or nothing."""
    library = _sqlalchemy()
    refuse_table(address, name)
    kinds = [library.BigInteger, library.Double, library.Text]
    columns = [library.Column(str(n), kinds[_kind(frame.iloc[:, i])]) for i, n in enumerate(frame.columns)]
    table = library.Table(name, library.MetaData(), *columns)
    rows = [dict(zip(frame.columns, row, strict=True)) for row in _plain_rows(frame)]
    with _connected(address, write=True) as connection:
        table.create(connection)
        try:
            for start in range(0, len(rows), _CHUNK):
                connection.execute(table.insert(), rows[start : start + _CHUNK])
            connection.commit()
        except BaseException:
            connection.rollback()
            table.drop(connection, checkfirst=True)  # SQLite keeps what was created
            connection.commit()
            raise


def _kind(column: pd.Series[Any]) -> int:
    types = pd.api.types
    return 0 if types.is_integer_dtype(column) else 1 if types.is_float_dtype(column) else 2


def _plain_rows(frame: pd.DataFrame) -> Iterator[Sequence[Any]]:
    columns = [frame.iloc[:, i] for i in range(frame.shape[1])]
    plain = [
        [None if pd.isna(v) else v if _kind(column) < 2 else str(v) for v in column.astype(object)]
        for column in columns
    ]
    return zip(*plain, strict=True)


# ---- the connection ------------------------------------------------------------------------------


def _sqlalchemy() -> Any:
    """The library, which is no dependency of the core."""
    try:
        import sqlalchemy
    except ModuleNotFoundError:
        raise ConfigError("Databases need SQLAlchemy: pip install 'fedanon[sql]'.") from None
    return sqlalchemy


def _parsed(address: str) -> Any:
    library = _sqlalchemy()
    try:
        url = library.make_url(address)
    except library.exc.ArgumentError:
        url = None
    if url is None or url.drivername not in DATABASES:
        known = ", ".join(f"{name}://" for name in DATABASES)
        raise ConfigError(f"The address of the database cannot be read. It begins with one of: {known}.")
    if url.password is not None or any(name in url.query for name in _SECRETS):
        raise ConfigError(
            "The address of the database holds a password, which others could read. Leave it out and set PGPASSWORD, "
            "or write it into ~/.pgpass."
        )
    return url


@contextmanager
def _connected(address: str, *, write: bool = False) -> Iterator[Any]:
    """A connection that only reads unless it is to ``write``; what the database says becomes one kind of error."""
    library = _sqlalchemy()
    engine = _engine(_parsed(address), write=write)
    try:
        try:
            connection = engine.connect()
        except library.exc.SQLAlchemyError as error:
            raise DataError(
                f"The database cannot be opened ({_kind_of(error)}). Check the address, that the server runs, and who "
                "may log in (PGUSER, PGPASSWORD, ~/.pgpass)."
            ) from None
        with connection:
            yield connection
    except (library.exc.SQLAlchemyError, UnicodeError, OverflowError) as error:
        raise DataError(
            f"The {'new table could not be written' if write else 'query failed'} ({_kind_of(error)}). Try it in the "
            "database's own client, which says more."
        ) from None
    finally:
        engine.dispose()


def _engine(url: Any, *, write: bool) -> Any:
    library = _sqlalchemy()
    more: dict[str, Any] = {"hide_parameters": True, "poolclass": library.pool.NullPool}
    if url.drivername == "postgresql":
        reading = {} if write else {"options": "-c default_transaction_read_only=on"}
        url, more["connect_args"] = url.set(drivername="postgresql+psycopg"), {"connect_timeout": 10, **reading}
    else:
        file = Path(url.database or "")
        if not file.is_file():
            raise DataError(f"The database file {file} does not exist.")
        if url.drivername == "sqlite":
            mode = "rw" if write else "ro"
            url = url.set(database=f"file:{quote(str(file.absolute()))}", query={"mode": mode, "uri": "true"})
        else:
            more["connect_args"] = {} if write else {"read_only": True}
    try:
        return library.create_engine(url, **more)
    except (ModuleNotFoundError, library.exc.NoSuchModuleError):
        raise ConfigError("This database needs a driver: pip install 'fedanon[sql]'.") from None


def _kind_of(error: Any) -> str:
    """The kind of an error, and its code, without a word of its text."""
    cause = getattr(error, "orig", None) or error
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    return f"{type(cause).__name__}{f', {code}' if code else ''}"
