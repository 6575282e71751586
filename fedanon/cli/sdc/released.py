"""A file that `sdc apply` wrote, read back for its risk: by the keys of its chain, without the dropped columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.data.schema import Schema
    from fedanon.data.table import Table
    from fedanon.io.manifest import Manifest
    from fedanon.release.view import FileView


@dataclass(frozen=True)
class ReleasedKeys:
    """A released file with its keys as quasi-identifiers.

    Parameters
    ----------
    view : in the order of the original, where that is given and its rows can be told.
    table : the original with the same keys, if given.
    matched : whether row i of the view shows row i of the table.
    """

    view: FileView
    table: Table | None
    matched: bool

    @property
    def weights(self) -> Any:
        """Sampling weights of the rows, where the original gives them."""
        return self.table.weights if self.table is not None and self.matched else None

    @property
    def households(self) -> Any:
        """Households of the rows, where the original gives them."""
        return self.table.households if self.table is not None and self.matched else None


def read_released_keys(
    path: Path,
    manifest: Manifest,
    schema: Schema | None,
    keys: Sequence[str],
    table: Table | None,
    row_key: Path | None,
) -> ReleasedKeys:
    """Read a release by its keys: those given, or those of the chain, or its quasi-identifiers.

    Parameters
    ----------
    path, manifest : the file, and the manifest beside it.
    schema : of the original table; that in the manifest if None.
    keys : names of the keys, if they are chosen.
    table : the original, if it is given.
    row_key : says which row of the original every row shows.
    """
    from fedanon.data.key_choice import with_quasi_identifiers
    from fedanon.io.manifest import file_sha256
    from fedanon.io.release_file import ALL, read_release
    from fedanon.io.row_order import read_row_key
    from fedanon.release.view import FileView
    from fedanon.verification import with_known_facts

    declared = schema or manifest.declared_schema
    if declared is None:
        raise ConfigError("Give the schema of the original table with --schema; the manifest does not hold it.")
    parameters = manifest.provenance.get("parameters", {})
    masked = [name for name in parameters.get("masked", []) if name in declared.names]
    of_chain = parameters.get("variables", {}).get("used", {}).get("keys", [])
    chosen = list(keys) or of_chain or [a.name for a in declared.quasi_identifiers]
    quasi = [a.name for a in declared.quasi_identifiers]
    wide = read_release(path, declared.with_quasi_identifiers([*quasi, *masked]), also=ALL)
    frame = wide.frame.copy()
    for name in (name for name in masked if name not in chosen):
        frame[name] = frame[name].mask(frame[name].isin(["*", "(missing)"]))
    narrow = FileView.from_texts(_roles(declared, chosen, masked), frame, wide.suppressed)
    order = None if row_key is None else read_row_key(row_key, file_sha256(path))
    original = None if table is None else with_quasi_identifiers(table, chosen)
    known = with_known_facts(narrow, original, manifest, order)
    return ReleasedKeys(known.view, original, known.is_matched)


def _roles(declared: Schema, keys: Sequence[str], masked: Sequence[str]) -> Schema:
    """Return the schema in which only the keys are quasi-identifiers; a masked number may have left its range."""
    from fedanon.data.schema import Numeric, Role

    part = declared.with_quasi_identifiers(keys)
    changed = []
    for name in (name for name in masked if name not in keys):
        role = Role.INSENSITIVE if declared[name].role is Role.QUASI_IDENTIFYING else declared[name].role
        attribute = replace(part[name], role=role)
        if isinstance(attribute, Numeric):
            attribute = replace(attribute, low=float("-inf"), high=float("inf"), integer=False, hierarchy=None)
        changed.append(attribute)
    return part.replacing(*changed)
