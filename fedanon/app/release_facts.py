"""What the pages say of a release: recounted from its file, in every language, by the functions of the report."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.data.schema import Schema
from fedanon.data.table import MissingPolicy
from fedanon.datasets.source import DataSource
from fedanon.errors import DataError
from fedanon.io.ledger import ledger_path, settle_pending
from fedanon.io.manifest import Manifest
from fedanon.io.person_key import read_person_key
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.evidence_json import describe_release
from fedanon.report.privacy.headline import LOOKS, promise, sentences, title
from fedanon.report.privacy.language import TABLES, language
from fedanon.report.privacy.losses import column_losses, mean_loss
from fedanon.verification import KnownSeries

#: class sizes that are told apart, in multiples of the smallest; larger ones are one bar
SIZES = 12
#: rows that are shown side by side
SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class ReleaseFiles:
    """A release and what it was made from, as the server names them.

    Parameters
    ----------
    release, schema, row_key : the files.
    source : settings of the original's data source.
    missing : what happened to missing quasi-identifiers.
    key : file of the key of pseudonyms; '' if there are none.
    in_series : whether it belongs to a series, whose ledger lies beside the schema.
    previous : manifests of the releases before it.
    """

    release: str
    schema: str
    source: dict[str, Any]
    missing: MissingPolicy
    row_key: str
    key: str = ""
    in_series: bool = False
    previous: list[str] = field(default_factory=list)

    def evidence(self) -> ReleaseEvidence:
        """All that can be learned about it."""
        schema, path, source = Path(self.schema), Path(self.release), DataSource.from_settings(self.source)
        declared = Schema.read(schema)
        if self.key:
            declared = declared.with_key(read_person_key(Path(self.key)))
        table, series = source.load_by(declared, missing=self.missing), None
        if self.in_series:
            settle_pending(ledger_path(schema))
            manifest = Manifest.beside(path)
            assert manifest is not None
            series = KnownSeries.read(schema, manifest, list(map(Path, self.previous)))
            table = series.with_counterfeits(table, source)
        return ReleaseEvidence.from_file(path, declared, table=table, series=series, row_key=Path(self.row_key))


def release_facts(files: ReleaseFiles) -> dict[str, Any]:
    """Everything the pages of a release show, without a cell."""
    evidence = files.evidence()
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


def release_rows(files: ReleaseFiles, *, start: int = 0) -> dict[str, Any]:
    """Some records as they were and as they are published, column by column; for the eyes of the steward alone."""
    evidence = files.evidence()
    if evidence.matched is None or evidence.release is None:
        raise DataError("The rows of the release cannot be matched with those of the original.")
    original, _ = DataSource.from_settings(files.source).read_frame()
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
