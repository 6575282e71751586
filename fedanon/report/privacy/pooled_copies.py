"""Estimates pooled over the copies of multiple imputation, of which a report is about one.

The other copies lie beside it under the names that `sdc impute` gave them. Only means and slopes are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.release_file import ALL, read_release
from fedanon.report.document import Block, Paragraph, TableBlock, TableCell, TableColumn
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.language import Language
from fedanon.sdc.copies import summarize_copies
from fedanon.sdc.methods.linear_models import Imputation


def pooled_facts(evidence: ReleaseEvidence) -> dict[str, Any] | None:
    """Return how many copies there are and were found, and the estimates if that is all; None of other releases."""
    step = next((step for step in evidence.steps if step["method"] == Imputation.name), None)
    if step is None:
        return None
    copies, found = int(step["parameters"]["copies"]), list(_copies(evidence, step))
    columns = step["columns"] or list(step["changed"])
    complete = len(found) == copies > 1
    frames = [read_release(each.release, evidence.schema, also=ALL).frame for each in found] if complete else []
    original = None if evidence.table is None else evidence.table.frame
    return {
        "copies": copies,
        "found": len(found),
        "estimates": summarize_copies(frames, columns, original) if frames else {},
    }


def _copies(evidence: ReleaseEvidence, step: dict[str, Any]) -> Iterator[Manifest]:
    """Yield the copies whose files are as they were written, from the same table by the same chain and seed."""
    path, own = evidence.path, f"_{step['parameters']['copy']}"
    if not path.stem.endswith(own):
        return
    for i in range(1, int(step["parameters"]["copies"]) + 1):
        beside = path.with_name(f"{path.stem.removesuffix(own)}_{i}{path.suffix}")
        manifest = Manifest.beside(beside) if beside.exists() else None
        if (
            manifest is not None
            and manifest.expected_sha256 == file_sha256(beside)
            and _origin(manifest.provenance) == (*_origin(evidence.provenance)[:-1], i)
        ):
            yield manifest


def _origin(provenance: dict[str, Any]) -> tuple[Any, ...]:
    """Return the table, the seed, the columns with what explains them, and the number of the copy."""
    steps = [step for step in provenance.get("parameters", {}).get("steps", []) if step["method"] == Imputation.name]
    settings = [(step["columns"], {**step["parameters"], "copy": None}) for step in steps]
    number = steps[0]["parameters"]["copy"] if steps else None
    return provenance.get("data_sha256"), provenance.get("seed"), settings, number


def pooled_blocks(facts: dict[str, Any] | None, say: Language) -> list[Block]:
    """Show the estimates, or how many copies are missing."""
    if facts is None:
        return []
    if not facts["estimates"]:
        return [Paragraph(say("pooled.missing", n=facts["found"], copies=facts["copies"]))]
    parts = ("pooled", "deviation", "deviation_rubin", "original")
    columns = (
        TableColumn(say("pooled.estimate")),
        *(TableColumn(say(f"pooled.{part}"), numeric=True) for part in parts),
    )
    rows = tuple(
        (TableCell(name), *(TableCell(say.number(one[part]), one[part]) for part in parts))
        for name, one in facts["estimates"].items()
    )
    return [
        TableBlock(say("pooled.title", copies=facts["copies"]), columns, rows),
        Paragraph(say("pooled.text")),
    ]
