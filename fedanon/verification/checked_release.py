"""What a released file holds and costs, computed from the file itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import ConfigError, PrivacyViolationError
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.release_file import ALL, read_release
from fedanon.io.row_order import read_row_key
from fedanon.metrics import evaluate, evaluate_view
from fedanon.metrics.information_loss import published_losses
from fedanon.privacy.base import PrivacyModel
from fedanon.release.conclusion import Conclusion, ReleaseFinding, conclude
from fedanon.release.exposure import measure_exposure
from fedanon.release.reconstruction import reconstruct
from fedanon.release.verdicts import Verdict, claimed_models
from fedanon.release.view import FileView
from fedanon.sdc.measures import Measures
from fedanon.types import IndexArray
from fedanon.verification.known_release import (
    UNMATCHED,
    KnownRelease,
    Matching,
    carried_columns,
    with_known_facts,
    with_masked_columns,
)
from fedanon.verification.known_series import KnownSeries
from fedanon.verification.promises import Check, evaluate_promises, of_verdict

#: what a file shows, and what it shows beside its original
VIEW_METRICS = ("k_reached", "average_class_size", "prosecutor_risk", "marketer_risk")
ORIGINAL_METRICS = ("ncp", "ncp_published", "truthfulness", "linkage_expected", "linkage_expected_share", "il")


@dataclass(frozen=True)
class CheckedRelease:
    """What was found in a released file.

    Parameters
    ----------
    metrics : what it costs and risks, by name; none if the file is not the one that was written.
    matching : how its rows were matched with the original.
    claim : of the manifest beside it, and whether its hash is that of the file; None without a manifest.
    verdicts : on what was required and claimed; some may be left open.
    conclusion : what is to be said first.
    violation : how it breaks what is promised; empty if it does not.
    """

    metrics: dict[str, Any]
    matching: Matching
    claim: dict[str, Any] | None
    verdicts: list[Verdict]
    conclusion: Conclusion
    violation: str = ""

    @property
    def checks(self) -> list[Check]:
        """The verdicts as lines for people."""
        return [of_verdict(verdict) for verdict in self.verdicts]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the metrics, the claim, the promises left open with the reason if there are any, the conclusion."""
        left = {check.name: check.text for check in self.checks if check.outcome == "open"}
        unmatched = {"not_matched": UNMATCHED[self.matching]} if self.matching in UNMATCHED else {}
        more = {**({"open": left} if left else {}), **unmatched}
        return {**self.metrics, "manifest": self.claim, **more, "conclusion": self.conclusion.to_dict()}


def check_release(
    path: Path,
    schema: Schema,
    *,
    required: Sequence[PrivacyModel] = (),
    table: Table | None = None,
    row_key: Path | None = None,
    series: KnownSeries | None = None,
) -> CheckedRelease:
    """Measure a released file; raise PrivacyViolationError where it breaks its manifest's claim or ``required``.

    Parameters
    ----------
    path : the released file; a manifest beside it is compared with it.
    schema : of the original table.
    required : what every class has to satisfy beside what the manifest claims.
    table : the original, to count people and to measure loss, truth and linkage.
    row_key : says which row of the original every released row shows, where their order is random.
    series : the releases it belongs to; the counterfeit rows among them are then in ``table`` too.
    """
    found = inspect_release(path, schema, required=required, table=table, row_key=row_key, series=series)
    if found.violation:
        raise PrivacyViolationError(found.violation)
    return found


def inspect_release(
    path: Path,
    schema: Schema,
    *,
    required: Sequence[PrivacyModel] = (),
    table: Table | None = None,
    row_key: Path | None = None,
    metrics: Sequence[str] = (),
    series: KnownSeries | None = None,
) -> CheckedRelease:
    """Measure a released file as :func:`check_release` does, and report what it breaks instead of raising.

    ``metrics`` are measured in addition, beside the original.
    """
    manifest = Manifest.beside(path)
    if manifest is not None and not manifest.is_of_file:
        changed = Conclusion("broken", findings=(ReleaseFinding(kind="file_changed"),))
        said = f"The file {path.name} is not the one its manifest describes (SHA-256 differs)."
        return CheckedRelease({}, "alone", {"verified_hash": False, **manifest.claim}, [], changed, said)
    models = [*required, *(claimed_models(manifest.claim) if manifest else [])]
    key = None if row_key is None else read_row_key(row_key, file_sha256(path))
    by_content = table is not None and manifest is not None and not manifest.keeps_order
    also = ALL if by_content else {getattr(model, "column", "") for model in models}
    known = with_known_facts(read_release(path, schema, also=also), table, manifest, key)
    view = known.view
    found: dict[str, Any] = {
        "n": len(view),
        "suppressed": int(view.suppressed.sum()),
        "classes": view.classes.count,
        **evaluate_view(view, VIEW_METRICS),
    }
    found["k_reached"] = view.smallest_class
    if table is not None and (known.is_matched or known.matching == "size"):
        found |= _beside_original(path, known, table, manifest, key, metrics)
    elif known.matching == "ambiguous":
        found |= _of_any_match(view)
    if metrics and not known.is_matched:
        raise ConfigError("--metrics compares a release with its original: give --original, and --row-key if asked to.")
    verdicts = evaluate_promises(view, manifest, required, series)
    conclusion = conclude(view, verdicts, exposure=measure_exposure(view, carried_columns(view, path)))
    broken = (f"The release does not keep {v.name}: {v.reason}." for v in verdicts if v.holds is False)
    claim = None if manifest is None else {"verified_hash": True, **manifest.claim}
    return CheckedRelease(found, known.matching, claim, verdicts, conclusion, next(broken, ""))


def _beside_original(
    path: Path,
    known: KnownRelease,
    table: Table,
    manifest: Manifest | None,
    order: IndexArray | None,
    metrics: Sequence[str],
) -> dict[str, Any]:
    """Loss, truth and linkage of every column the method changed, and what else is asked for."""
    wide, release = table, reconstruct(known.view, table)
    if known.is_matched and manifest is not None and manifest.masked:
        wide, release = with_masked_columns(path, table, manifest, order)
    found: dict[str, Any] = dict(evaluate(wide, release, ORIGINAL_METRICS))
    if metrics and known.is_matched:
        for name, pair in Measures(wide, release, table.schema).measure(metrics).items():
            found |= {
                name: pair.modified,
                **({} if pair.original != pair.original else {f"{name}_original": pair.original}),
            }
    return found


def _of_any_match(view: FileView) -> dict[str, float]:
    """What is the same however rows are matched: all cells hold their values, and lose what they show."""
    losses = [float(published_losses(view, a.name).mean()) for a in view.schema.quasi_identifiers]
    return {"ncp_published": sum(losses) / len(losses), "truthfulness": 1.0} if losses else {}
