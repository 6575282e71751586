"""Tables nobody prepared, from the file to the release, as a steward would take them there.

Nothing that is printed may be denied by a recount of the output, no planted identifier may be published unless a person
decided so, and no input may change.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fedanon.cli.__main__ import main
from fedanon.data.schema import Role, Schema
from fedanon.data.schema_toml import schema_toml
from tests.generated_tables import GeneratedTable, generate
from tests.independent_recount import contradictions, recount

K = 3


def call(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, output and errors of a command, run in this process."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["fedanon", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), err.getvalue()
    finally:
        sys.argv = before
    return 0, out.getvalue(), err.getvalue()


def decide(proposal: Schema, table: GeneratedTable, seed: int) -> Schema:
    """What a person makes of a proposal: undecided columns are decided, and every second one says who is who."""
    roles = {name: Role.IDENTIFYING if name in table.planted else Role.INSENSITIVE for name in proposal.undecided}
    schema = proposal.replacing(*(replace(proposal[name], role=role) for name, role in roles.items()))
    if schema.person_id is None and seed % 2:
        schema = replace(schema, one_row_per_person=table.one_row_per_person)
    return schema


def walk(seed: int, folder: Path) -> Iterator[str]:
    """Take a table to its release; what went wrong."""
    table = generate(seed)
    file, proposed, decided, out = (folder / name for name in ("in.csv", "proposal.toml", "schema.toml", "out.csv"))
    file.write_bytes(table.to_bytes())
    code, _, err = call("schema", "infer", file, "-o", proposed)
    if code:
        yield f"infer: {err}"
        return
    proposal = Schema.read(proposed)
    yield from _slipped(proposal, table)
    if proposal.undecided:
        code, _, _ = call("anonymize", file, "--schema", proposed, "--k", str(K), "-o", out)
        if code != 3 or out.exists():
            yield f"published with {len(proposal.undecided)} undecided columns"
    schema = decide(proposal, table, seed)
    decided.write_text(schema_toml(schema), encoding="utf-8")
    read = {path: path.read_bytes() for path in (file, decided)}
    yield from _published(file, decided, schema, out, table, shuffled=bool(seed % 3))
    for target in read:
        code, _, _ = call("anonymize", file, "--schema", decided, "--k", str(K), "-o", target, "--force")
        if code == 0:
            yield f"{target.name} was given as output, and taken"
    yield from (f"{path.name} was changed" for path, data in read.items() if path.read_bytes() != data)


def _slipped(proposal: Schema, table: GeneratedTable) -> Iterator[str]:
    """Identifiers that would be published; dates of birth may be generalized."""
    for name, kind in table.planted.items():
        role = proposal[name].role
        generalized = role is Role.QUASI_IDENTIFYING and kind == "birth_date"
        if role not in (Role.IDENTIFYING, Role.UNDECIDED) and not generalized:
            yield f"{kind} under {name!r} is proposed as {role}"


def _published(
    file: Path, decided: Path, schema: Schema, out: Path, table: GeneratedTable, *, shuffled: bool
) -> Iterator[str]:
    """Publish, recount, and look for what is denied."""
    said = ("--schema", decided, "--missing", "category")
    key = out.with_name("rows.json")
    order = ("--row-key", key) if shuffled else ("--keep-order",)
    code, text, err = call("anonymize", file, *said, "--k", str(K), "-o", out, *order, "--encoding-out", "utf-8")
    if code == 3 and "one_row_per_person = " in err and schema.unit == "records":
        return  # it asks whose rows these are
    if code:
        yield f"anonymize: {code} {err}"
        return
    with out.open(encoding="utf-8", newline="") as opened:
        names = next(csv.reader(opened, delimiter=table.separator))
    roles = {name: str(schema[name].role) for name in names}
    rows = json.loads(key.read_text())["order"] if shuffled else range(len(table.frame))
    persons = [table.person_of_row[row] for row in rows] if schema.unit == "people" else None
    counted = recount(out, roles, persons, table.separator)
    known = order if shuffled else ()
    code, answer, err = call("check", out, *said, "--original", file, *known, "--json")
    if code:
        yield f"check: {code} {err}"
        return
    yield from contradictions(text, json.loads(answer)["conclusion"], counted)
    dropped = [name for name in table.planted if schema[name].role is Role.IDENTIFYING]
    manifest = Path(f"{out}.manifest.json").read_text(encoding="utf-8")
    # a hash holds one of some hundred numbers by chance, once in ten thousand tables
    texts = out.read_text(encoding="utf-8") + re.sub(r"\b[0-9a-f]{64}\b", "", manifest)
    for name in dropped:
        if any(len(value) > 5 and value in texts for value in table.frame[name].dropna().unique()):
            yield f"the release or its manifest holds values of {name!r}"


def problems(seeds: range, folder: Path) -> list[str]:
    """All that went wrong, with the seed of the table."""
    found = []
    for seed in seeds:
        inside = folder / str(seed)
        inside.mkdir()
        found += [f"{seed}: {problem}" for problem in walk(seed, inside)]
    return found


@pytest.mark.parametrize("part", range(6))
def test_no_sentence_is_denied_and_nothing_slips_through(tmp_path: Path, part: int) -> None:
    """300 tables, in parts that can run side by side."""
    assert problems(range(50 * part, 50 * part + 50), tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_sentence_is_denied_in_ten_thousand_tables(tmp_path: Path, part: int) -> None:
    assert problems(range(1_000 + 2_500 * part, 3_500 + 2_500 * part), tmp_path) == []
