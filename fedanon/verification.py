"""Whether a released file is what it was said to be, and what it gives away: `fedanon check` and `fedanon verify`.

:func:`check_release` reads the file alone (with the original at hand also loss and truth) and raises where a promise is
broken; :class:`Verification` holds a manifest against the file it describes, its schema and its origin, and says of
every point whether it holds. Whether a promise holds is decided for both by :func:`evaluate_promises`. Both see the
file as a :class:`fedanon.release.view.FileView` and compute nothing of their own: numbers are those of
:mod:`fedanon.metrics`, verdicts those of :mod:`fedanon.release.verdicts`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from fedanon._version import __version__
from fedanon.anonymizers import ANONYMIZERS, progress
from fedanon.data.hierarchy import MISSING
from fedanon.data.readers import read_table
from fedanon.data.schema import Categorical, Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, FedanonError, PrivacyViolationError
from fedanon.fields import build
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.parquet import is_parquet
from fedanon.io.parquet_source import ParquetSource
from fedanon.io.release_file import read_release, write_release
from fedanon.metrics import evaluate, evaluate_view
from fedanon.metrics.information_loss import truthfulness
from fedanon.privacy.base import PrivacyModel
from fedanon.release.reconstruction import reconstruct
from fedanon.release.release import Release
from fedanon.release.verdicts import Promise, Verdict, claimed_models, evaluate_claim
from fedanon.release.view import FileView
from fedanon.sdc.methods.pipeline import Pipeline

DOUBTS = {
    "people": "not checked: people can be counted only with --original",
    "federation": "not checked: one node's file cannot show it; someone who knows the node is held off by the k "
    "of the node alone",
    "population": "not checked: the population file is not at hand",
    "mechanism": "not checked: it is a promise about how the release is made, which no file can show",
    "schema": "not checked: it needs the taxonomy of the column, which the manifest does not hold; give --schema",
}
#: the sizes a manifest names
SIZES = {"rows": "rows", "suppressed": "suppressed rows", "classes": "equivalence classes"}


#: what a file shows, and what it shows beside its original
VIEW_METRICS = ("k_reached", "average_class_size", "prosecutor_risk", "marketer_risk")
ORIGINAL_METRICS = ("ncp", "ncp_published", "truthfulness", "linkage_expected", "linkage_expected_share", "il")


# ---- what both commands evaluate -----------------------------------------------------------------


def evaluate_promises(
    view: FileView, manifest: Manifest | None, required: Sequence[PrivacyModel] = ()
) -> list[Verdict]:
    """The verdicts on what is required of a file, by what it shows, then on what its manifest claims."""
    verdicts = evaluate_claim(view, required, strict=True)
    claimed = evaluate_claim(view, claimed_models(manifest.claim) if manifest else [])
    return [*verdicts, *(verdict for verdict in claimed if verdict not in verdicts)]


def has_rows_of(view: FileView, table: Table, manifest: Manifest | None) -> bool:
    """Whether the rows of a file are those of the original, in the same order."""
    return len(view) == len(table) and (manifest is None or manifest.keeps_order)


def with_known_facts(view: FileView, table: Table | None, manifest: Manifest | None) -> FileView:
    """The view with what its texts do not show: how columns were generalized, and the people of the original."""
    known = replace(view, columnwise=manifest is not None and manifest.columnwise)
    return known if table is None or not has_rows_of(view, table, manifest) else replace(known, persons=table.persons)


# ---- the file, and what it promises --------------------------------------------------------------


@dataclass(frozen=True)
class CheckedRelease:
    """A released file of which no promise is broken.

    Parameters
    ----------
    metrics : what it costs and risks, by name.
    claim : of the manifest beside it, whose hash is that of the file; None without a manifest.
    verdicts : on what was required and claimed; some may be left open.
    """

    metrics: dict[str, Any]
    claim: dict[str, Any] | None
    verdicts: list[Verdict]

    @property
    def checks(self) -> list[Check]:
        """The verdicts as lines for people."""
        return [_of_verdict(verdict) for verdict in self.verdicts]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the metrics, the claim and, if there are any, the promises left open with the reason."""
        left = {check.name: check.text for check in self.checks if check.outcome == "open"}
        return {**self.metrics, "manifest": self.claim, **({"open": left} if left else {})}


