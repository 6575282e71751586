"""Table: a checked DataFrame with its schema; quasi-identifiers are encoded once to small integers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.coded_column import CodedColumn
from fedanon.data.columns import (
    MissingPolicy,
    check_values,
    encode_column,
    missing_mask,
    numbers,
    recode_carried,
    texts,
)
from fedanon.data.detectors.headers import names_person
from fedanon.data.groups import Groups
from fedanon.data.pseudonyms import protect_people
from fedanon.data.schema import Categorical, Numeric, Role, Schema
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.types import FloatArray, IntArray

__all__ = [
    "CodedColumn",
    "MissingPolicy",
    "Table",
    "check_columns",
    "check_people",
    "check_values",
    "missing_mask",
    "numbers",
    "texts",
]


@dataclass(frozen=True, eq=False)
class Table:
    """A checked table; build it with :meth:`from_frame` or :func:`fedanon.data.readers.read_table`.

    Parameters
    ----------
    frame : all columns but the identifying ones.
    schema : the declaration, with the missing-value leaf added where the policy needs one.
    columns : the quasi-identifiers, coded.
    codes : one row per record, one column per quasi-identifier.
    persons : number of the person of each row, or None where a row is a person.
    missing : how missing quasi-identifiers are treated.
    weights : sampling weight of each row, or None where the table is no weighted sample.
    households : number of the household of each row, or None where the schema names none.
    key_fingerprint : of the key that pseudonyms and shifted dates were made with, if any were.
    lacks_key : whether the schema declared pseudonyms or shifted dates and no key was at hand: nothing of the table can
        be written, since people could not be followed as declared and dates would be the true ones.
    """

    frame: pd.DataFrame
    schema: Schema
    columns: tuple[CodedColumn, ...]
    codes: IntArray
    persons: IntArray | None = None
    missing: MissingPolicy = "error"
    weights: FloatArray | None = None
    households: IntArray | None = None
    key_fingerprint: str = ""
    lacks_key: bool = False

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, schema: Schema, *, missing: MissingPolicy = "error") -> Table:
        """Check ``frame`` against ``schema``, drop identifying columns and encode the quasi-identifiers.

        Every declared column is checked, whatever its role. Undecided columns are dropped too; a table that has any
        can be looked at, but not published.

        ``missing``: 'error' refuses missing quasi-identifiers; 'category' makes missing a value of its own;
        'wildcard' publishes '*' for them.
        """
        if missing not in get_args(MissingPolicy):
            raise ConfigError(f"The 'missing' parameter must be one of: {', '.join(get_args(MissingPolicy))}.")
        check_columns([str(name) for name in frame.columns], len(frame), schema)
        check_people((frame[name] for name in schema.naming), schema)
        try:
            return cls._checked(frame, schema, missing)
        except SchemaError:
            _refuse_misfits(frame, schema)  # says all at once, where several columns do not fit
            raise

    @classmethod
    def _checked(cls, frame: pd.DataFrame, schema: Schema, missing: MissingPolicy) -> Table:
        for attribute in schema.attributes:
            if attribute.role is not Role.QUASI_IDENTIFYING:
                check_values(frame[attribute.name], attribute, schema)
        if not schema.needs_key:
            return cls._encoded(frame, schema, missing)
        if schema.key is None:
            return replace(cls._encoded(frame, schema.without_key(), missing), lacks_key=True)
        table = cls._encoded(protect_people(frame, schema, schema.key), replace(schema, key=None), missing)
        return replace(table, key_fingerprint=schema.key.fingerprint)

    @classmethod
    def _encoded(cls, frame: pd.DataFrame, schema: Schema, missing: MissingPolicy) -> Table:
        kept = recode_carried(frame[schema.published], schema)
        coded = [
            encode_column(frame[attribute.name], attribute, schema, missing) for attribute in schema.quasi_identifiers
        ]
        codes = np.column_stack([codes for _, codes in coded]) if coded else np.empty((len(frame), 0), dtype=np.int32)
        return cls(
            frame=kept,
            schema=schema.replacing(*(column.attribute for column, _ in coded)),
            columns=tuple(column for column, _ in coded),
            codes=np.ascontiguousarray(codes, dtype=np.int32),
            persons=_numbered(frame, "person_id", schema.person_id),
            missing=missing,
            weights=_weights(frame, schema),
            households=_numbered(frame, "household", schema.household),
        )

    def __len__(self) -> int:
        return len(self.frame)

    def refuse_without_key(self) -> None:
        """Raise ConfigError where a key is declared and lacks: nothing of the table may be written then."""
        if self.lacks_key:
            raise ConfigError(
                "The schema declares pseudonyms or shifted dates: give the key (--key; `fedanon keys new`)."
            )

    @property
    def n_units(self) -> int:
        """Number of people in the table, or of its rows where the schema does not say who is who."""
        return len(self) if self.persons is None else int(self.persons.max(initial=-1)) + 1

    @property
    def n_people(self) -> int | None:
        """Number of people in the table; None where the schema does not say who is who."""
        return self.n_units if self.schema.unit == "people" else None

    @property
    def person_of_row(self) -> IntArray:
        """Number of the person of each row, where a row is a person too."""
        return np.arange(len(self), dtype=np.int32) if self.persons is None else self.persons

    def select_rows(self, rows: NDArray[Any] | Sequence[int]) -> Table:
        """The table of some rows, in the given order."""
        rows = np.asarray(rows)
        columns, codes = [], np.ascontiguousarray(self.codes[rows])
        for i, column in enumerate(self.columns):
            if column.values is not None:
                used, codes[:, i] = np.unique(codes[:, i], return_inverse=True)
                values = column.values[used]
                ends = None if column.ends is None else column.ends[used]
                column = replace(column, values=values, ends=ends, has_missing=bool(np.isnan(values).any()))
            columns.append(column)
        return replace(
            self,
            frame=self.frame.iloc[rows],
            columns=tuple(columns),
            codes=codes,
            persons=_renumbered(self.persons, rows),
            weights=None if self.weights is None else self.weights[rows],
            households=_renumbered(self.households, rows),
        )

    @cached_property
    def distinct(self) -> Groups:
        """The groups of rows with equal quasi-identifiers, in lexicographic order."""
        return Groups.equal_rows(self.codes)

    @cached_property
    def sha256(self) -> str:
        """Hash of the rows and the schema."""
        return self.hash_with(self.schema.sha256)

    def hash_with(self, schema_sha256: str) -> str:
        """Hash of the rows and of a schema of which only the hash is known."""
        digest = hashlib.sha256(schema_sha256.encode())
        digest.update(pd.util.hash_pandas_object(self.frame, index=False).to_numpy().tobytes())
        for column in (self.persons, self.weights, self.households):
            digest.update(b"" if column is None else column.tobytes())
        return digest.hexdigest()

    def with_taxonomies(self) -> Table:
        """Numeric quasi-identifiers that declare a hierarchy become categorical (their values as text)."""
        schema = self.schema
        for attribute in schema.quasi_identifiers:
            if isinstance(attribute, Numeric) and attribute.hierarchy is not None:
                schema = schema.replacing(Categorical(attribute.name, attribute.role, attribute.hierarchy))
        if schema is self.schema:
            return self
        return self.recoded(schema)

    def recoded(self, schema: Schema) -> Table:
        """The same rows by another declaration of their columns; people, weights and households stay."""
        held = tuple(a for a in schema.attributes if a.name in self.frame)
        plain = replace(schema, person_id=None, weight=None, household=None, attributes=held)
        coded = Table._encoded(self.frame, plain, self.missing)
        schema = schema.replacing(*coded.schema.attributes)
        return replace(self, schema=schema, columns=coded.columns, codes=coded.codes)


# ---- checks and encoding -------------------------------------------------------------------------


def check_columns(names: Sequence[str], rows: int, schema: Schema) -> None:
    """Raise unless the columns of the data are those of ``schema`` and there are rows."""
    present, declared = set(names), set(schema.names)
    absent = [name for name in schema.names if name not in present]
    if absent:
        raise SchemaError(f"The data lack {len(absent)} declared columns: {_some(absent)}.")
    # names that are not the schema's are quoted only now, when the first line has proved to be a header
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise SchemaError(f"The data have columns of the same name: {_some(repeated)}.")
    undeclared = [name for name in names if name not in declared]
    if undeclared:
        raise SchemaError(
            f"The data have {len(undeclared)} columns that the schema does not declare: {_some(undeclared)}."
        )
    if rows == 0:
        raise DataError("The table has no rows.")


def _refuse_misfits(frame: pd.DataFrame, schema: Schema) -> None:
    """Raise SchemaError with what is wrong in every column, if it is several."""
    wrong = []
    for attribute in schema.attributes:
        try:
            check_values(frame[attribute.name], attribute, schema)
        except SchemaError as error:
            wrong.append(str(error))
    if len(wrong) > 1:
        raise SchemaError(f"The data do not fit the schema in {len(wrong)} columns. {' '.join(wrong)}") from None


def _some(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _numbered(frame: pd.DataFrame, what: str, name: str | None) -> IntArray | None:
    """A number for every distinct value of the column that plays the part ``what``."""
    if name is None:
        return None
    absent = int(frame[name].isna().sum())
    if absent:
        raise SchemaError(f"The {what} column {name!r} has {absent} missing values.")
    return pd.factorize(frame[name], sort=True)[0].astype(np.int32)


def check_people(identifying: Iterable[pd.Series[Any]], schema: Schema) -> None:
    """Raise SchemaError where the columns that identify contradict what the schema says, or does not say, of people."""
    chosen: pd.Series[Any] | None = None
    others: list[pd.Series[Any]] = []
    for column in identifying:
        if column.name == schema.person_id:
            chosen = column
        elif schema.person_id is None:
            _refuse_repeated(column, schema)
        elif names_person(str(column.name)):
            others.append(column)
    if chosen is not None:
        for other in others:
            _refuse_fewer_people(chosen, other, schema)


def _refuse_repeated(column: pd.Series[Any], schema: Schema) -> None:
    """Refuse a column that repeats where it may be a person's, unless the schema says that nobody knows."""
    if schema.one_row_per_person is False or (schema.one_row_per_person and not names_person(str(column.name))):
        return
    known = column[~missing_mask(column, schema)]
    if known.is_unique:
        return
    counted = f"{known.nunique()} values on {len(known)} rows"
    if schema.one_row_per_person:
        raise SchemaError(
            f"The schema says one_row_per_person = true, but {column.name!r} is a person's number by its name and "
            f'repeats: {counted}. Write person_id = "{column.name}" instead, or one_row_per_person = false if it does '
            "not name the person a row is about; records are then counted, not people."
        )
    raise SchemaError(
        f"The identifying column {column.name!r} repeats: {counted}. Say in the schema whose rows these are: "
        f'person_id = "{column.name}" if it names a person, else one_row_per_person = true if no person has two rows, '
        "or one_row_per_person = false if that is not known; records are then counted, not people."
    )


