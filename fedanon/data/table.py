"""Table: a checked DataFrame with its schema; quasi-identifiers are encoded once to small integers.

Code order carries the geometry: numeric codes follow the values, categorical codes follow the leaves of the
taxonomy in depth-first order. A missing value, where the policy allows one, is always the last code.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.data.detectors.headers import names_person
from fedanon.data.groups import Groups
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Attribute, Categorical, Numeric, Role, Schema
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.types import FloatArray, IntArray

MissingPolicy = Literal["error", "category", "wildcard"]


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """One quasi-identifier as codes.

    Parameters
    ----------
    attribute : its declaration.
    values : numeric only, the value of every code (NaN for the missing code).
    has_missing : whether the last code means missing.
    """

    attribute: Numeric | Categorical
    values: FloatArray | None
    has_missing: bool = False

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.attribute.name

    @property
    def hierarchy(self) -> Hierarchy:
        """The taxonomy of a categorical column."""
        assert isinstance(self.attribute, Categorical)
        return self.attribute.hierarchy

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.values) if self.values is not None else self.hierarchy.n_leaves

    @cached_property
    def positions(self) -> FloatArray:
        """Numeric values with the missing code placed one range beyond the end, so that it is far from all."""
        assert isinstance(self.attribute, Numeric)
        assert self.values is not None
        return np.nan_to_num(self.values, nan=self.attribute.high + self.attribute.width)

    def loss(self, low: NDArray[Any], high: NDArray[Any]) -> FloatArray:
        """NCP of publishing the smallest cell that covers the codes low..high (eq. 6.1, 6.2)."""
        if isinstance(self.attribute, Numeric):
            extent = (self.positions[high] - self.positions[low]) / self.attribute.width
            return np.asarray(np.minimum(extent, 1.0), dtype=np.float64)
        return self.hierarchy.leaf_loss[self.hierarchy.common_ancestor(low, high)]


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
    """

    frame: pd.DataFrame
    schema: Schema
    columns: tuple[CodedColumn, ...]
    codes: IntArray
    persons: IntArray | None = None
    missing: MissingPolicy = "error"
    weights: FloatArray | None = None
    households: IntArray | None = None

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
        for attribute in schema.attributes:
            if attribute.role is not Role.QUASI_IDENTIFYING:
                check_values(frame[attribute.name], attribute, schema)
        return cls._encoded(frame, schema, missing)

    @classmethod
    def _encoded(cls, frame: pd.DataFrame, schema: Schema, missing: MissingPolicy) -> Table:
        kept = frame[schema.published]
        coded = [_encode(frame[attribute.name], attribute, schema, missing) for attribute in schema.quasi_identifiers]
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
                column = replace(column, values=values, has_missing=bool(np.isnan(values).any()))
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


def missing_mask(column: pd.Series[Any], schema: Schema) -> NDArray[np.bool_]:
    """Which cells of a column are missing: empty, or one of the schema's tokens."""
    mask = column.isna()
    if schema.missing_values and not pd.api.types.is_numeric_dtype(column):
        mask |= column.isin(schema.missing_values)
    return mask.to_numpy(dtype=bool)


def _encode(
    column: pd.Series[Any], attribute: Numeric | Categorical, schema: Schema, missing: MissingPolicy
) -> tuple[CodedColumn, IntArray]:
    absent = missing_mask(column, schema)
    count = int(absent.sum())
    if count and missing == "error":
        raise SchemaError(
            f"The quasi-identifier {attribute.name!r} has {count} missing values; "
            "choose a policy for them: missing='category' or missing='wildcard'."
        )
    if isinstance(attribute, Numeric):
        return _encode_numeric(column, attribute, absent)
    return _encode_categorical(column, attribute, absent)


def check_values(column: pd.Series[Any], attribute: Attribute, schema: Schema) -> None:
    """Raise SchemaError if a column holds values its declaration excludes; missing ones are none."""
    absent = missing_mask(column, schema)
    if isinstance(attribute, Numeric):
        numbers(column, attribute, absent)
    elif isinstance(attribute, Categorical):
        _leaves(column, attribute, absent)


def numbers(column: pd.Series[Any], attribute: Numeric, absent: NDArray[np.bool_]) -> FloatArray:
    """The values of a numeric column as floats (NaN where absent), checked against the declaration."""
    parsed = pd.to_numeric(column.where(~absent), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    _refuse(np.isnan(parsed) & ~absent, attribute, "that are not numbers")
    _refuse(np.isinf(parsed), attribute, "that are infinite")
    outside = (parsed < attribute.low) | (parsed > attribute.high)
    _refuse(outside, attribute, f"outside the declared range [{attribute.low:g}, {attribute.high:g}]")
    if attribute.integer:
        _refuse(~absent & (parsed != np.floor(parsed)), attribute, "that are not whole numbers")
    return parsed


def _refuse(bad: NDArray[np.bool_], attribute: Numeric | Categorical, what: str) -> None:
    count = int(bad.sum())
    if count:
        raise SchemaError(
            f"The column {attribute.name!r} has {count} values {what}. Correct them, declare them in the schema, or "
            "list what means missing in missing_values."
        )


def _encode_numeric(
    column: pd.Series[Any], attribute: Numeric, absent: NDArray[np.bool_]
) -> tuple[CodedColumn, IntArray]:
    values, codes = np.unique(numbers(column, attribute, absent), return_inverse=True)  # NaN sorts last
    return CodedColumn(attribute, values, bool(absent.any())), codes.astype(np.int32)


def texts(column: pd.Series[Any]) -> pd.Series[Any]:
    """A categorical column as text; whole floats lose their '.0'."""
    if pd.api.types.is_float_dtype(column):
        kept = column.dropna()
        if (kept == np.floor(kept)).all():
            column = column.astype("Int64")
    if pd.api.types.is_string_dtype(column):
        return column
    return column.astype("string")


def _encode_categorical(
    column: pd.Series[Any], attribute: Categorical, absent: NDArray[np.bool_]
) -> tuple[CodedColumn, IntArray]:
    hierarchy, codes = attribute.hierarchy, _leaves(column, attribute, absent)
    if absent.any():
        hierarchy = hierarchy.with_missing()
        codes = np.where(absent, hierarchy.n_leaves - 1, codes).astype(np.int32)
    return CodedColumn(Categorical(attribute.name, attribute.role, hierarchy), None, bool(absent.any())), codes


def _leaves(column: pd.Series[Any], attribute: Categorical, absent: NDArray[np.bool_]) -> IntArray:
    """The leaf of every value, checked against the taxonomy; -1 where absent."""
    values = pd.Categorical(texts(column).where(~absent))
    lookup = np.array([attribute.hierarchy.codes.get(str(value), -1) for value in values.categories], dtype=np.int32)
    codes: IntArray = np.append(lookup, np.int32(-1))[values.codes]
    _refuse((codes < 0) & ~absent, attribute, f"(of {int((lookup < 0).sum())} kinds) that its taxonomy does not list")
    return codes