def check_release(
    path: Path, schema: Schema, *, required: Sequence[PrivacyModel] = (), table: Table | None = None
) -> CheckedRelease:
    """Measure a released file; raise PrivacyViolationError where it breaks its manifest's claim or ``required``.

    Parameters
    ----------
    path : the released file; a manifest beside it is compared with it.
    schema : of the original table.
    required : what every class has to satisfy beside what the manifest claims.
    table : the original, to count people and to measure loss, truth and linkage.
    """
    manifest = Manifest.beside(path)
    if manifest is not None and not manifest.is_of_file:
        raise PrivacyViolationError(f"The file {path.name} is not the one its manifest describes (SHA-256 differs).")
    models = [*required, *(claimed_models(manifest.claim) if manifest else [])]
    view = read_release(path, schema, also={getattr(model, "column", "") for model in models})
    view = with_known_facts(view, table, manifest)
    metrics: dict[str, Any] = {
        "n": len(view),
        "suppressed": int(view.suppressed.sum()),
        "classes": view.classes.count,
        **evaluate_view(view, VIEW_METRICS),
    }
    metrics["k_reached"] = view.smallest_class
    if table is not None and (manifest is None or manifest.keeps_order):
        metrics |= evaluate(table, reconstruct(view, table), ORIGINAL_METRICS)
    verdicts = evaluate_promises(view, manifest, required)
    for verdict in verdicts:
        if verdict.holds is False:
            raise PrivacyViolationError(f"The release does not keep {verdict.name}: {verdict.reason}.")
    return CheckedRelease(metrics, None if manifest is None else {"verified_hash": True, **manifest.claim}, verdicts)


# ---- the manifest, point by point ----------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """One line of the answer; ``open`` is neither passed nor failed."""

    name: str
    outcome: Literal["pass", "fail", "open"]
    text: str


def _check(name: str, holds: bool, good: str, bad: str) -> Check:
    return Check(name, "pass" if holds else "fail", good if holds else bad)


