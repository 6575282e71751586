"""Where the numbers of a report come from, and how to get them again."""

from __future__ import annotations

from typing import Any

from fedanon.harness.result_set import ResultSet
from fedanon.report.document import Block, Cell, Code, Column, Details, Facts, Note, Paragraph, Section, Table

MANY = 20


def provenance(found: ResultSet) -> Section:
    """Versions, code, data, seeds, machine, failures, the experiment itself and the command."""
    manifest = found.manifest
    blocks: list[Block] = [Facts(_facts(manifest)), _hashes(manifest)]
    blocks += _failures(manifest["failures"])
    blocks += [
        Paragraph("To get the same numbers, save the experiment below under its name and run:"),
        Code(f"fedanon experiment run {found.name}.toml\nfedanon report {found.name}.toml -o report.html"),
        Details(f"The experiment, {found.name}.toml", (Code(str(manifest.get("config", ""))),)),
    ]
    return Section("Methods and provenance", tuple(blocks))


def _facts(manifest: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    run, computer = manifest.get("run") or {}, manifest["machine"]
    seconds = f", {manifest['cell_seconds']:,} s of computing" if manifest.get("cell_seconds") else ""
    facts = [
        ("Cells", f"{manifest['finished']} of {manifest['cells']} finished{seconds}"),
        ("Seeds", ", ".join(map(str, manifest["seeds"]))),
        ("Machine", f"{computer['system']}, {computer['processor']}, {computer['cores']} cores"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())),
    ]
    if run:
        facts.append(
            ("Last run", f"{run['computed']} cells in {run['seconds']:,} s, {run['workers']} workers, {run['engine']}")
        )
    return tuple(facts)


def _hashes(manifest: dict[str, Any]) -> Table:
    rows = [("experiment file", manifest.get("config_sha256", ""))]
    rows += [(f"data: {name}", sha) for name, sha in manifest["data"].items()]
    rows += [(f"code of {count} cells", sha) for sha, count in manifest["code"].items()]
    cells = tuple((Cell(what), Cell(f"`{sha}`")) for what, sha in rows)
    return Table(
        "SHA-256 of what decided the numbers (of the code, its first 16 digits)",
        (Column("What"), Column("SHA-256")),
        cells,
    )


def _failures(failures: list[dict[str, str]]) -> list[Block]:
    if not failures:
        return []
    rows = tuple((Cell(f["what"]), Cell(f["grid"]), Cell(f["reason"])) for f in failures)
    table = Table(f"{len(failures)} cells that failed", (Column("Cell"), Column("Grid"), Column("Reason")), rows)
    note = Note(
        "Not everything could be computed", (f"{len(failures)} cells failed; no number stands for them.",), "warning"
    )
    return [note, table if len(failures) <= MANY else Details(table.caption, (table,))]
