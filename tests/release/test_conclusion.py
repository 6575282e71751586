"""The conclusion about a release: its level is that of its worst finding, and its counts are those of a recount."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import Mondrian
from fedanon.data.schema import FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.io.release_file import FileForm, manifest_path, read_release, write_release
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.conclusion import MAX_UNIQUE, Conclusion, ReleaseFinding, conclude
from fedanon.release.exposure import measure_exposure
from fedanon.release.release import Release
from fedanon.release.verdicts import Mechanism, Verdict, evaluate_claim, verified_claim
from fedanon.report.privacy.headline import sentences, title
from fedanon.report.privacy.language import language
from tests.independent_recount import contradictions, declared, recount

SCHEMA = Schema(
    (
        FreeText("patient", Role.IDENTIFYING),
        Numeric("age", Role.QUASI_IDENTIFYING, 0, 99, True),
        FreeText("illness", Role.SENSITIVE),
        FreeText("color", Role.INSENSITIVE),
    ),
    one_row_per_person=True,
)


def frame(rows: int = 200, *, remarks: int = 1, illnesses: int = 2) -> pd.DataFrame:
    """Everybody is about as old as many others."""
    number = np.arange(rows)
    return pd.DataFrame(
        {
            "patient": number,
            "age": 20 + number % 5,
            "illness": [f"i{i}" for i in number // 5 % illnesses],
            "color": [f"r{i}" for i in number % remarks],
        }
    )


def release_of(data: pd.DataFrame, schema: Schema = SCHEMA, k: int = 5) -> Release:
    return Mondrian(k=k).anonymize(Table.from_frame(data, schema), rng=0)


def concluded(data: pd.DataFrame, schema: Schema = SCHEMA) -> Conclusion:
    release = release_of(data, schema)
    return conclude(release, verified_claim(release))


def kinds(conclusion: Conclusion) -> list[str]:
    return [finding.kind for finding in conclusion.findings]


@dataclass
class Tried:
    """An attack and what became of it."""

    attack: str
    rate: float
    baseline: float
    low: float


# ---- levels -------------------------------------------------------------------------------------


def test_nothing_speaks_against_it() -> None:
    found = concluded(frame())
    assert (found.level, found.findings, found.unit) == ("kept", (), "people")
    assert found.measured["promises"] == {"kept": 1, "broken": 0, "not_checked": 0}


def test_rows_that_are_unique_over_all_columns_are_a_finding() -> None:
    """The quasi-identifiers are safe, and the remark gives nearly everyone away."""
    found = concluded(frame(remarks=190))
    assert (found.level, kinds(found)) == ("kept_but", ["suspected_identifier", "jointly_unique"])
    assert found.findings[-1].share == pytest.approx(180 / 200)


def test_a_few_unique_rows_are_none() -> None:
    data = frame()
    rare = int(MAX_UNIQUE * len(data))
    data.loc[: rare - 1, "color"] = [f"x{i}" for i in range(rare)]
    assert concluded(data).level == "kept"
    data.loc[:rare, "color"] = [f"x{i}" for i in range(rare + 1)]
    assert kinds(concluded(data)) == ["jointly_unique"]


def test_one_certain_value_is_a_finding() -> None:
    data = frame()
    data.loc[data["age"] == 20, "illness"] = "i0"
    found = concluded(data)
    assert (found.level, kinds(found)) == ("kept_but", ["homogeneous"])
    assert found.findings[0].to_dict() == {
        "kind": "homogeneous", "columns": ["illness"], "count": 40, "of": 200, "share": 0.2
    }  # fmt: skip


def test_a_column_that_looks_like_an_identifier_is_a_finding() -> None:
    named = SCHEMA.replacing()
    named = replace(named, attributes=(*SCHEMA.attributes[:3], FreeText("full_name", Role.INSENSITIVE)))
    found = concluded(frame().rename(columns={"color": "full_name"}), named)
    assert (found.level, found.findings[0].columns) == ("kept_but", ("full_name",))


def test_records_are_not_people() -> None:
    found = concluded(frame(), replace(SCHEMA, one_row_per_person=None))
    assert (found.level, found.unit, kinds(found)) == ("kept_but", "records", ["records_counted"])


def test_an_attack_is_a_finding_only_if_it_beats_guessing() -> None:
    release = release_of(frame())
    for tried, expected in [
        (Tried("singling_out", 1.0, 0.0, 0.99), ["singled_out"]),
        (Tried("singling_out", 0.5, 0.5, 0.48), []),
        (Tried("singling_out", 0.01, 0.0, 0.005), []),
        (Tried("record_linkage", 1.0, 0.0, 0.99), ["attack_gains"]),
        (Tried("record_linkage", 0.2, 0.1, 0.15), []),
        (Tried("homogeneity", 1.0, 0.0, 0.99), []),
    ]:
        assert kinds(conclude(release, verified_claim(release), attacks=[tried])) == expected


def test_the_worst_decides() -> None:
    release = release_of(frame(remarks=190))
    kept, broken = evaluate_claim(release, [KAnonymity(k=5), KAnonymity(k=201)])
    left = Verdict(Mechanism("magic"), None, 0, 1, "mechanism")
    changed = [ReleaseFinding(kind="file_changed")]
    assert conclude(release, [kept]).level == "kept_but"
    assert conclude(release, [kept, left]).level == "not_checked"
    assert conclude(release, [kept, left, broken]).level == "broken"
    assert conclude(release, []).level == "nothing_promised"
    assert conclude(release, [], failed=changed).level == conclude(release, [kept], failed=changed).level == "broken"


def test_what_is_noise_is_not_said_to_be_unique() -> None:
    release = release_of(frame(remarks=190))
    kept = Verdict(Mechanism("differential privacy"), True, 0, 1)
    assert "jointly_unique" not in kinds(conclude(release, [kept]))


def test_everything_suppressed() -> None:
    release = release_of(frame())
    nothing = replace(release, groups=type(release.groups)(np.full(200, -1, dtype=np.int32), 0))
    exposure = measure_exposure(nothing)
    assert (exposure.rows.count, exposure.unique.share, exposure.certain["illness"].exposed.share) == (0, 0, 0)


# ---- the counts ---------------------------------------------------------------------------------


def visits(rng: np.random.Generator) -> tuple[pd.DataFrame, Schema]:
    """A random table, with or without people who come several times, missing values and formulas."""
    rows = int(rng.integers(10, 80))
    said = rng.integers(0, 4)
    schema = replace(
        SCHEMA,
        person_id="patient" if said == 0 else None,
        one_row_per_person={0: None, 1: True, 2: False, 3: None}[int(said)],
        attributes=(*SCHEMA.attributes, Numeric("cost", Role.SENSITIVE, 0, 9)),
    )
    person = rng.integers(0, rows // 2, rows) if said in (0, 2) else np.arange(rows)
    illness = np.array(["flu", "=1+1", "a,b", None], dtype=object)
    data = {
        "patient": person,
        "age": rng.integers(20, 20 + rng.integers(2, 40), rows),
        "illness": illness[rng.integers(0, rng.integers(1, 5), rows)],
        "color": [f"r{i}" for i in rng.integers(0, rng.integers(1, 2 * rows), rows)],
        "cost": rng.integers(0, rng.integers(1, 4), rows) / 2,
    }
    return pd.DataFrame(data), schema


@pytest.mark.parametrize("seed", range(40))
def test_no_sentence_is_denied_by_a_recount(seed: int, tmp_path: Path) -> None:
    data, schema = visits(np.random.default_rng(seed))
    table = Table.from_frame(data, schema)
    release = Mondrian(k=min(3, table.n_units)).anonymize(table, rng=seed)
    path = write_release(release, table, tmp_path / "out.csv", form=FileForm(keep_order=True))
    said = declared(manifest_path(path))
    # with one row per person every row is somebody else's
    persons = data["patient"].tolist() if schema.unit == "people" else None
    counted = recount(path, said.roles, persons, numeric=said.numeric, missing=said.missing)
    blind = read_release(path, schema)
    known = replace(blind, persons=table.persons)
    for view in (release, blind, known):
        found = conclude(view, evaluate_claim(view, [KAnonymity(k=3)]))
        text = " ".join([title(found, language("en")), *sentences(found, language("en"))])
        assert contradictions(text, found.to_dict(), counted) == []
        assert (found.unit == "people") == (view.knows_people and schema.unit == "people")


def test_a_recount_denies_what_is_wrong(tmp_path: Path) -> None:
    """The check itself: every number that is off by one is seen, and people are denied where they are not known."""
    data = frame(remarks=190)
    data.loc[data["age"] == 20, "illness"] = "i0"
    release = release_of(data)
    path = write_release(release, Table.from_frame(data, SCHEMA), tmp_path / "out.csv")
    roles = {"age": "quasi_identifying", "illness": "sensitive", "color": "insensitive"}
    counted = recount(path, roles, list(range(200)))
    right = (
        "shared by at least 40 people; smallest class, in people (k reached) 40; 90 % of the published rows (180 of "
        "200) hold values; 'illness': 20 % of the published people (40 of 200) are in a class; 200 rows; 200 people; "
        "illness : in 1 classes all have the same value. Whoever knows; 20 % of the people are in one"
    )
    assert contradictions(right, {}, counted) == []
    for true, false in [
        ("at least 40", "at least 41"),
        ("reached) 40", "reached) 41"),
        ("90 %", "89 %"),
        ("(180 of", "(179 of"),
        ("20 %", "21 %"),
        ("(40 of", "(39 of"),
        ("in 1 classes", "in 2 classes"),
        ("; 20 % of the people", "; 19 % of the people"),
        ("200 rows", "201 rows"),
        ("200 people;", "201 people;"),
    ]:
        assert contradictions(right.replace(true, false), {}, counted), false
    assert len(contradictions(right, {}, recount(path, roles, None))) >= 4
    found = conclude(release, verified_claim(release)).to_dict()
    assert contradictions("", found, counted) == []
    for name in ("rows", "published_rows", "smallest_class", "unique_rows"):
        wrong = found | {"measured": found["measured"] | {name: found["measured"][name] - 1}}
        assert contradictions("", wrong, counted), name
    assert contradictions("", found | {"findings": []}, counted)
    assert contradictions("Not kept: every record is shared by at least 99 people.", {}, counted) == []
    assert contradictions("is shared by at least 99 people (k-anonymity) 99 40 ✗ FAILS", {}, counted) == []
