"""What the pages say of a release: recounted from its file, in every language, by the functions of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fedanon.data.schema import Schema
from fedanon.datasets.source import DataSource
from fedanon.errors import DataError
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.evidence_json import describe_release
from fedanon.report.privacy.headline import LOOKS, promise, sentences, title
from fedanon.report.privacy.language import TABLES, language
from fedanon.report.privacy.losses import column_losses, mean_loss

#: class sizes that are told apart, in multiples of the smallest; larger ones are one bar
SIZES = 12
#: rows that are shown side by side
SHOWN = 20


def _evidence(release: str, schema: str, source: dict[str, Any], missing: str, row_key: str) -> ReleaseEvidence:
    declared = Schema.read(schema)
    table = DataSource.from_settings(source).load_by(declared, missing=missing)  # type: ignore[arg-type]
    return ReleaseEvidence.from_file(Path(release), declared, table=table, row_key=Path(row_key))


def release_facts(release: str, schema: str, source: dict[str, Any], missing: str, row_key: str) -> dict[str, Any]:
    """Everything the pages of a release show, without a cell."""
    evidence = _evidence(release, schema, source, missing, row_key)
    conclusion, losses = evidence.conclusion(), column_losses(evidence)
    said = {}
    for code in TABLES:
        say = language(code)
        said[code] = {
            "title": title(conclusion, say),
            "sentences": list(sentences(conclusion, say)),
            "promises": [promise(one.model, evidence.schema.unit, say) for one in evidence.verdicts],
        }
    return {
        "level": conclusion.level,
        "look": LOOKS[conclusion.level],
        "said": said,
        "evidence": describe_release(evidence),
        "mean_loss": mean_loss(losses),
        "rows": len(evidence.released),
        "class_sizes": _class_sizes(evidence),
        "smallest_class": evidence.released.smallest_class,
        "changes": [] if evidence.manifest is None else evidence.manifest.changes,
        "row_order": evidence.row_order,
    }


def _class_sizes(evidence: ReleaseEvidence) -> dict[str, list[int]]:
    """How many classes have which number of people or records."""
    sizes, counts = np.unique(np.asarray(evidence.people), return_counts=True)
    low = int(sizes.min()) if len(sizes) else 0
    width = max(1, int(np.ceil((np.median(np.repeat(sizes, counts)) - low + 1) / (SIZES / 2)))) if len(sizes) else 1
    bins = np.minimum((sizes - low) // width, SIZES - 1)
    bars = np.bincount(bins.astype(np.int64), weights=counts, minlength=SIZES).astype(int)
    return {"low": [low + i * width for i in range(SIZES)], "width": [width], "classes": bars.tolist()}


def release_rows(
    release: str, schema: str, source: dict[str, Any], missing: str, row_key: str, *, start: int = 0
) -> dict[str, Any]:
    """Some records as they were and as they are published, column by column; for the eyes of the steward alone."""
    evidence = _evidence(release, schema, source, missing, row_key)
    if evidence.matched is None or evidence.release is None:
        raise DataError("The rows of the release cannot be matched with those of the original.")
    original, _ = DataSource.from_settings(source).read_frame()
    published = evidence.release.to_frame()
    names = [str(name) for name in published.columns]
    rows = range(max(0, start), min(start + SHOWN, len(original)))
    suppressed = evidence.release.suppressed
    return {
        "columns": names,
        "quasi": [attribute.name for attribute in evidence.schema.quasi_identifiers],
        "dropped": [name for name in original.columns if name not in names],
        "total": len(original),
        "rows": [
            {
                "number": i + 1,
                "suppressed": bool(suppressed[i]),
                "cells": [(_text(original[name].iloc[i]), _text(published[name].iloc[i])) for name in names],
            }
            for i in rows
        ],
    }


def _text(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell)
