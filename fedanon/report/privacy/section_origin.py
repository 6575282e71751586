"""Where a release and its report come from: hashes, seed, version, parameters and commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fedanon._version import __version__
from fedanon.data.manifest import file_sha256
from fedanon.report.document import Block, Bullets, Cell, Code, Column, Details, Facts, Note, Paragraph, Section, Table
from fedanon.report.numbers import NOTHING
from fedanon.report.privacy.evidence import SEED, Evidence
from fedanon.report.privacy.language import Language

#: letters of a line of code on paper
LINE = 88


def origin_section(evidence: Evidence, say: Language) -> Section:
    """What it takes to make and to check the release again."""
    made = evidence.provenance
    blocks: list[Block] = [Facts(_facts(evidence, say)), _hashes(evidence, say)]
    if made:
        blocks += [parameter_table(made["parameters"], say), Paragraph(say("origin.again"))]
        blocks.append(Code(_commands(evidence)))
        notes = tuple(str(note) for note in made.get("notes", ()))
        blocks += [Details(say("origin.notes", n=len(notes)), (Bullets(notes),))] if notes else []
    else:
        blocks.append(Note(say("claims.no_manifest_title"), (say("claims.no_manifest"),), "warning"))
    return Section(say("origin.title"), tuple(blocks))


def parameter_table(parameters: Mapping[str, Any], say: Language) -> Table:
    """Parameters as they were given; nested ones as text."""
    columns = (Column(say("origin.parameter")), Column(say("origin.value")))
    rows = tuple((Cell(f"`{name}`"), Cell(_value(value))) for name, value in parameters.items())
    return Table(say("origin.parameters"), columns, rows)


def hash_table(hashes: list[tuple[str, str]], say: Language) -> Table:
    """SHA-256 of files and tables."""
    columns = (Column(say("origin.what")), Column("SHA-256"))
    return Table(say("origin.hashes"), columns, tuple((Cell(what), Cell(f"`{sha}`")) for what, sha in hashes))


def _value(value: Any) -> str:
    return NOTHING if value in (None, "", [], {}) else f"`{value}`"


def _facts(evidence: Evidence, say: Language) -> tuple[tuple[str, str], ...]:
    made = evidence.provenance
    nothing = say("words.unknown")
    return (
        (say("origin.file"), f"`{evidence.path.name}`"),
        (say("origin.method"), f"`{made['method']}`" if made else nothing),
        (say("origin.seed"), str(made.get("seed", nothing)) if made else nothing),
        (say("origin.attack_seed"), str(SEED)),
        (say("origin.made_by"), f"fedanon {made['version']}" if made else nothing),
        (say("origin.reported_by"), f"fedanon {__version__}"),
    )


def _hashes(evidence: Evidence, say: Language) -> Table:
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


def _commands(evidence: Evidence) -> str:
    """As a person would type them; other places than these file names are left to that person."""
    release, made = evidence.path.name, evidence.provenance
    again = ["fedanon", "anonymize", "ORIGINAL.csv", "--schema", "SCHEMA.toml", "--method", str(made["method"])]
    for name, value in _given(evidence).items():
        again += [f"--{name}", str(value)] if name in ("k", "require") else ["--set", f"{name}={value}"]
    again += ["--seed", str(made["seed"]), "-o", release]
    verify = ["fedanon", "verify", f"{release}.manifest.json", "--original", "ORIGINAL.csv", "--rebuild"]
    report = ["fedanon", "report", "--privacy", release, "--schema", "SCHEMA.toml", "--original", "ORIGINAL.csv"]
    chain = [] if evidence.anonymizer is None else [again]
    return "\n".join(_wrapped(shlex.join(command)) for command in (*chain, verify, report))


def _wrapped(command: str) -> str:
    """A command in lines that fit a page."""
    parts = re.split(r" (?=-)", command)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) < LINE:
            lines[-1] += f" {part}"
        else:
            lines.append(f"    {part}")
    return " \\\n".join(lines)


def _given(evidence: Evidence) -> dict[str, Any]:
    """The parameters that are not the method's defaults."""
    if evidence.anonymizer is None:
        return {}
    return {
        entry.name: value
        for entry in fields(evidence.anonymizer)
        if (value := getattr(evidence.anonymizer, entry.name)) != entry.default
    }
