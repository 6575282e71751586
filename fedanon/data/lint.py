"""A second look at a schema with its data: what a steward may have overlooked. Names and counts only."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from fedanon.data.groups import Groups
from fedanon.data.schema import Attribute, Categorical, Role, Schema
from fedanon.data.table import Table, texts
from fedanon.types import IndexArray

DETERMINED = 0.95
NEARLY_UNIQUE = 0.9
ENOUGH_ROWS = 20
WIDE_FLAT_TREE = 20


def lint_schema(table: Table) -> list[str]:
    """Warnings about a table's schema, the graver ones first.

    Looked for are: columns carried along that are nearly unique, that bear the name of an identifier or hold values of
    its shape (HIPAA Safe Harbor's 18 kinds), or that give a quasi-identifier away; a schema without a sensitive column;
    long flat taxonomies.
    """
    carried = [a for a in table.schema.attributes if a.role in (Role.INSENSITIVE, Role.SENSITIVE)]
    codes = {a.name: _codes(table.frame[a.name]) for a in carried}
    warnings = [*_nearly_unique(carried, codes, len(table)), *_telling_names(carried), *_telling_shapes(carried, table)]
    for attribute in carried:
        if attribute.name != table.schema.target:
            warnings += _determined(attribute, codes[attribute.name], table)
    if not table.schema.sensitive:
        warnings.append("No column is sensitive; l-diversity and t-closeness then protect nothing.")
    return [*warnings, *_flat_trees(table)]


def _codes(column: pd.Series[str]) -> IndexArray:
    """The values of a column as numbers; missing is a value too."""
    return np.asarray(pd.factorize(column, use_na_sentinel=False)[0], dtype=np.int64)


def _nearly_unique(carried: list[Attribute], codes: dict[str, IndexArray], rows: int) -> Iterator[str]:
    for attribute in carried:
        distinct = len(np.unique(codes[attribute.name]))
        if attribute.role is Role.INSENSITIVE and rows >= ENOUGH_ROWS and distinct >= NEARLY_UNIQUE * rows:
            yield (
                f"The insensitive column {attribute.name!r} has {distinct} values on {rows} rows: it may name "
                "a record. Should it be identifying?"
            )


def _telling_names(carried: list[Attribute]) -> Iterator[str]:
    for attribute in carried:
        if attribute.role is not Role.INSENSITIVE:
            continue
        if suggests(attribute.name, IDENTIFYING):
            kinds = "; ".join(kind.name for kind in kinds_of_name(attribute.name)) or "other identifiers"
            yield (
                f"The column {attribute.name!r} is insensitive, but its name is that of an identifier "
                f"(HIPAA Safe Harbor: {kinds})."
            )
        elif suggests(attribute.name, QUASI_IDENTIFYING):
            yield f"The column {attribute.name!r} is insensitive, but its name is that of a quasi-identifier."


def _telling_shapes(carried: list[Attribute], table: Table) -> Iterator[str]:
    for attribute in carried:
        kind = kind_of_shape(table.frame[attribute.name])
        if kind is not None:
            yield (
                f"The {attribute.role} column {attribute.name!r} is published as it is, and most of its values have "
                f"the shape of an identifier (HIPAA Safe Harbor: {kind.name})."
            )


def _determined(attribute: Attribute, codes: IndexArray, table: Table) -> Iterator[str]:
    groups = Groups.from_labels(codes)
    # small groups agree by chance
    judged = groups.sizes[groups.labels] >= 3
    if groups.count < 2 or judged.mean() < 0.2:
        return
    for i, column in enumerate(table.columns):
        quasi = table.codes[judged, i].astype(np.int64)
        known = _agreement(codes[judged], quasi)
        guessed = _agreement(np.zeros_like(quasi), quasi)
        if known >= DETERMINED and 1 - known <= (1 - guessed) / 2 and guessed < 1:
            yield (
                f"The {attribute.role} column {attribute.name!r} determines the quasi-identifier {column.name!r} "
                f"on {known:.0%} of the rows, and so undoes its generalization."
            )


def _agreement(groups: IndexArray, values: IndexArray) -> float:
    """Share of the rows whose value is the most frequent one of their group."""
    pairs = Groups.equal_rows(np.column_stack([groups, values]))
    largest = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    np.maximum.at(largest, groups[pairs.first_rows], pairs.sizes)
    return float(largest.sum() / len(groups))


def _flat_trees(table: Table) -> Iterator[str]:
    for attribute in table.schema.quasi_identifiers:
        if isinstance(attribute, Categorical):
            tree = attribute.hierarchy
            if int(tree.height[tree.root]) == 1 and tree.n_leaves > WIDE_FLAT_TREE:
                yield (
                    f"The quasi-identifier {attribute.name!r} has {tree.n_leaves} values in a flat taxonomy: "
                    "two of them can only be generalized to everything."
                )


# ---- HIPAA Safe Harbor's 18 kinds of identifiers, and the columns that look like one -------------
#
# The list is that of 45 CFR 164.514(b)(2)(i), (A) to (R). A column is named by a word of its name, or by the shape of
# most of its values; both are hints for a person to follow, and an empty answer proves nothing. Values are looked at,
# never reported.


#: share of the values that must have the shape
MOST = 0.5
#: distinct values that are looked at
LOOKED_AT = 2_000
#: a column of text is (nearly) one of its own for every record
NEARLY_UNIQUE, ENOUGH_ROWS = 0.9, 20


@dataclass(frozen=True)
class Kind:
    """A kind of identifier.

    Parameters
    ----------
    letter : of the regulation's list.
    name : for people.
    hints : words of column names, in English and in Portuguese without accents.
    shape : of values, matched as a whole; None if they have none.
    """

    letter: str
    name: str
    hints: frozenset[str]
    shape: re.Pattern[str] | None = None


def _kind(letter: str, name: str, hints: str, shape: str | None = None) -> Kind:
    return Kind(letter, name, frozenset(hints.split()), None if shape is None else re.compile(shape, re.IGNORECASE))


_DATE = r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})(?:[T ]\d{1,2}:\d{2}.*)?"
_PHONE = r"(?:\+\d{1,3}[ .-]?\d{2,3}|\(\d{2,3}\)|\d{3}[ .-])[ .-]?\d{3,5}[ .-]?\d{4}"
_IP = r"\d{1,3}(?:\.\d{1,3}){3}|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}|(?:[0-9a-f]{0,4}:){2,6}:?[0-9a-f]{1,4}"

KINDS = (
    _kind("A", "names", "name names surname firstname lastname fullname forename nome nomes sobrenome mae pai"),
    _kind(
        "B",
        "geographic subdivisions smaller than a state",
        "address street addr city town county municipality district zip zipcode postal postcode cep precinct latitude "
        "longitude lat lon geocode endereco rua logradouro bairro cidade municipio distrito",
        r"\d{5}-\d{3,4}|-?\d{1,3}\.\d{4,}, ?-?\d{1,3}\.\d{4,}",
    ),
    _kind(
        "C",
        "dates other than the year, and ages over 89",
        "date dates birth birthdate birthday dob born admission discharge death age nascimento admissao alta "
        "obito idade",
        _DATE,
    ),
    _kind("D", "telephone numbers", "phone telephone tel mobile cellphone telefone celular fone", _PHONE),
    _kind("E", "fax numbers", "fax"),
    _kind("F", "e-mail addresses", "email mail", r"[^@\s]+@[^@\s]+\.[a-z]{2,}"),
    _kind(
        "G",
        "social security numbers",
        "ssn nino cpf rg pis nis",
        r"\d{3}-\d{2}-\d{4}|\d{3}\.\d{3}\.\d{3}-\d{2}|[a-z]{2}\d{6}[a-d]",
    ),
    _kind("H", "medical record numbers", "mrn nhs chart cns sus prontuario"),
    _kind("I", "health plan beneficiary numbers", "beneficiary member policy convenio carteirinha beneficiario"),
    _kind("J", "account numbers", "account iban conta", r"[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){3,7}(?: ?[a-z0-9]{1,3})?"),
    _kind("K", "certificate and license numbers", "license licence certificate passport crm cnh passaporte certidao"),
    _kind(
        "L", "vehicle identifiers and license plates", "plate vin vehicle placa veiculo chassi", r"[a-hj-npr-z0-9]{17}"
    ),
    _kind(
        "M",
        "device identifiers and serial numbers",
        "serial device imei aparelho",
        r"(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}",
    ),
    _kind("N", "web addresses", "url website homepage", r"(?:https?://|www\.)\S+"),
    _kind("O", "IP addresses", "ip ipaddress", _IP),
    _kind("P", "biometric identifiers", "biometric fingerprint voiceprint biometria"),
    _kind("Q", "full-face photographs and comparable images", "photo image picture portrait foto imagem retrato"),
    _kind(
        "R",
        "any other unique number, characteristic or code",
        "id ids identifier uuid guid codigo matricula",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
)

Sign = Literal["name", "shape", "unique"]


@dataclass(frozen=True)
class Lookalike:
    """A column that looks like an identifier.

    Parameters
    ----------
    kind : which.
    column : its name.
    role : what the schema says of it.
    sign : its name, the shape of its values, or that nearly every record has a value of its own.
    """

    kind: Kind
    column: str
    role: Role
    sign: Sign

    @property
    def published(self) -> bool:
        """Whether the column is published as it is."""
        return self.role in (Role.SENSITIVE, Role.INSENSITIVE)


def safe_harbor(schema: Schema, frame: pd.DataFrame | None = None) -> list[Lookalike]:
    """The columns of a schema that look like one of the 18 kinds, in the order of the list.

    Parameters
    ----------
    schema : of the table.
    frame : its columns, as many as are at hand; quasi-identifiers are judged by their names alone.
    """
    found = [look for attribute in schema.attributes for look in _looks(attribute, frame)]
    return sorted(found, key=lambda look: (look.kind.letter, schema.names.index(look.column)))


def kinds_of_name(name: str) -> list[Kind]:
    """The kinds a column's name suggests."""
    plain = {_without_accents(word) for word in words(_without_accents(name))}
    return [kind for kind in KINDS if plain & kind.hints]


def kind_of_shape(values: pd.Series[Any]) -> Kind | None:
    """The kind of which most values have the shape, if any; values that are missing do not count."""
    distinct = pd.Series(texts(values).dropna().unique()[:LOOKED_AT], dtype=object)
    shares = [(kind, _share(distinct, kind.shape)) for kind in KINDS if kind.shape is not None and len(distinct)]
    kind, share = max(shares, key=lambda pair: pair[1], default=(None, 0.0))
    return kind if share > MOST else None


def _looks(attribute: Attribute, frame: pd.DataFrame | None) -> Iterable[Lookalike]:
    name, role = attribute.name, attribute.role
    named = kinds_of_name(name)
    yield from (Lookalike(kind, name, role, "name") for kind in named)
    if frame is None or name not in frame or role is Role.QUASI_IDENTIFYING:
        return
    shaped = kind_of_shape(frame[name])
    if shaped is not None:
        if shaped not in named:
            yield Lookalike(shaped, name, role, "shape")
    elif not named and _is_nearly_unique(frame[name]):
        yield Lookalike(KINDS[-1], name, role, "unique")


def _is_nearly_unique(values: pd.Series[Any]) -> bool:
    """Text with a value of its own for nearly every record; measured numbers may be so without naming anyone."""
    kept = texts(values).dropna()
    if len(kept) < ENOUGH_ROWS or kept.nunique() < NEARLY_UNIQUE * len(kept):
        return False
    return bool(pd.to_numeric(kept, errors="coerce").isna().any())


def _share(values: pd.Series[Any], shape: re.Pattern[str]) -> float:
    return float(values.map(lambda value: shape.fullmatch(str(value).strip()) is not None).mean())


def _without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


# ---- What the name of a column suggests about its role -------------------------------------------


def _hints(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: direct identifiers: HIPAA Safe Harbor's list (45 CFR 164.514(b)(2)) and the usual names of other countries
IDENTIFYING = _hints(
    "id ids identifier uuid guid name names surname firstname lastname fullname forename ssn cpf cns rg nhs nino mrn "
    "email mail phone telephone tel mobile fax address street addr passport license licence plate vin account "
    "beneficiary certificate serial device ip ipaddress url website biometric fingerprint photo image"
)
#: the names under which one person's rows are told apart
PERSON = _hints("person patient subject participant individual respondent member mrn ssn cpf cns nhs")
#: indirect identifiers: things a neighbor may know
QUASI_IDENTIFYING = _hints(
    "age sex gender race ethnicity ethnic zip zipcode postal postcode cep birth birthdate birthday dob born education "
    "educ school schooling marital married occupation job profession workclass employer country nationality native "
    "citizenship language religion state county city town municipality region district income salary wage household "
    "height weight admission discharge death date"
)
#: what may harm a person when it becomes known
SENSITIVE = _hints("diagnosis disease icd hiv condition outcome treatment medication")
#: codes of places, which are text even where they are made of digits
POSTAL = _hints("zip zipcode postal postcode cep")

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words(name: str) -> set[str]:
    """The words of a column name: 'patientName', 'patient_name' and 'Patient name' have the same."""
    return {word.lower() for word in _WORDS.findall(name)} | {name.lower()}


def suggests(name: str, hints: frozenset[str]) -> bool:
    """Whether a word of the column's name is one of ``hints``."""
    return not words(name).isdisjoint(hints)
