"""Own records by rules, from the command line: what the first month did not have fits in the second."""

from __future__ import annotations

import re

import pytest

from tests.cli.brazil import LATER, read_rows, schema_text, write_month


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "internacoes.toml"
    path.write_text(schema_text(), encoding="utf-8")
    return path


def test_two_months_of_one_schema(run, schema, tmp_path):
    months = [write_month(tmp_path / "m1.csv", 1), write_month(tmp_path / "m2.csv", 2, codes=LATER)]
    printed = []
    for month in months:
        out = month.with_suffix(".out.csv")
        released = run("anonymize", month, "--schema", schema, "--k", "5", "--require", "l=2:cid", "-o", out, "--json")
        assert released.code == 0, released.err
        checked = run("check", out, "--schema", schema, "--original", month, "--json").json
        assert (checked["truthfulness"], checked["manifest"]["verified_hash"]) == (1.0, True)
        assert checked["ncp_published"] == pytest.approx(released.json["ncp_published"])
        verified = run("verify", f"{out}.manifest.json", "--original", month, "--rebuild", "--json").json
        assert verified["verified"]
        printed.append(read_rows(out))
    assert {row["cid"] for row in printed[1]} <= {"E14.7", "I50", "Q21.1", "R05", "T14.9", "B34.2"}
    for row in (row for rows in printed for row in rows):
        assert re.fullmatch(r"\d{1,3}|\[\d+, \d+\]|\d+\+|\*", row["nascimento"])
        assert re.fullmatch(r"\d{5}-\d{3}|\d{1,5}\*|\*", row["cep"])
        assert re.fullmatch(r"2024(-\d\d(-\d\d)?|-Q[1-4])?|\[2024-\d\d-\d\d, 2024-\d\d-\d\d\]|\*", row["internacao"])


def test_people_over_89_are_not_told_apart(run, schema, tmp_path):
    """HIPAA's rule: no published age says more than '90+'."""
    month = write_month(tmp_path / "m.csv", 1, people=150)
    out = tmp_path / "out.csv"
    assert run("anonymize", month, "--schema", schema, "--k", "2", "-o", out).code == 0
    ages = [row["nascimento"] for row in read_rows(out)]
    assert any(age.endswith("+") for age in ages)
    assert not [age for age in ages if any(int(number) > 90 for number in re.findall(r"\d+", age))]


def test_what_does_not_fit_is_counted(run, schema, tmp_path):
    month = write_month(tmp_path / "m.csv", 1)
    text = month.read_bytes().decode("latin-1")
    day = re.search(r";(\d\d/\d\d/2024);", text)
    month.write_bytes(text.replace(day[1], "2024.01.99", 1).encode("latin-1"))
    for command in (("schema", "check", schema, month), ("anonymize", month, "--schema", schema, "--k", "5")):
        failed = run(*command)
        assert failed.code == 3
        assert "'internacao' has 1 values that are no dates in the format %d/%m/%Y" in failed.err
        assert "2024.01.99" not in failed.err + failed.out


def test_infer_proposes_rules(run, tmp_path):
    month, proposal = write_month(tmp_path / "m.csv", 1), tmp_path / "proposed.toml"
    assert run("schema", "infer", month, "-o", proposal).code == 0
    text = proposal.read_text(encoding="utf-8")
    for line in ('format = "%d/%m/%Y"', 'form = "99999-999"', 'type = "icd10"', 'person_id = "prontuario"'):
        assert line in text
    text = text.replace('role = "undecided"', 'role = "insensitive"')
    proposal.write_text(text, encoding="utf-8")
    later = write_month(tmp_path / "m2.csv", 2, codes=LATER)
    assert run("anonymize", later, "--schema", proposal, "--k", "5", "-o", tmp_path / "out.csv").code == 0