def _refuse_fewer_people(chosen: pd.Series[Any], other: pd.Series[Any], schema: Schema) -> None:
    """Refuse a person_id with more values than another person's number, unless most of that is missing."""
    known = ~missing_mask(other, schema)
    people, fewer = chosen[known].nunique(), other[known].nunique()
    if known.mean() >= 0.5 and fewer < people:
        raise SchemaError(
            f"The person_id column {chosen.name!r} has {people} values where {other.name!r}, a person's number by its "
            f'name, has {fewer}: people would be counted twice. Write person_id = "{other.name}", or list the codes of '
            "people without a number in missing_values."
        )


def _renumbered(numbered: IntArray | None, rows: NDArray[Any]) -> IntArray | None:
    return None if numbered is None else np.unique(numbered[rows], return_inverse=True)[1].astype(np.int32)


def _weights(frame: pd.DataFrame, schema: Schema) -> FloatArray | None:
    if schema.weight is None:
        return None
    attribute = schema[schema.weight]
    assert isinstance(attribute, Numeric)
    weights = numbers(frame[schema.weight], attribute, missing_mask(frame[schema.weight], schema))
    bad = int((~(weights > 0)).sum())
    if bad:
        raise SchemaError(f"The weight column {schema.weight!r} has {bad} values that are missing or not above 0.")
    return weights
