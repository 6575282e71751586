"""Proposals for tables that people have labeled, and for generated ones with planted identifiers."""

from __future__ import annotations

import pytest

from fedanon.data.infer import infer_columns
from fedanon.data.schema import Role
from tests.data.labeled_tables import Labels, labels, read, score
from tests.generated_tables import generate

#: of the identifiers and person columns of all tables
LEAST_FOUND = 0.98
#: of the columns that are neither, over all tables
MOST_UNDECIDED = 0.25


@pytest.mark.slow
@pytest.mark.parametrize("table", labels(), ids=lambda table: table.name)
def test_no_identifier_is_proposed_for_publication(table: Labels) -> None:
    frame = read(table)
    if frame is None:
        pytest.skip(f"{table.path} of {table.source} is not at hand; see tests/data/README.md")
    found = score(table, frame)
    assert found.missed == ()
    assert found.person_is_right


@pytest.mark.slow
def test_found_and_undecided_over_all_tables() -> None:
    frames = {table.name: read(table) for table in labels()}
    absent = [name for name, frame in frames.items() if frame is None]
    if absent:
        pytest.skip(f"{len(absent)} tables are not at hand; see tests/data/README.md")
    scores = [score(table, frame) for table in labels() if (frame := frames[table.name]) is not None]
    found, missed = sum(len(s.found) for s in scores), sum(len(s.missed) for s in scores)
    others, undecided = sum(len(s.others) for s in scores), sum(len(s.undecided) for s in scores)
    assert found / (found + missed) >= LEAST_FOUND
    assert undecided / others <= MOST_UNDECIDED


@pytest.mark.parametrize(
    "seeds", [range(12), *(pytest.param(range(a, a + 100), marks=pytest.mark.slow) for a in (100, 200, 300))]
)
def test_planted_identifiers_are_found(seeds: range) -> None:
    for seed in seeds:
        table = generate(seed)
        proposals = {proposal.name: proposal for proposal in infer_columns(table.frame)}
        for column, kind in table.planted.items():
            allowed = {Role.IDENTIFYING} | ({Role.QUASI_IDENTIFYING} if kind == "birth_date" else set())
            assert proposals[column].role in allowed, (seed, kind)
        person = next((name for name, proposal in proposals.items() if proposal.is_person), None)
        if table.person is not None:
            assert person == table.person, seed
        others = [name for name in proposals if name not in table.planted and name != table.person]
        assert {proposals[name].role for name in others} == {Role.QUASI_IDENTIFYING, Role.SENSITIVE}, seed


def test_generated_tables_are_what_they_say() -> None:
    tables = [generate(seed) for seed in range(40)]
    assert tables[3].frame.equals(generate(3).frame)
    assert {table.language for table in tables} == {"en", "pt", "es"}
    assert {table.one_row_per_person for table in tables} == {True, False}
    for table in tables:
        assert len(table.person_of_row) == len(table.frame)
        if table.person is not None:
            people = dict(zip(table.frame[table.person], table.person_of_row, strict=True))
            assert len(people) == len(set(table.person_of_row)) == table.frame[table.person].nunique()
        header, first = table.to_bytes().decode(table.encoding).splitlines()[:2]
        assert header.count(table.separator) == len(table.frame.columns) - 1
        assert (table.decimal in first) or table.separator == table.decimal
