"""Promises about a released file, evaluated now, as verdicts and as lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedanon.io.manifest import Manifest
from fedanon.privacy.base import PrivacyModel
from fedanon.release.verdicts import OverReleases, Verdict, claimed_models, evaluate_claim
from fedanon.release.view import FileView
from fedanon.verification.known_series import KnownSeries

DOUBTS = {
    "people": "not checked: people can be counted only with --original and, where rows in random order fit several "
    "records, with --row-key",
    "federation": "not checked: one node's file cannot show it; someone who knows the node is held off by the k "
    "of the node alone",
    "population": "not checked: the population file is not at hand",
    "mechanism": "not checked: it is a promise about how the release is made, which no file can show",
    "releases": "not checked: it needs the ledger, which lies beside the schema, and all earlier releases; give "
    "--schema, and --previous for each",
    "schema": "not checked: it needs the taxonomy of the column, which the manifest does not hold; give --schema",
}


def evaluate_promises(
    view: FileView,
    manifest: Manifest | None,
    required: Sequence[PrivacyModel] = (),
    series: KnownSeries | None = None,
) -> list[Verdict]:
    """The verdicts on what is required of a file, by what it shows, then on what its manifest claims.

    ``series`` are the releases the file belongs to, where they are at hand.
    """
    verdicts = evaluate_claim(view, required, strict=True)
    claimed = evaluate_claim(view, claimed_models(manifest.claim) if manifest else [])
    if series is not None:
        claimed = [series.judge(one) if isinstance(one.model, OverReleases) else one for one in claimed]
    return [*verdicts, *(verdict for verdict in claimed if verdict not in verdicts)]


@dataclass(frozen=True)
class Check:
    """One line of the answer; ``open`` is neither passed nor failed."""

    name: str
    outcome: Literal["pass", "fail", "open"]
    text: str


def point(name: str, holds: bool, good: str, bad: str) -> Check:
    return Check(name, "pass" if holds else "fail", good if holds else bad)


def of_verdict(verdict: Verdict) -> Check:
    if verdict.holds is None:
        return Check(verdict.name, "open", DOUBTS[verdict.doubt])
    total = f"{verdict.classes:,} classes"
    return point(verdict.name, verdict.holds, f"holds for {total}", f"{verdict.broken:,} of {total} break it")
