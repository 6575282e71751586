"""Schema: what each column is, which role it plays, and what may be published of it.

A schema is written in TOML::

    name = "ward"
    target = "diagnosis"
    person_id = "patient"             # whose rows belong to one person; or: one_row_per_person = true
    missing_values = ["?"]            # text that means missing, besides the empty cell
    weight = "design_weight"          # optional: how many people of the population a record stands for
    household = "household_number"    # optional: whose records belong together

    [attributes.age]
    role = "quasi_identifying"        # identifying | quasi_identifying | sensitive | insensitive | undecided
    type = "numeric"
    range = [0, 110]                  # both ends included
    integer = true

    [attributes.ward]
    role = "quasi_identifying"
    type = "categorical"
    [attributes.ward.taxonomy]        # or: values = [...], or: hierarchy = "ward.csv" (ARX format)
    Surgery = ["orthopaedics", "cardiac"]
    Medicine = ["oncology", "general"]

Every column of the data must be declared, and its role decided: a column nobody thought about is an error, not a leak.
Where neither ``person_id`` nor ``one_row_per_person = true`` says who is who, whatever is counted are records.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fedanon.data.hierarchy import Hierarchy, read_arx_hierarchy
from fedanon.errors import DataError, SchemaError

MAX_BYTES = 16 * 2**20


#: what a count is of: people where the schema says who is who, else records
Unit = Literal["people", "records"]


class Role(StrEnum):
    """The role of a column, in ARX's terms; nothing is published while one is undecided."""

    IDENTIFYING = "identifying"
    QUASI_IDENTIFYING = "quasi_identifying"
    SENSITIVE = "sensitive"
    INSENSITIVE = "insensitive"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Numeric:
    """A numeric column with its declared range (both ends included), which only a quasi-identifier has to state.

    ``hierarchy`` is an optional taxonomy of the values as text, for methods that treat the column as categorical.
    """

    name: str
    role: Role
    low: float
    high: float
    integer: bool = False
    hierarchy: Hierarchy | None = None

    @property
    def has_range(self) -> bool:
        """Whether a range is declared."""
        return math.isfinite(self.high - self.low)

    @property
    def width(self) -> float:
        """Length of the declared range; 1 for a range of one point, so that dividing by it is safe."""
        return (self.high - self.low) or 1.0


@dataclass(frozen=True)
class Categorical:
    """A categorical column with the taxonomy of its values."""

    name: str
    role: Role
    hierarchy: Hierarchy


@dataclass(frozen=True)
class FreeText:
    """A column that is carried along or dropped, with no domain declared."""

    name: str
    role: Role


Attribute = Numeric | Categorical | FreeText


def type_name(attribute: Attribute) -> str:
    """The type as a schema file names it."""
    return (
        "numeric" if isinstance(attribute, Numeric) else "categorical" if isinstance(attribute, Categorical) else "text"
    )


