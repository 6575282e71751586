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

import pandas as pd

from fedanon._version import __version__
from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.hierarchy import MISSING
from fedanon.data.readers import read_table
from fedanon.data.schema import Categorical, Schema
from fedanon.data.table import Table, texts
from fedanon.errors import ConfigError, FedanonError, PrivacyViolationError
from fedanon.fields import build
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.parquet import is_parquet, read_columns
from fedanon.io.parquet_source import ParquetSource
from fedanon.io.release_file import read_release, write_release
from fedanon.metrics import evaluate, evaluate_view
from fedanon.metrics.information_loss import truthfulness
from fedanon.privacy.base import PrivacyModel
from fedanon.release.conclusion import Conclusion, ReleaseFinding, conclude
from fedanon.release.exposure import measure_exposure
from fedanon.release.reconstruction import reconstruct
from fedanon.release.release import Release
from fedanon.release.verdicts import Promise, Verdict, claimed_models, evaluate_claim
from fedanon.release.view import FileView, PublishedView
from fedanon.sdc.methods.pipeline import Pipeline

DOUBTS = {
    "people": "not checked: people can be counted only with --original",
    "federation": "not checked: one node's file cannot show it; someone who knows the node is held off by the k "
    "of the node alone",
    "population": "not checked: the population file is not at hand",
    "mechanism": "not checked: it is a promise about how the release is made, which no file can show",
}
#: the check whether the file is the one that was written
HASH = "hash of the file"
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


def carried_columns(view: PublishedView, path: Path | None) -> Iterator[pd.Series[Any]]:
    """The columns that are carried along, one at a time: as the view holds them, else from a Parquet file."""
    quasi = {attribute.name for attribute in view.schema.quasi_identifiers}
    for name in view.schema.published:
        if name in view.passthrough:
            yield view.passthrough[name]
        elif name not in quasi and path is not None:
            yield texts(read_columns(path, [name])[name])


# ---- the file, and what it promises --------------------------------------------------------------


@dataclass(frozen=True)
class CheckedRelease:
    """What was found in a released file.

    Parameters
    ----------
    metrics : what it costs and risks, by name; none if the file is not the one that was written.
    claim : of the manifest beside it, and whether its hash is that of the file; None without a manifest.
    verdicts : on what was required and claimed; some may be left open.
    conclusion : what is to be said first.
    violation : how it breaks what is promised; empty if it does not.
    """

    metrics: dict[str, Any]
    claim: dict[str, Any] | None
    verdicts: list[Verdict]
    conclusion: Conclusion
    violation: str = ""

    @property
    def checks(self) -> list[Check]:
        """The verdicts as lines for people."""
        return [_of_verdict(verdict) for verdict in self.verdicts]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the metrics, the claim, the promises left open with the reason if there are any, the conclusion."""
        left = {check.name: check.text for check in self.checks if check.outcome == "open"}
        more = {"open": left} if left else {}
        return {**self.metrics, "manifest": self.claim, **more, "conclusion": self.conclusion.to_dict()}


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
    found = inspect_release(path, schema, required=required, table=table)
    if found.violation:
        raise PrivacyViolationError(found.violation)
    return found


def inspect_release(
    path: Path, schema: Schema, *, required: Sequence[PrivacyModel] = (), table: Table | None = None
) -> CheckedRelease:
    """Measure a released file as :func:`check_release` does, and report what it breaks instead of raising."""
    manifest = Manifest.beside(path)
    if manifest is not None and not manifest.is_of_file:
        changed = Conclusion("broken", findings=(ReleaseFinding(kind="file_changed"),))
        said = f"The file {path.name} is not the one its manifest describes (SHA-256 differs)."
        return CheckedRelease({}, {"verified_hash": False, **manifest.claim}, [], changed, said)
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
    conclusion = conclude(view, verdicts, exposure=measure_exposure(view, carried_columns(view, path)))
    broken = (f"The release does not keep {v.name}: {v.reason}." for v in verdicts if v.holds is False)
    claim = None if manifest is None else {"verified_hash": True, **manifest.claim}
    return CheckedRelease(metrics, claim, verdicts, conclusion, next(broken, ""))


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
        yield _check(HASH, self.manifest.is_of_file, good, bad)

    def _schemas(self) -> Iterator[Check]:
        stated = str(self.manifest.document["schema_sha256"])
        held = self.manifest.schema
        if held is not None:
            yield _check(
                "schema of the manifest", held.sha256 == stated, "has the hash the manifest names", "its hash differs"
            )
        if self.declared is not None:
            known = {stated, str(self.manifest.provenance["schema_sha256"])}
            mine = {self.declared.sha256, _with_missing(self.declared, held).sha256}
            yield _check("schema given", bool(mine & known), "is that of the release", "is not that of the release")

    @cached_property
    def schema(self) -> Schema:
        """Of the release: as the manifest holds it, else as given."""
        found = self.manifest.schema or self.declared
        if found is None:
            raise ConfigError("The manifest holds no schema; give it with --schema.")
        return found

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
        yield from (_of_verdict(verdict) for verdict in self._verdicts)

    @cached_property
    def _known(self) -> FileView:
        """The file with what the original says of it."""
        table = None if self.original is None else self._origin[0]
        return with_known_facts(self.released, table, self.manifest)

    @cached_property
    def _verdicts(self) -> list[Verdict]:
        return evaluate_promises(self._known, self.manifest)

    def conclude(self, checks: Sequence[Check]) -> Conclusion:
        """What is to be said first, after these checks; what cannot be read is broken."""
        failed = [_failure(check) for check in checks if check.outcome == "fail"]
        try:
            names = {verdict.name for verdict in self._verdicts}
            beside = [finding for finding in failed if finding.reason not in names]
            return conclude(self._known, self._verdicts, failed=beside)
        except FedanonError as error:
            return Conclusion("broken", findings=tuple(failed or [_failure(Check("file", "fail", str(error)))]))

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
        same = table.sha256 == self.manifest.provenance["data_sha256"]
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

    def _rebuilt(self) -> Iterator[Check]:
        table, write = self._origin
        seed, version = self.manifest.provenance["seed"], self.manifest.provenance["version"]
        if seed is None:
            yield Check("rebuild", "open", "the manifest names no seed, so the release cannot be made again")
            return
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


def _failure(check: Check) -> ReleaseFinding:
    if check.name == HASH:
        return ReleaseFinding(kind="file_changed")
    return ReleaseFinding(kind="check_failed", reason=check.name)


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
