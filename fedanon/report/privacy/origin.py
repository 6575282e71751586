"""Where a release and its report come from: hashes, parameters and commands; and the columns with their roles."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from fedanon._version import __version__
from fedanon.data.columns import changed_columns
from fedanon.data.detectors.headers import KINDS, Kind
from fedanon.data.lint import Lookalike
from fedanon.data.schema import Attribute, Numeric, type_name
from fedanon.io.manifest import file_sha256
from fedanon.report.document import (
    Block,
    Bullets,
    Code,
    Details,
    Facts,
    Note,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
    TableColumn,
    Tone,
)
from fedanon.report.numbers import NOTHING
from fedanon.report.privacy.evidence import SEED, ReleaseEvidence
from fedanon.report.privacy.language import Language

#: longest line of code on paper
LINE = 88


def origin_section(evidence: ReleaseEvidence, say: Language) -> Section:
    """Return what is needed to make and to check the release again."""
    made = evidence.provenance
    blocks: list[Block] = [Facts(_facts(evidence, say)), _hashes(evidence, say)]
    if made:
        blocks += [parameter_table(made["parameters"], say), Paragraph(say("origin.again"))]
        blocks.append(Code(_commands(evidence)))
        changes = tuple(_change(change, say) for change in evidence.manifest.changes) if evidence.manifest else ()
        blocks += [Details(say("origin.changes", n=len(changes)), (Bullets(changes),))] if changes else []
        notes = tuple(str(note) for note in made.get("notes", ()))
        blocks += [Details(say("origin.notes", n=len(notes)), (Bullets(notes),))] if notes else []
    else:
        blocks.append(Note(say("claims.no_manifest_title"), (say("claims.no_manifest"),), "warning"))
    return Section(say("origin.title"), tuple(blocks))


def _change(change: Mapping[str, Any], say: Language) -> str:
    if "cells" in change:
        return say("origin.guard_change", columns=say.named([*change["cells"], *change["names"]]))
    kind = say(f"change.{str(change['kind']).replace(' ', '_')}")
    before, after = (repr(str(change[end]))[1:-1] for end in ("from", "to"))
    return say("origin.other_change", kind=kind, before=before, after=after)


def parameter_table(parameters: Mapping[str, Any], say: Language) -> TableBlock:
    """Return the parameters as given; nested ones as text."""
    columns = (TableColumn(say("origin.parameter")), TableColumn(say("origin.value")))
    rows = tuple((TableCell(f"`{name}`"), TableCell(_value(value))) for name, value in parameters.items())
    return TableBlock(say("origin.parameters"), columns, rows)


def hash_table(hashes: list[tuple[str, str]], say: Language) -> TableBlock:
    """Return the SHA-256 of files and tables."""
    columns = (TableColumn(say("origin.what")), TableColumn("SHA-256"))
    return TableBlock(
        say("origin.hashes"), columns, tuple((TableCell(what), TableCell(f"`{sha}`")) for what, sha in hashes)
    )


def _value(value: Any) -> str:
    return NOTHING if value in (None, "", [], {}) else f"`{value}`"


def _facts(evidence: ReleaseEvidence, say: Language) -> tuple[tuple[str, str], ...]:
    made = evidence.provenance
    nothing = say("words.unknown")
    return (
        (say("origin.file"), f"`{evidence.path.name}`"),
        (say("origin.method"), f"`{made['method']}`" if made else nothing),
        (say("origin.seed"), str(made.get("seed", nothing)) if made else nothing),
        (say("origin.attack_seed"), str(SEED)),
        (say("origin.row_order"), say(f"row_order.{evidence.row_order}")),
        (say("origin.made_by"), f"fedanon {made['version']}" if made else nothing),
        (say("origin.reported_by"), f"fedanon {__version__}"),
    )


def _hashes(evidence: ReleaseEvidence, say: Language) -> TableBlock:
    found = [(say("origin.release_now"), evidence.sha256)]
    if evidence.manifest:
        made = evidence.provenance
        found += [
            (say("origin.release_written"), evidence.manifest.expected_sha256),
            (say("origin.manifest"), file_sha256(evidence.manifest.path)),
            (say("origin.data"), str(made["data_sha256"])),
            (say("origin.schema"), str(made["schema_sha256"])),
        ]
    found += [(say("origin.a_file", what=what, name=path.name), file_sha256(path)) for what, path in evidence.files]
    return hash_table(found, say)


def _commands(evidence: ReleaseEvidence) -> str:
    """Return the commands as a person would type them, with placeholders for the original and the schema."""
    release, made = evidence.path.name, evidence.provenance
    again = ["fedanon", "anonymize", "ORIGINAL.csv", "--schema", "SCHEMA.toml", "--method", str(made["method"])]
    for name, value in _given(evidence).items():
        again += [f"--{name}", str(value)] if name in ("k", "require") else ["--set", f"{name}={value}"]
    again += ["--seed", str(made["seed"]), "-o", release]
    again += ["--keep-order"] if evidence.row_order == "kept" else []
    verify = ["fedanon", "verify", f"{release}.manifest.json", "--original", "ORIGINAL.csv", "--rebuild"]
    report = ["fedanon", "report", "--privacy", release, "--schema", "SCHEMA.toml", "--original", "ORIGINAL.csv"]
    chain = [] if evidence.anonymizer is None else [again]
    return "\n".join(_wrapped(shlex.join(command)) for command in (*chain, verify, report))


def _wrapped(command: str) -> str:
    """Break a command into lines that fit a page."""
    parts = re.split(r" (?=-)", command)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) < LINE:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return " \\\n".join(lines)


def _given(evidence: ReleaseEvidence) -> dict[str, Any]:
    """Return the parameters that differ from the method's defaults."""
    if evidence.anonymizer is None:
        return {}
    return {
        entry.name: value
        for entry in fields(evidence.anonymizer)
        if (value := getattr(evidence.anonymizer, entry.name)) != entry.default
    }