@dataclass(frozen=True)
class Verification:
    """What is held against what.

    Parameters
    ----------
    manifest : with the file it describes.
    declared : the schema of the original table, if it is given.
    original : the file the release was made from, if it is given.
    encoding : of the original.
    """

    manifest: Manifest
    declared: Schema | None = None
    original: Path | None = None
    encoding: str = "utf-8"

    def checks(self, *, rebuild: bool) -> Iterator[Check]:
        """All checks in order; what an error makes impossible is a failed check."""
        parts: list[tuple[str, Callable[[], Iterator[Check]]]] = [
            ("hash of the file", self._file),
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
        yield _check("hash of the file", self.manifest.is_of_file, good, bad)

    def _schemas(self) -> Iterator[Check]:
        stated = str(self.manifest.document["schema_sha256"])
        held = self.manifest.schema
        if held is not None:
            # a manifest of version 0.1 holds the whole schema
            expected = str(self.manifest.document.get("schema_held_sha256", stated))
            yield _check(
                "schema of the manifest", held.sha256 == expected, "has the hash the manifest names", "its hash differs"
            )
        if self.declared is not None:
            known = {stated, str(self.manifest.provenance["schema_sha256"])}
            mine = {self.declared.sha256, _with_missing(self.declared, held).sha256}
            yield _check("schema given", bool(mine & known), "is that of the release", "is not that of the release")

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
        return read_release(self.manifest.release, self.schema, also=self.schema.published)

    def _sizes(self) -> Iterator[Check]:
        found = {
            "rows": len(self.released),
            "suppressed": int(self.released.suppressed.sum()),
            "classes": self.released.classes.count,
        }
        wrong = [what for name, what in SIZES.items() if found[name] != self.manifest.document.get(name)]
        sizes = ", ".join(f"{found[name]:,} {what}" for name, what in SIZES.items())
        yield _check("sizes", not wrong, sizes, f"the manifest states another number of {', '.join(wrong)}")

    # ---- the promises ---------------------------------------------------------------------------

    @cached_property
    def models(self) -> list[Promise]:
        """What the manifest promises."""
        return claimed_models(self.manifest.claim)

    def _claims(self) -> Iterator[Check]:
        if not self.models:
            yield Check("claim", "open", "the manifest promises nothing")
        table = None if self.original is None else self._origin[0]
        for verdict in evaluate_promises(with_known_facts(self.released, table, self.manifest), self.manifest):
            yield _of_verdict(verdict)

    # ---- the original ---------------------------------------------------------------------------

    @cached_property
    def _origin(self) -> tuple[Table, Callable[..., Path]]:
        """The original table as the release was made from it, and how its release is written."""
        if self.original is None:
            raise ConfigError("Give the original with --original.")
        schema = self.declared or self.schema
        missing: Any = self.manifest.document.get("missing", "error")
        if is_parquet(self.original) and is_parquet(self.manifest.release):
            source = ParquetSource.open(self.original, schema)
            also = {getattr(model, "column", "") for model in self.models}
            return source.table(missing=missing, also=also), partial(write_release, source=source)
        return read_table(self.original, schema, missing=missing, encoding=self.encoding), write_release

    def _against_original(self) -> Iterator[Check]:
        table, _ = self._origin
        made = self.manifest.provenance
        same = table.hash_with(made["schema_sha256"]) == made["data_sha256"]
        yield _check(
            "hash of the data", same, "the original is the table it was made from", "the original is another table"
        )
        if not self.manifest.keeps_order:
            return
        share = truthfulness(*self._masked(table, reconstruct))
        said = f"{share:.2%} of the published cells hold the original value"
        yield _check("truth", share == 1, said, said) if self._truthful else Check("truth", "open", said)

    def _masked(self, table: Table, reconstruct: Callable[[FileView, Table], Release]) -> tuple[Table, Release]:
        """The table with what a chain of methods masked as quasi-identifiers, and the release of it."""
        method = self._method
        seen = method.masked_table(table) if hasattr(method, "masked_table") else table
        return seen, reconstruct(self.released, seen)

    @property
    def _truthful(self) -> bool:
        """Whether the method promises cells that hold the original values."""
        return bool(getattr(self._method, "truthful", False))

    @cached_property
    def _method(self) -> Any:
        made = self.manifest.provenance
        if made["method"] == Pipeline.name:
            return Pipeline.from_provenance(made)
        return build(ANONYMIZERS[made["method"]], made["parameters"])

    @property
    def _needs_schema(self) -> bool:
        """Whether the method needs values of a column of which the manifest holds only role and type."""
        needed = any(model.needs_more_than(self.schema) for model in self.models if isinstance(model, PrivacyModel))
        return needed or (self._masks_columns and self.declared is None)

    def _rebuilt(self) -> Iterator[Check]:
        table, write = self._origin
        seed, version = self.manifest.provenance["seed"], self.manifest.provenance["version"]
        if seed is None:
            yield Check("rebuild", "open", "the manifest names no seed, so the release cannot be made again")
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
            write(release, self._masked(table, lambda *_: release)[0], path)
            same = file_sha256(path) == file_sha256(self.manifest.release)
        other = "" if version == __version__ else f" (made by fedanon {version}, rebuilt by {__version__})"
        yield _check("rebuild", same, f"gives the same bytes{other}", f"gives other bytes{other}")


def _of_verdict(verdict: Verdict) -> Check:
    if verdict.holds is None:
        return Check(verdict.name, "open", DOUBTS[verdict.doubt])
    total = f"{verdict.classes:,} classes"
    return _check(verdict.name, verdict.holds, f"holds for {total}", f"{verdict.broken:,} of {total} break it")


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