@dataclass(frozen=True)
class Schema:
    """The columns of a table in order.

    Parameters
    ----------
    attributes : the columns.
    name : a short name.
    target : the column a model predicts, if any.
    person_id : the identifying column that names a person; k then counts people, not rows.
    one_row_per_person : whether no person has two rows; False says that people cannot be told apart, None nothing.
    missing_values : text that means missing, besides the empty cell.
    title : a line about the data.
    weight : the numeric column of sampling weights, if the table is a sample; it may be identifying.
    household : the column that names a record's household, if any; it may be identifying.
    """

    attributes: tuple[Attribute, ...]
    name: str = "table"
    target: str | None = None
    person_id: str | None = None
    one_row_per_person: bool | None = None
    missing_values: tuple[str, ...] = ()
    title: str = ""
    weight: str | None = None
    household: str | None = None

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) < len(names):
            repeated = sorted({name for name in names if names.count(name) > 1})
            raise SchemaError(f"The schema declares columns twice: {', '.join(repeated)}.")
        for what in ("target", "person_id", "weight", "household"):
            name = getattr(self, what)
            if name is not None and name not in names:
                raise SchemaError(f"The {what} column {name!r} is not declared in the schema.")
        if self.person_id is not None and self[self.person_id].role is not Role.IDENTIFYING:
            raise SchemaError(f"The person_id column {self.person_id!r} must have the role 'identifying'.")
        if self.person_id is not None and self.one_row_per_person is not None:
            raise SchemaError("The schema states person_id and one_row_per_person; give one of them.")
        if self.weight is not None and not isinstance(self[self.weight], Numeric):
            raise SchemaError(f"The weight column {self.weight!r} must be numeric.")
        for attribute in self.quasi_identifiers:
            if attribute.name == self.target:
                raise SchemaError(f"The target column {attribute.name!r} cannot be a quasi-identifier.")
            if isinstance(attribute, Numeric) and not attribute.has_range:
                raise SchemaError(
                    f"The numeric column {attribute.name!r} needs a range of two numbers, the lower first."
                )

    @property
    def names(self) -> list[str]:
        """Names of all columns, in order."""
        return [attribute.name for attribute in self.attributes]

    @cached_property
    def quasi_identifiers(self) -> tuple[Numeric | Categorical, ...]:
        """The quasi-identifying columns, in order."""
        found = [a for a in self.attributes if a.role is Role.QUASI_IDENTIFYING]
        untyped = [a.name for a in found if isinstance(a, FreeText)]
        if untyped:
            raise SchemaError(f"Quasi-identifiers need a type (numeric or categorical): {', '.join(untyped)}.")
        return tuple(a for a in found if not isinstance(a, FreeText))

    @property
    def sensitive(self) -> list[str]:
        """Names of the sensitive columns."""
        return [a.name for a in self.attributes if a.role is Role.SENSITIVE]

    @property
    def identifying(self) -> list[str]:
        """Names of the columns that are dropped at the border."""
        return [a.name for a in self.attributes if a.role is Role.IDENTIFYING]

    @property
    def naming(self) -> list[str]:
        """Names of the identifying columns that may tell people apart: all but those of weights and households."""
        return [name for name in self.identifying if name not in (self.weight, self.household)]

    @property
    def undecided(self) -> list[str]:
        """Names of the columns nobody has decided about."""
        return [a.name for a in self.attributes if a.role is Role.UNDECIDED]

    @property
    def published(self) -> list[str]:
        """Names of all columns but the identifying and the undecided ones."""
        return [a.name for a in self.attributes if a.role not in (Role.IDENTIFYING, Role.UNDECIDED)]

    @property
    def unit(self) -> Unit:
        """What is counted: people only where the schema says who is who."""
        return "people" if self.person_id is not None or self.one_row_per_person else "records"

    def refuse_undecided(self) -> None:
        """Raise SchemaError while the role of a column is undecided."""
        if self.undecided:
            shown = ", ".join(self.undecided[:10]) + (" and more" if len(self.undecided) > 10 else "")
            raise SchemaError(
                f"The role of {len(self.undecided)} columns is undecided, so nothing is published: {shown}. Decide in "
                "the schema whether each is identifying, quasi_identifying, sensitive or insensitive."
            )

    def __getitem__(self, name: str) -> Attribute:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise SchemaError(f"The schema declares no column {name!r}.")

    def replacing(self, *changed: Attribute) -> Schema:
        """A copy in which the given attributes take the place of those of the same name."""
        new = {attribute.name: attribute for attribute in changed}
        return replace(self, attributes=tuple(new.get(a.name, a) for a in self.attributes))

    def with_quasi_identifiers(self, names: Iterable[str]) -> Schema:
        """A copy in which exactly ``names`` are quasi-identifying; other former ones become insensitive."""
        wanted = list(names)
        for name in wanted:
            self[name]
        changed = []
        for attribute in self.attributes:
            if attribute.name in wanted:
                changed.append(replace(attribute, role=Role.QUASI_IDENTIFYING))
            elif attribute.role is Role.QUASI_IDENTIFYING:
                changed.append(replace(attribute, role=Role.INSENSITIVE))
        return self.replacing(*changed)

    def without_values(self) -> Schema:
        """A copy in which quasi-identifiers alone say which values they have; of the others role and type are left.

        A categorical column becomes text, since it cannot be declared without its values.
        """
        return replace(self, attributes=tuple(_without_values(attribute) for attribute in self.attributes))

    @cached_property
    def sha256(self) -> str:
        """Hash of the meaning of the schema: nodes of a federation compare it before the first round."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    # ---- reading and writing --------------------------------------------------------------------

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        path = Path(path)
        try:
            if path.stat().st_size > MAX_BYTES:
                raise DataError(f"The schema file {path} is larger than {MAX_BYTES // 2**20} MB.")
            document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise DataError(f"The schema file {path} does not exist.") from None
        except (OSError, UnicodeDecodeError):
            raise DataError(f"The schema file {path} cannot be read as UTF-8 text.") from None
        except tomllib.TOMLDecodeError as error:
            raise SchemaError(f"The schema file {path} is not valid TOML: {error}.") from None
        except RecursionError:
            raise SchemaError(f"The schema file {path} is nested too deeply.") from None
        return cls.from_dict(document, folder=path.parent)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], *, folder: Path | None = None) -> Schema:
        """Build from the parsed TOML document; ``folder`` is where hierarchy files are looked for."""
        texts = ("name", "title", "target", "person_id", "weight", "household")
        _refuse_unknown("The schema", document, {*texts, "one_row_per_person", "missing_values", "attributes"})
        wrong = [key for key in texts if not isinstance(document.get(key, ""), str)]
        if wrong:
            raise SchemaError(f"{wrong[0]} must be a text.")
        alone = document.get("one_row_per_person")
        if alone is not None and not isinstance(alone, bool):
            raise SchemaError("one_row_per_person must be true or false.")
        columns = document.get("attributes")
        if not isinstance(columns, Mapping) or not columns:
            raise SchemaError("The schema declares no attributes.")
        tokens = document.get("missing_values", [])
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise SchemaError("missing_values must be a list of texts.")
        return cls(
            attributes=tuple(_attribute(name, entry, folder) for name, entry in columns.items()),
            name=str(document.get("name", "table")),
            title=str(document.get("title", "")),
            target=document.get("target"),
            person_id=document.get("person_id"),
            one_row_per_person=alone,
            missing_values=tuple(tokens),
            weight=document.get("weight"),
            household=document.get("household"),
        )

    def to_dict(self) -> dict[str, Any]:
        """The document :meth:`from_dict` reads; hierarchies are written out in full."""
        document: dict[str, Any] = {"name": self.name}
        for key in ("title", "target", "person_id", "weight", "household"):
            if getattr(self, key):
                document[key] = getattr(self, key)
        if self.one_row_per_person is not None:
            document["one_row_per_person"] = self.one_row_per_person
        if self.missing_values:
            document["missing_values"] = list(self.missing_values)
        document["attributes"] = {a.name: _entry(a) for a in self.attributes}
        return document


def _attribute(name: str, entry: Any, folder: Path | None) -> Attribute:
    if not isinstance(entry, Mapping):
        raise SchemaError(f"The attribute {name!r} must be a table with a role and a type.")
    known = {"role", "type", "range", "integer", "values", "taxonomy", "hierarchy", "root"}
    _refuse_unknown(f"The attribute {name!r}", entry, known)
    try:
        role = Role(entry.get("role", "undecided"))
    except ValueError:
        raise SchemaError(f"The role of {name!r} must be one of: {', '.join(Role)}.") from None
    kind = entry.get("type", "text")
    if kind == "numeric":
        return _numeric(name, role, entry, folder)
    if kind == "categorical":
        hierarchy = _hierarchy(name, entry, folder)
        if hierarchy is None:
            raise SchemaError(f"The categorical column {name!r} needs values, a taxonomy or a hierarchy.")
        return Categorical(name, role, hierarchy)
    if kind == "text":
        return FreeText(name, role)
    raise SchemaError(f"The type of {name!r} must be numeric, categorical or text.")


def _without_values(attribute: Attribute) -> Attribute:
    if attribute.role is Role.QUASI_IDENTIFYING:
        return attribute
    if isinstance(attribute, Numeric):
        return Numeric(attribute.name, attribute.role, -math.inf, math.inf, attribute.integer)
    return FreeText(attribute.name, attribute.role)


def _numeric(name: str, role: Role, entry: Mapping[str, Any], folder: Path | None) -> Numeric:
    bounds = entry.get("range")
    if bounds is None and role is not Role.QUASI_IDENTIFYING:
        return Numeric(
            name, role, -math.inf, math.inf, bool(entry.get("integer", False)), _hierarchy(name, entry, folder)
        )
    if not (
        isinstance(bounds, list)
        and len(bounds) == 2
        and all(isinstance(b, (int, float)) and not isinstance(b, bool) and math.isfinite(b) for b in bounds)
        and bounds[0] <= bounds[1]
    ):
        raise SchemaError(f"The numeric column {name!r} needs a range of two numbers, the lower first.")
    hierarchy = _hierarchy(name, entry, folder)
    return Numeric(name, role, float(bounds[0]), float(bounds[1]), bool(entry.get("integer", False)), hierarchy)


def _hierarchy(name: str, entry: Mapping[str, Any], folder: Path | None) -> Hierarchy | None:
    given = [key for key in ("values", "taxonomy", "hierarchy") if key in entry]
    if len(given) > 1:
        raise SchemaError(f"The column {name!r} declares {' and '.join(given)}; give one of them.")
    if not given:
        return None
    if given == ["hierarchy"]:
        return read_arx_hierarchy(_inside(folder, entry["hierarchy"], name), name=name)
    return Hierarchy.from_nested(entry[given[0]], root=str(entry.get("root", "*")), name=name)


def _inside(folder: Path | None, file: Any, name: str) -> Path:
    """The path of a hierarchy file, which must lie in the schema's folder."""
    if folder is None or not isinstance(file, str):
        raise SchemaError(f"The hierarchy of {name!r} must be the name of a file beside the schema.")
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise SchemaError(f"The hierarchy file of {name!r} lies outside the schema's folder.")
    return path


def _refuse_unknown(what: str, entry: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(entry) - known)
    if unknown:
        raise SchemaError(f"{what} has unknown keys: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")


def _entry(attribute: Attribute) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": str(attribute.role)}
    if isinstance(attribute, FreeText):
        return {**entry, "type": "text"}
    if isinstance(attribute, Numeric):
        # as floats, so that a range of whole numbers built in Python has the hash of the same one in a file
        bounds = [float(attribute.low), float(attribute.high)]
        stated = {"range": bounds} if attribute.has_range else {}
        entry |= {"type": "numeric", **stated, "integer": attribute.integer}
    else:
        entry |= {"type": "categorical"}
    if attribute.hierarchy is not None:
        entry["root"] = attribute.hierarchy.labels[-1]
        entry["taxonomy"] = attribute.hierarchy.to_nested()
    return entry
