"""`fedanon sdc risk` end to end: the oracle's numbers, declared weights and households, and no cell in the output."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

ADULT = ("--dataset", "adult", "--keys", "sex,race,marital-status,education,workclass")


def test_adult_as_sdcmicro_has_it(run: Run) -> None:
    """sdcMicro 5.8.1 on the 30,162 complete rows of adult.data: freqCalc, measure_risk, suda2."""
    done = run("sdc", "risk", *ADULT, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found["anonymity"] == {"violations_2": 542, "violations_3": 1040, "violations_5": 1646}
    assert found["individual"]["expected_reidentifications"] == pytest.approx(1483)
    assert found["key_combinations"] == 1483
    assert found["suda"]["records"] == 542
    assert found["suda"]["score_max"] == 12
    assert found["suda"]["dis_max"] == pytest.approx(0.1206289, abs=1e-7)
    # sdcMicro divides in single precision
    assert found["suda"]["dis_mean"] * 30162 == pytest.approx(8.390188, rel=1e-6)
    assert [entry["column"] for entry in found["diversity"]] == ["income"]
    assert "household" not in found


def test_max_size_bounds_the_uniques(run: Run) -> None:
    small = run("sdc", "risk", *ADULT, "--max-size", "2", "--json").json
    assert small["suda"]["max_size"] == 2
    assert small["suda"]["records"] < 542


@pytest.fixture
def survey(ward: Path, schema: Path) -> tuple[Path, Path]:
    """The ward as a sample: everybody stands for 10 people and shares a flat with a neighbor."""
    lines = ward.read_text().splitlines()
    rows = [f"{line},10,H{i // 2}" for i, line in enumerate(lines[1:])]
    ward.write_text("\n".join([f"{lines[0]},weight,flat", *rows]) + "\n")
    text = schema.read_text().replace('name = "ward"', 'name = "ward"\nweight = "weight"\nhousehold = "flat"')
    text += '[attributes.weight]\nrole = "insensitive"\ntype = "numeric"\nrange = [1, 1000]\n'
    text += '[attributes.flat]\nrole = "identifying"\n'
    schema.write_text(text)
    return ward, schema


def test_weights_and_households(run: Run, survey: tuple[Path, Path], tmp_path: Path) -> None:
    table, schema = survey
    out = tmp_path / "risk.json"
    done = run("sdc", "risk", table, "--schema", schema, "--keys", "sex,unit", "-o", out, "--json")
    assert done.code == 0, done.err
    found = done.json
    assert found == json.loads(out.read_text())
    # sex follows from the unit: four combinations of ten records that stand for 100 people; p = 0.1
    assert found["individual"]["highest_risk_naive"] == pytest.approx(1 / 100)
    assert found["individual"]["highest_risk"] == pytest.approx(0.1 / (10 - 0.9))
    assert found["anonymity"]["violations_5_population"] == 0
    one = 0.1 / 9.1
    assert found["household"]["highest_risk"] == pytest.approx(1 - (1 - one) ** 2)
    assert found["household"]["households"] == 20


def test_the_report_names_columns_and_tells_no_cell(run: Run, survey: tuple[Path, Path]) -> None:
    table, schema = survey
    done = run("sdc", "risk", table, "--schema", schema)
    assert done.code == 0, done.err
    for words in ("Benedetti-Franconi", "DIS-SUDA", "Households", "diagnosis", "recursive l", "fewer than 5"):
        assert words in done.out
    for value in ("cardiac", "oncology", "flu", "=cmd", "P003", "H7"):
        assert value not in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keys", "age,ward"], "no column 'ward'"),
        (["--keys", "patient"], "Identifying columns are dropped"),
        (["--keys", "diagnosis"], "need a type (numeric or categorical): diagnosis"),
    ],
)
def test_bad_keys_are_one_line(run: Run, ward: Path, schema: Path, arguments: list[str], message: str) -> None:
    done = run("sdc", "risk", ward, "--schema", schema, *arguments)
    assert done.code == (3 if "no column" in message or "need a type" in message else 2)
    assert message in done.err
    assert done.err.count("\n") == 1


def test_undecided_columns_are_named_and_keys_are_measured_without_them(run: Run, ward: Path, schema: Path) -> None:
    text = schema.read_text()
    first = re.search(r"\[attributes\.(\w+)\]\nrole = \"quasi_identifying\"", text)
    assert first is not None
    name = first[1]
    schema.write_text(text.replace(first[0], first[0].replace("quasi_identifying", "undecided")))
    refused = run("sdc", "risk", ward, "--schema", schema)
    assert (refused.code, "--keys a,b,c" in refused.err, name in refused.err) == (3, True, True)
    assert "Decide in the schema" in run("sdc", "risk", ward, "--schema", schema, "--keys", name).err
    other = next(key for key in re.findall(r"\[attributes\.(\w+)\]\nrole = \"quasi_identifying\"", text) if key != name)
    measured = run("sdc", "risk", ward, "--schema", schema, "--keys", other)
    assert measured.code == 0, measured.err
    assert f"Not counted, since their role is undecided: {name}." in measured.out
