"""Everything a manifest says, held against the file it describes, its schema and its origin."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fedanon._version import __version__
from fedanon.anonymizers import progress
from fedanon.data.hierarchy import MISSING
from fedanon.data.person_key import PersonKey
from fedanon.data.schema import Categorical, Schema
from fedanon.data.table import Table
from fedanon.datasets.source import DataSource
from fedanon.errors import ConfigError, FedanonError
from fedanon.io.dialect import Dialect
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.parquet import batches, column_types, is_parquet, plain_columns
from fedanon.io.parquet_source import ParquetSource
from fedanon.io.release_file import ALL, FileForm, published_texts, read_release, write_release
from fedanon.io.row_order import read_row_key
from fedanon.metrics.information_loss import truthfulness
from fedanon.privacy.base import PrivacyModel
from fedanon.release.conclusion import Conclusion, ReleaseFinding, conclude
from fedanon.release.reconstruction import reconstruct
from fedanon.release.verdicts import Promise, Verdict, claimed_models
from fedanon.release.view import FileView
from fedanon.types import IndexArray
from fedanon.verification.known_release import UNMATCHED, KnownRelease, is_truthful, method_of, with_known_facts
from fedanon.verification.known_series import KnownSeries
from fedanon.verification.promises import Check, evaluate_promises, of_verdict, point

#: the check whether the file is the one that was written
HASH = "hash of the file"
#: the sizes a manifest names
SIZES = {"rows": "rows", "suppressed": "suppressed rows", "classes": "equivalence classes"}


@dataclass(frozen=True)
class Verification:
    """What is held against what.

    Parameters
    ----------
    manifest : with the file it describes.
    declared : the schema of the original table, if it is given.
    original : what the release was made from, if it is given.
    row_key : which row of the original every released row shows, if it is given.
    key : that of the pseudonyms and shifted dates, if it is given.
    series : the releases it belongs to, if they are given.
    """

    manifest: Manifest
    declared: Schema | None = None
    original: Path | DataSource | None = None
    row_key: Path | None = None
    key: PersonKey | None = None
    series: KnownSeries | None = None

    def checks(self, *, rebuild: bool) -> Iterator[Check]:
        """All checks in order; what an error makes impossible is a failed check."""
        parts: list[tuple[str, Callable[[], Iterator[Check]]]] = [
            (HASH, self._file),
            ("schema", self._schemas),
            ("file", self._sizes),
            ("claim", self._claims),
        ]
        if self.original is not None:
            parts.append(("original", self._against_original))
        if rebuild:
            parts.append(("rebuild", self._rebuilt))
        for name, part in parts:
            try:
                yield from part()
            except FedanonError as error:
                yield Check(name, "fail", str(error))

    # ---- the file -------------------------------------------------------------------------------

    def _file(self) -> Iterator[Check]:
        good, bad = "the file is the one that was written", "SHA-256 differs: the file is not the one that was written"
        yield point(HASH, self.manifest.is_of_file, good, bad)

    def _schemas(self) -> Iterator[Check]:
        stated = str(self.manifest.document["schema_sha256"])
        held = self.manifest.schema
        if held is not None:
            # a manifest of version 0.1 holds the whole schema
            expected = str(self.manifest.document.get("schema_held_sha256", stated))
            # a chain of methods publishes by a schema with more quasi-identifiers than that of its table
            agree = self._masks_columns or stated == self.manifest.provenance["schema_sha256"]
            yield point(
                "schema of the manifest",
                held.sha256 == expected and agree,
                "has the hash the manifest names",
                "its hash differs",
            )
        if self.declared is not None:
            known = {stated, str(self.manifest.provenance["schema_sha256"])}
            mine = {self.declared.sha256, _with_missing(self.declared, held).sha256}
            yield point("schema given", bool(mine & known), "is that of the release", "is not that of the release")

    @cached_property
    def schema(self) -> Schema:
        """Of the release: as given, which says more, else as the manifest holds it."""
        held = self.manifest.schema
        if self.declared is not None and (held is None or not self._masks_columns):
            return _with_missing(self.declared, held)
        if held is None:
            raise ConfigError("The manifest holds no schema; give it with --schema.")
        return held

    @property
    def _masks_columns(self) -> bool:
        """Whether a chain of methods took columns as quasi-identifiers that the schema does not call so."""
        return bool(self.manifest.provenance["parameters"].get("masked"))

    @cached_property
    def released(self) -> FileView:
        """The file, read."""
        return read_release(self.manifest.release, self.schema, also=ALL, manifest=self.manifest)

    @cached_property
    def _order(self) -> IndexArray | None:
        """The order of the rows, by the row key."""
        return None if self.row_key is None else read_row_key(self.row_key, file_sha256(self.manifest.release))

    @cached_property
    def _known(self) -> KnownRelease:
        """The file beside its original, if that is given."""
        table = None if self.original is None else self._seen(self._whole)
        return with_known_facts(self.released, table, self.manifest, self._order)

    def _sizes(self) -> Iterator[Check]:
        found = {
            "rows": len(self.released),
            "suppressed": int(self.released.suppressed.sum()),
            "classes": self.released.classes.count,
        }
        wrong = [what for name, what in SIZES.items() if found[name] != self.manifest.document.get(name)]
        sizes = ", ".join(f"{found[name]:,} {what}" for name, what in SIZES.items())
        yield point("sizes", not wrong, sizes, f"the manifest states another number of {', '.join(wrong)}")

    # ---- the promises ---------------------------------------------------------------------------

    @cached_property
    def models(self) -> list[Promise]:
        """What the manifest promises."""
        return claimed_models(self.manifest.claim)

    def _claims(self) -> Iterator[Check]:
        if not self.models:
            yield Check("claim", "open", "the manifest promises nothing")
        yield from (of_verdict(verdict) for verdict in self._verdicts)

    @cached_property
    def _verdicts(self) -> list[Verdict]:
        return evaluate_promises(self._known.view, self.manifest, series=self.series)

    def conclude(self, checks: Sequence[Check]) -> Conclusion:
        """What is to be said first, after these checks; what cannot be read is broken."""
        failed = [_failure(check) for check in checks if check.outcome == "fail"]
        try:
            names = {verdict.name for verdict in self._verdicts}
            beside = [finding for finding in failed if finding.reason not in names]
            return conclude(self._known.view, self._verdicts, failed=beside)
        except FedanonError as error:
            return Conclusion("broken", findings=tuple(failed or [_failure(Check("file", "fail", str(error)))]))

    # ---- the original ---------------------------------------------------------------------------

    @cached_property
    def _origin(self) -> tuple[Table, ParquetSource | None]:
        """The original table as the release was made from it, and where its other columns pass by."""
        if self.original is None:
            raise ConfigError("Give the original with --original.")
        schema = self._keyed(self.declared or self.schema)
        missing: Any = self.manifest.document.get("missing", "error")
        given = self._source
        if is_parquet(given.data[0]) and is_parquet(self.manifest.release):
            source = ParquetSource.open(given.data[0], schema)
            also = {getattr(model, "column", "") for model in self.models}
            return source.table(missing=missing, also=also), source
        return given.load_by(schema, missing=missing), None

    @property
    def _source(self) -> DataSource:
        return self.original if isinstance(self.original, DataSource) else DataSource(data=(str(self.original),))

    def _keyed(self, schema: Schema) -> Schema:
        """The schema with the key, if it needs one: that of the manifest."""
        if not schema.needs_key:
            return schema
        stated = self.manifest.document.get("key_fingerprint")
        if self.key is None:
            raise ConfigError(f"The release was made with the key {stated}; give it with --key.")
        if self.key.fingerprint != stated:
            raise ConfigError(
                f"The key has the fingerprint {self.key.fingerprint}; the release was made with {stated}."
            )
        return schema.with_key(self.key)

    @cached_property
    def _whole(self) -> Table:
        """The original with all columns that can be held, where rows are matched by them."""
        table, source = self._origin
        if source is None or self.manifest.keeps_order or self.row_key is not None:
            return table
        return source.table(missing=table.missing, also=plain_columns(source.path))

    def _against_original(self) -> Iterator[Check]:
        table, _ = self._origin
        made = self.manifest.provenance
        same = table.hash_with(made["schema_sha256"]) == made["data_sha256"]
        yield point(
            "hash of the data", same, "the original is the table it was made from", "the original is another table"
        )
        yield from self._truth(self._seen(self._whole))

    def _truth(self, table: Table) -> Iterator[Check]:
        known, truthful = self._known, is_truthful(self.manifest)
        if known.is_matched or known.matching == "size":
            share = truthfulness(table, reconstruct(known.view, table))
            said = f"{share:.2%} of the published cells hold the original value"
            yield point("truth", share == 1, said, said) if truthful else Check("truth", "open", said)
        elif known.matching == "ambiguous":
            yield Check("truth", "pass", "every row fits a record of its own: its cells hold the original values")
        elif known.matching == "none":
            yield Check("truth", "fail", "there is no way in which every row fits a record of its own")
        elif known.matching == "changed":
            yield Check("truth", "open", f"not checked: {UNMATCHED['changed']}")

    def _seen(self, table: Table) -> Table:
        """The table with what a chain of methods masked as quasi-identifiers, or a series added."""
        if self.series is not None and self.original is not None:
            return self.series.with_counterfeits(table, self._source)
        method = self._method
        masked: Table = method.masked_table(table) if hasattr(method, "masked_table") else table
        return masked

    @cached_property
    def _method(self) -> Any:
        return method_of(self.manifest)

    @property
    def _needs_schema(self) -> bool:
        """Whether the method needs values of a column of which the manifest holds only role and type."""
        needed = any(model.needs_more_than(self.schema) for model in self.models if isinstance(model, PrivacyModel))
        return needed or (self._masks_columns and self.declared is None)

    def _rebuilt(self) -> Iterator[Check]:
        table, source = self._origin
        seed, version = self.manifest.provenance["seed"], self.manifest.provenance["version"]
        if seed is None:
            yield Check("rebuild", "open", "the manifest names no seed, so the release cannot be made again")
            return
        if int(self.manifest.claim.get("series", {}).get("releases", 1)) > 1:
            yield Check("rebuild", "open", "the release follows others, and is not made from its table alone")
            return
        made = self.manifest.provenance.get("made", {})
        if made and "runs" not in made:
            yield Check("rebuild", "open", "runs were joined in limited wall time, which cannot be done alike again")
            return
        if self._needs_schema:
            yield Check("rebuild", "open", "the manifest does not hold the values the method needs; give --schema")
            return
        with progress.repeating(made.get("runs", ())):
            release = self._method.anonymize(table, rng=seed)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.manifest.release.name
            write_release(release, self._seen(table), path, form=self._form(), source=source)
            same, what = self._compare(path)
        other = "" if version == __version__ else f" (made by fedanon {version}, rebuilt by {__version__})"
        if not same and goes_by_clock(self.manifest.provenance):
            yield Check("rebuild", "open", f"gives other {what}: the search went by wall time{other}")
            return
        yield point("rebuild", same, f"gives the same {what}{other}", f"gives other {what}{other}")

    def _form(self) -> FileForm:
        """How the file was written; in the order of the original where its own order is not known."""
        order = self._order
        return FileForm(
            dialect=self.manifest.dialect or Dialect(),
            formula_guard=self.manifest.formula_guard,
            keep_order=order is None,
            order=order,
        )

    def _compare(self, path: Path) -> tuple[bool, str]:
        """Whether a file made again is the released one, and what was compared: bytes, or rows in any order."""
        released = self.manifest.release
        if self.row_key is not None or self.manifest.document.get("row_order", "kept") != "shuffled":
            return file_sha256(path) == file_sha256(released), "bytes"
        one, two = (_counted_rows(file, self.manifest.dialect) for file in (path, released))
        return one == two, "rows"


def _failure(check: Check) -> ReleaseFinding:
    if check.name == HASH:
        return ReleaseFinding(kind="file_changed")
    return ReleaseFinding(kind="check_failed", reason=check.name)


def _counted_rows(path: Path, dialect: Dialect | None) -> Counter[tuple[str, ...]]:
    """How often every row occurs in a file, with the names of the columns."""
    if is_parquet(path):
        names = [name for name, _ in column_types(path)[0]]
        parts = batches(path, names)
        return Counter([(*names,), *(tuple(map(repr, row.values())) for part in parts for row in part.to_pylist())])
    frame = published_texts(path, dialect)
    cells = [frame[name].map(repr).tolist() for name in frame.columns]
    return Counter([(*frame.columns,), *zip(*cells, strict=True)])


def goes_by_clock(provenance: Mapping[str, Any]) -> bool:
    """Whether a search was limited by wall time, and not written down: that of blocks, or of a step of a chain."""
    parameters = provenance["parameters"]
    parts = [parameters, *(step.get("parameters", {}) for step in parameters.get("steps", ()))]
    timed = any("seconds" in part and part.get("iterations") is None for part in parts)
    return timed and "made" not in provenance


def _with_missing(declared: Schema, held: Schema | None) -> Schema:
    """The schema with the leaf for missing values wherever that of the release has it."""
    changed: Sequence[Categorical] = [
        replace(a, hierarchy=a.hierarchy.with_missing())
        for a in declared.quasi_identifiers
        if isinstance(a, Categorical) and held is not None and a.name in held.names and _has_missing(held, a.name)
    ]
    return declared.replacing(*changed)


def _has_missing(schema: Schema, name: str) -> bool:
    attribute = schema[name]
    return isinstance(attribute, Categorical) and MISSING in attribute.hierarchy.codes