# ---- columns -------------------------------------------------------------------------------------


def columns_section(evidence: ReleaseEvidence, say: Language) -> Section:
    """Return one line per column."""
    columns = tuple(TableColumn(say(f"columns.{name}")) for name in ("column", "role", "type", "published"))
    rows = tuple(_row(attribute, evidence, say) for attribute in evidence.schema.attributes)
    table = TableBlock(say("columns.caption", n=len(rows)), columns, rows)
    return Section(say("columns.title"), (Paragraph(say("columns.about")), table))


def harbor_section(looks: Sequence[Lookalike], say: Language) -> Section:
    """Return one line per kind, of the 18, that a column looks like; the others are listed."""
    columns = (TableColumn(say("harbor.kind")), TableColumn(say("harbor.columns")))
    found = {look.kind for look in looks}
    rows = tuple(_kind_row(kind, [look for look in looks if look.kind == kind], say) for kind in KINDS if kind in found)
    others = "; ".join(_kind_name(kind, say) for kind in KINDS if kind not in found)
    published = list(dict.fromkeys(look.column for look in looks if look.published))
    note = (
        Note(say("harbor.warning_title"), (say("harbor.warning", columns=say.named(published)),), "warning")
        if published
        else Note(say("harbor.clear_title"), (say("harbor.clear"),))
    )
    table = (TableBlock(say("harbor.caption"), columns, rows),) if rows else ()
    rest = Paragraph(say("harbor.others", kinds=others))
    return Section(say("harbor.title"), (Paragraph(say("harbor.about")), note, *table, rest))


def _row(attribute: Attribute, evidence: ReleaseEvidence, say: Language) -> tuple[TableCell, ...]:
    # the schema of a manifest has text where a column was declared with its values
    guarded = evidence.guarded_cells.get(attribute.name)
    masked = evidence.masked.get(attribute.name)
    if masked is not None:
        fate = say("fate.masked", methods=say.named(masked))
    elif attribute.name == evidence.schema.pseudonym:
        fate = say("fate.pseudonym")
    elif attribute.name in changed_columns(evidence.schema):
        fate = say("fate.changed")
    else:
        fate = say(f"fate.{attribute.role}") if guarded is None else say("fate.guarded", n=guarded)
    kind = say(f"type.{evidence.declared_types.get(attribute.name, type_name(attribute))}")
    unit = attribute.unit if isinstance(attribute, Numeric) else ""
    return (
        TableCell(f"`{attribute.name}`"),
        TableCell(say(f"role.{attribute.role}")),
        TableCell(say("type.in_unit", type=kind, unit=unit) if unit else kind),
        TableCell(fate),
    )


def _kind_row(kind: Kind, looks: list[Lookalike], say: Language) -> tuple[TableCell, ...]:
    found = "; ".join(
        say("harbor.look", column=look.column, sign=say(f"sign.{look.sign}"), fate=say(f"fate.{look.role}"))
        for look in looks
    )
    tone: Tone = "bad" if any(look.published for look in looks) else ""
    return TableCell(_kind_name(kind, say)), TableCell(found, tone=tone)


def _kind_name(kind: Kind, say: Language) -> str:
    return f"{kind.letter}. {say(f'kind.{kind.letter}')}"
