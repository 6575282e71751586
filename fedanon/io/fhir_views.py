"""Views of SQL on FHIR (v2): a ViewDefinition turns FHIR resources into rows.

Paths are FHIRPath, evaluated by fhirpathpy. Of a view ``constant``, ``where``, and of ``select`` nested ``select``,
``column``, ``forEach``, ``forEachOrNull`` and ``unionAll`` are understood; ``repeat`` and columns that hold a
``collection`` are refused. ``ofType``, ``getResourceKey`` and ``getReferenceKey`` are written out before a path is
compiled, since they depend on the name of the JSON element.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from fedanon.errors import ConfigError, DataError

_KNOWN = {"column", "select", "forEach", "forEachOrNull", "unionAll"}
_OF_TYPE = re.compile(r"(\w+)\.ofType\(\s*(?:FHIR\.)?(\w+)\s*\)")
_REFERENCE = re.compile(r"\.?getReferenceKey\(\s*(?:FHIR\.)?(\w*)\s*\)$")

Row = dict[str, Any]


@dataclass(frozen=True)
class FhirView:
    """A ViewDefinition; build it with :meth:`read`.

    Parameters
    ----------
    name : of its file, for messages.
    document : the parsed JSON.
    """

    name: str
    document: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> FhirView:
        """Read a view from its JSON file and check its parts; paths are checked when they are used."""
        try:
            document = json.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise DataError(f"The view {path} does not exist.") from None
        except (OSError, ValueError, RecursionError):
            raise DataError(f"The view {path.name} is not a JSON file.") from None
        view = cls(path.name, document if isinstance(document, dict) else {})
        if not isinstance(view.document.get("resource"), str) or not isinstance(view.document.get("select"), list):
            raise ConfigError(f"The view {path.name} is no ViewDefinition: it needs a 'resource' and a 'select'.")
        versions = view.document.get("fhirVersion", ["4.0.1"])
        if not any(
            str(version).startswith("4.") for version in ([versions] if isinstance(versions, str) else versions)
        ):
            raise ConfigError(f"The view {path.name} is made for another version of FHIR; R4 (4.0) is read.")
        view.columns  # noqa: B018  checked now, not in the middle of the data
        return view

    @property
    def resource(self) -> str:
        """The type of the resources it is about."""
        return str(self.document["resource"])

    @cached_property
    def columns(self) -> list[str]:
        """The names of its columns, in order."""
        names = [name for select in self.document["select"] for name in self._columns_of(select)]
        if len(set(names)) < len(names):
            raise ConfigError(f"The view {self.name} names a column twice.")
        if not names:
            raise ConfigError(f"The view {self.name} has no columns.")
        return names

    def rows(self, resources: Sequence[Mapping[str, Any]]) -> list[Row]:
        """The rows of all resources, in their order."""
        conditions = [_Path(str(entry.get("path", "")), self._constants) for entry in self.document.get("where", [])]
        chosen = [each for each in resources if all(condition.of(each) == [True] for condition in conditions)]
        found = [row for each in chosen for row in self._cross(self.document["select"], each)]
        for name in self.columns:
            several = sum(isinstance(row.get(name), list) for row in found)
            if several:
                raise DataError(
                    f"The column {name!r} of the view {self.name} has several values in {several} rows. Take one with "
                    ".first(), or write them as rows with forEach."
                )
        return found

    # ---- the parts of a view --------------------------------------------------------------------

    @cached_property
    def _constants(self) -> dict[str, Any]:
        given = {}
        for entry in self.document.get("constant", []):
            values = [value for key, value in entry.items() if key.startswith("value")]
            if not isinstance(entry.get("name"), str) or len(values) != 1:
                raise ConfigError(f"A constant of the view {self.name} needs a name and one value.")
            given[entry["name"]] = values[0]
        return given

    @cached_property
    def _paths(self) -> dict[str, _Path]:
        return {}

    def _path(self, text: str) -> _Path:
        if text not in self._paths:
            self._paths[text] = _Path(text, self._constants)
        return self._paths[text]

    def _columns_of(self, select: Any) -> Iterator[str]:
        if not isinstance(select, Mapping) or (unknown := sorted(set(select) - _KNOWN - {"id", "extension"})):
            what = ", ".join(unknown) if isinstance(select, Mapping) else "a select that is no object"
            raise ConfigError(f"The view {self.name} uses what is not understood here: {what}.")
        for column in select.get("column", []):
            if column.get("collection"):
                raise ConfigError(f"A column of the view {self.name} is a collection, which no cell can hold.")
            if not isinstance(column.get("name"), str) or not isinstance(column.get("path"), str):
                raise ConfigError(f"Every column of the view {self.name} needs a name and a path.")
            yield column["name"]
        for nested in select.get("select", []):
            yield from self._columns_of(nested)
        united = [list(self._columns_of(each)) for each in select.get("unionAll", [])]
        if any(names != united[0] for names in united):
            raise ConfigError(f"The parts of a unionAll of the view {self.name} have different columns.")
        yield from united[0] if united else []

    def _cross(self, selects: Sequence[Mapping[str, Any]], focus: Any) -> Iterator[Row]:
        """Every combination of the rows of several selects."""
        for parts in product(*(list(self._of_select(select, focus)) for select in selects)):
            yield {name: value for part in parts for name, value in part.items()}

    def _of_select(self, select: Mapping[str, Any], focus: Any) -> Iterator[Row]:
        for each in self._foci(select, focus):
            own = {column["name"]: self._path(column["path"]).value(each) for column in select.get("column", [])}
            nested = list(self._cross(select.get("select", []), each))
            united = [row for part in select.get("unionAll", []) for row in self._of_select(part, each)]
            for row in nested:
                yield from ({**own, **row, **more} for more in (united if "unionAll" in select else [{}]))

    def _foci(self, select: Mapping[str, Any], focus: Any) -> list[Any]:
        if "forEach" in select:
            return self._path(str(select["forEach"])).of(focus)
        if "forEachOrNull" in select:
            return self._path(str(select["forEachOrNull"])).of(focus) or [None]
        return [focus]


class _Path:
    """A FHIRPath expression, compiled once."""

    def __init__(self, text: str, constants: Mapping[str, Any]) -> None:
        self._text, self._constants = text, dict(constants)
        reference = _REFERENCE.search(text)
        self._of_type = reference.group(1) if reference else None
        plain = _REFERENCE.sub(".reference" if reference and reference.start() else "reference", text)
        plain = plain.replace("getResourceKey()", "id")
        plain = _OF_TYPE.sub(lambda found: found.group(1) + found.group(2)[:1].upper() + found.group(2)[1:], plain)
        try:
            self._compiled = _fhirpath().compile(plain)
        except ConfigError:
            raise
        except Exception:  # the parser's own errors are of many kinds
            raise ConfigError(f"The path {text!r} of the view is no FHIRPath expression.") from None

    def of(self, focus: Any) -> list[Any]:
        """What the path gives of an element; nothing of nothing."""
        if focus is None:
            return []
        try:
            found = self._compiled(focus, self._constants)
        except Exception:  # the evaluator's own errors may quote a value
            raise ConfigError(f"The path {self._text!r} of the view cannot be evaluated on the resources.") from None
        values = found if isinstance(found, list) else [found]
        return values if self._of_type is None else list(self._keys(values))

    def value(self, focus: Any) -> Any:
        """The only value; None if there is none, and a list if there are several."""
        found = self.of(focus)
        if any(isinstance(value, (dict, list)) for value in found):
            raise ConfigError(f"The path {self._text!r} of the view gives an element with parts; name one of them.")
        values = [value if isinstance(value, (str, bool, int, float)) else str(value) for value in found]
        return (values[0] if values else None) if len(values) < 2 else values

    def _keys(self, references: Sequence[Any]) -> Iterator[str]:
        """The ids that references name, of the wanted type; a bundle's own (urn:uuid:) say no type."""
        for reference in map(str, references):
            kind, _, key = reference.rpartition("/")
            if not kind:
                yield reference.removeprefix("urn:uuid:")
            elif not self._of_type or kind.rpartition("/")[2] == self._of_type:
                yield key


def _fhirpath() -> Any:
    """The library, which is no dependency of the core."""
    try:
        import fhirpathpy
    except ModuleNotFoundError:
        raise ConfigError("FHIR needs fhirpathpy: pip install 'fedanon[fhir]'.") from None
    return fhirpathpy
