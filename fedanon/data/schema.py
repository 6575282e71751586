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

Rules take the place of lists (docs/reference/schema.md documents every key)::

    [attributes.admitted]
    role = "quasi_identifying"
    type = "date"
    format = "%d/%m/%Y"
    range = ["2020-01-01", "2029-12-31"]

    [attributes.diagnosis]
    role = "sensitive"
    type = "icd10"

Every column of the data must be declared, and its role decided: a column nobody thought about is an error, not a leak.
Where neither ``person_id`` nor ``one_row_per_person = true`` says who is who, whatever is counted are records.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from fedanon.data.attributes import (
    Attribute,
    Categorical,
    FreeText,
    Numeric,
    Role,
    attribute_entry,
    hide_values,
    read_attribute,
    type_name,
)
from fedanon.data.person_key import PersonKey
from fedanon.data.rules import DateRule, take_only
from fedanon.errors import ConfigError, DataError, SchemaError

__all__ = [
    "MAX_BYTES",
    "Attribute",
    "Categorical",
    "FreeText",
    "Numeric",
    "Role",
    "Schema",
    "Unit",
    "type_name",
]

MAX_BYTES = 16 * 2**20


#: what a count is of: people where the schema says who is who, else records
Unit = Literal["people", "records"]


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
    key_fingerprint : of the only key that pseudonyms and shifted dates may be made with; '' for any.
    key : that key, where it is at hand; it is never written or compared.
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
    key_fingerprint: str = ""
    key: PersonKey | None = field(default=None, compare=False, repr=False)

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

    def _check_key_use(self) -> None:
        """Raise SchemaError unless pseudonyms and shifts are made of the person's number."""
        for a in self.attributes:
            if isinstance(a, FreeText) and a.pseudonym and a.name != self.person_id:
                raise SchemaError(f"pseudonym belongs to the person_id column, which {a.name!r} is not.")
            if _shift(a) and self.person_id is None:
                raise SchemaError(f"The dates of {a.name!r} are shifted by person: name the person_id.")
        dates = [a for a in self.attributes if a.name in self.published and _shift(a) is not None]
        if len({_shift(a) for a in dates}) > 1:
            # one date that stays, or moves by another number of days, tells by how much the others moved
            still = next(a.name for a in dates if _shift(a) != max(filter(None, map(_shift, dates))))
            raise SchemaError(
                f"All published dates of a person move alike: give {still!r} the shift_days of the others."
            )
        if self.key_fingerprint and not self.needs_key:
            raise SchemaError("key_fingerprint goes with a column that is a pseudonym or a shifted date.")

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
        """Names of all columns but the identifying and the undecided ones; a pseudonym is published."""
        hidden = (Role.IDENTIFYING, Role.UNDECIDED)
        return [a.name for a in self.attributes if a.role not in hidden or a.name == self.pseudonym]

    @cached_property
    def pseudonym(self) -> str | None:
        """The column that is published as keyed pseudonyms, if any: rows of one person can then be told."""
        attribute = None if self.person_id is None else self[self.person_id]
        return self.person_id if isinstance(attribute, FreeText) and attribute.pseudonym else None

    @cached_property
    def shifted(self) -> tuple[Numeric, ...]:
        """The dates that are moved by as many days as their person's others; none where no person is named."""
        moved = [a for a in self.attributes if isinstance(a, Numeric) and _shift(a)]
        return tuple(moved) if self.person_id is not None else ()

    @property
    def needs_key(self) -> bool:
        """Whether what is declared cannot be published without a key."""
        return self.pseudonym is not None or bool(self.shifted)

    def with_key(self, key: PersonKey) -> Schema:
        """A copy that tables are read with; ConfigError unless the key belongs to the schema."""
        if not self.needs_key:
            raise ConfigError("The schema declares neither a pseudonym nor a shifted date; it takes no key.")
        if self.key_fingerprint not in ("", key.fingerprint):
            raise ConfigError(
                f"The key has the fingerprint {key.fingerprint}, the schema asks for {self.key_fingerprint}: with "
                "another key, pseudonyms would not join those of earlier releases."
            )
        return replace(self, key=key)

    def without_key(self) -> Schema:
        """A copy that declares neither pseudonyms nor shifts, for work in which no row is published."""
        plain = [FreeText(name, self[name].role) for name in [self.pseudonym] if name is not None]
        still = []
        for a in self.shifted:
            assert isinstance(a.rule, DateRule)
            days = a.rule.shift_days
            still.append(replace(a, low=a.low + days, high=a.high - days, rule=replace(a.rule, shift_days=0)))
        return replace(self, key=None, key_fingerprint="").replacing(*plain, *still)

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
        return replace(self, attributes=tuple(hide_values(attribute) for attribute in self.attributes))

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
        texts = ("name", "title", "target", "person_id", "weight", "household", "key_fingerprint")
        take_only(document, {*texts, "one_row_per_person", "missing_values", "attributes"}, "The schema")
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
        schema = cls(
            attributes=tuple(read_attribute(name, entry, folder) for name, entry in columns.items()),
            name=str(document.get("name", "table")),
            title=str(document.get("title", "")),
            target=document.get("target"),
            person_id=document.get("person_id"),
            one_row_per_person=alone,
            missing_values=tuple(tokens),
            weight=document.get("weight"),
            household=document.get("household"),
            key_fingerprint=document.get("key_fingerprint", ""),
        )
        schema._check_key_use()
        return schema

    def to_dict(self) -> dict[str, Any]:
        """The document :meth:`from_dict` reads; hierarchies are written out in full."""
        document: dict[str, Any] = {"name": self.name}
        for key in ("title", "target", "person_id", "weight", "household", "key_fingerprint"):
            if getattr(self, key):
                document[key] = getattr(self, key)
        if self.one_row_per_person is not None:
            document["one_row_per_person"] = self.one_row_per_person
        if self.missing_values:
            document["missing_values"] = list(self.missing_values)
        document["attributes"] = {a.name: attribute_entry(a) for a in self.attributes}
        return document


def _shift(attribute: Attribute) -> int | None:
    """By how many days a date is moved at most; None if it is no date that is published as such."""
    rule = attribute.rule if isinstance(attribute, Numeric) else None
    return rule.shift_days if isinstance(rule, DateRule) else None
