"""Every bad file a steward may bring: exit code 2, one line that names what is wrong, no cell, no partial output."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SCHEMA, Run

CANARY = "CANARY-93417"
HEADER = "patient,age,sex,unit,diagnosis\n"
ROWS = "".join(f"P{i},{30 + i},{'FM'[i % 2]},cardiac,flu\n" for i in range(12))


def text(body: str) -> bytes:
    return (HEADER + ROWS + body).encode()


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", ""),
    "header only": (HEADER.encode(), ""),
    "truncated": (text(f"P99,30,F,{CANARY}")[:-1], ""),
    "latin-1": (HEADER.encode() + "P1,30,F,cardíac,flu\n".encode("latin-1"), "'unit' has 1 value"),
    "damaged utf-8": (HEADER.encode() + "P1,30,F,cardíac,é".encode() + b"\xe9\n", "encoding"),
    "utf-16 without a mark": ((HEADER + ROWS).encode("utf-16-le"), "encoding"),
    "utf-16 cut off": ((HEADER + ROWS).encode("utf-16")[:-1], "encoding"),
    "utf-32": ((HEADER + ROWS).encode("utf-32"), "encoding"),
    "mixed types": (text(f"P99,{CANARY},F,cardiac,flu\n"), "'age' has 1 value"),
    "nan in a number": (text("P99,nan,F,cardiac,flu\n"), "'age' has 1 value"),
    "infinite number": (text("P99,inf,F,cardiac,flu\n"), "'age' has 1 value"),
    "missing quasi-identifier": (text("P99,,F,cardiac,flu\nP98,30,?,cardiac,flu\n"), "'age' has 1 missing"),
    "out of range": (text("P99,999,F,cardiac,flu\n"), "'age' has 1 value"),
    "unseen category": (text(f"P99,30,F,{CANARY},flu\n"), "'unit' has 1 value"),
    "too many fields": (text(f"P99,30,F,cardiac,flu,{CANARY}\n"), ""),
    "unclosed quote": (text(f'P99,30,F,cardiac,"{CANARY}\n'), ""),
    "undeclared column": (
        f"{HEADER.strip()},extra\nP1,30,F,cardiac,flu,{CANARY}\n".encode(),
        "does not declare: extra",
    ),
    "declared column absent": (f"patient,age,sex,diagnosis\nP1,30,F,{CANARY}\n".encode(), "unit"),
    "column twice": (f"{HEADER.strip()},age\nP1,30,F,cardiac,flu,31\n".encode(), "same name"),
    "gzip": (gzip.compress(text("")), ""),
    "zip bomb": (b"PK\x03\x04" + b"\0" * 1000, ""),
    "long line": (text("P99,30,F,cardiac," + "x" * (2 * 2**20) + "\n"), "line"),
    "fewer people than k": (f"{HEADER}P1,30,F,cardiac,flu\n".encode(), "fewer than k=3"),
    "few people with many rows": ((HEADER + "P1,30,F,cardiac,flu\n" * 9).encode(), "1 people, fewer than k=3"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_file(case: str, run: Run, schema: Path, tmp_path: Path) -> None:
    data, words = BAD_FILES[case]
    bad, out = tmp_path / "bad.csv", tmp_path / "out.csv"
    bad.write_bytes(data)
    done = run("anonymize", bad, "--schema", schema, "--method", "mondrian", "--k", "3", "-o", out)
    assert done.code == (5 if "few" in case else 3), done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert words in done.err
    assert CANARY not in done.err + done.out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.csv", "ward.toml"]


def test_byte_order_mark_is_accepted(run: Run, schema: Path, tmp_path: Path) -> None:
    path = tmp_path / "bom.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text(""))
    assert run("anonymize", path, "--schema", schema, "--k", "3").code == 0


def test_latin_1_is_read_when_asked(run: Run, tmp_path: Path) -> None:
    schema = tmp_path / "ward.toml"
    schema.write_text(SCHEMA.replace('"cardiac"', '"cardíac"'), encoding="utf-8")
    path = tmp_path / "latin.csv"
    path.write_bytes((HEADER + ROWS.replace("cardiac", "cardíac")).encode("latin-1"))
    assert run("anonymize", path, "--schema", schema, "--k", "3", "--encoding", "latin-1").code == 0


@pytest.mark.parametrize("policy", ["category", "wildcard"])
def test_missing_values_by_policy(policy: str, run: Run, schema: Path, tmp_path: Path) -> None:
    path = tmp_path / "gaps.csv"
    path.write_bytes(text("P98,,F,cardiac,flu\nP99,40,?,cardiac,flu\n"))
    done = run("anonymize", path, "--schema", schema, "--k", "3", "--missing", policy, "--json")
    assert done.code == 0, done.err
    assert done.json["n"] == 14
    assert done.json["k_reached"] >= 3


def test_constant_column(run: Run, schema: Path, tmp_path: Path) -> None:
    path = tmp_path / "constant.csv"
    path.write_text(HEADER + "".join(f"P{i},40,F,cardiac,flu\n" for i in range(9)))
    done = run("anonymize", path, "--schema", schema, "--k", "3", "--json")
    assert done.json["ncp"] == 0


def replace_in_schema(old: str, new: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(SCHEMA.replace(old, new), encoding="utf-8")  # type: ignore[return-value]


BAD_SCHEMAS = {
    "no file": lambda path: path.unlink(),
    "not TOML": lambda path: path.write_text("= broken ["),
    "unknown role": replace_in_schema('"sensitive"', '"secret"'),
    "unknown key": replace_in_schema("integer = true", "whole = true"),
    "no range": replace_in_schema("range = [0, 110]\n", ""),
    "range upside down": replace_in_schema("[0, 110]", "[110, 0]"),
    "target not declared": replace_in_schema('target = "diagnosis"', 'target = "nothing"'),
    "leaf twice": replace_in_schema('"oncology"', '"cardiac"'),
    "numbers as labels": replace_in_schema('["F", "M"]', "[1, 2]"),
    "cycle": replace_in_schema('Surgery = ["cardiac", "orthopaedics"]', 'Surgery = [{ Surgery = ["cardiac"] }]'),
    "missing leaf": replace_in_schema('"cardiac", ', ""),
    "too deep": replace_in_schema('"cardiac", ', "[" * 10_000 + "]" * 10_000 + ", "),
    "hierarchy outside the folder": replace_in_schema('values = ["F", "M"]', 'hierarchy = "../../etc/passwd"'),
    "hierarchy not there": replace_in_schema('values = ["F", "M"]', 'hierarchy = "sex.csv"'),
}


@pytest.mark.parametrize("case", BAD_SCHEMAS)
def test_bad_schema(case: str, run: Run, ward: Path, schema: Path, tmp_path: Path) -> None:
    BAD_SCHEMAS[case](schema)
    out = tmp_path / "out.csv"
    done = run("anonymize", ward, "--schema", schema, "--k", "3", "-o", out)
    assert done.code == 3, done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert not out.exists()


BAD_OPTIONS = {
    "k of one": ["--method", "mondrian", "--k", "1"],
    "no k": ["--method", "mondrian"],
    "k for das": ["--method", "das", "--k", "3"],
    "unknown method": ["--method", "mondrain", "--k", "3"],
    "unknown parameter": ["--method", "mondrian", "--k", "3", "--set", "strictness=9"],
    "wrong parameter": ["--method", "gfkmc", "--k", "3", "--set", "publish=everything"],
    "no equals sign": ["--method", "gfkmc", "--k", "3", "--set", "publish"],
    "unknown policy": ["--method", "mondrian", "--k", "3", "--missing", "drop"],
    "folder of the output absent": ["--method", "mondrian", "--k", "3", "-o", "no/such/folder/out.csv"],
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_option(case: str, run: Run, ward: Path, schema: Path) -> None:
    done = run("anonymize", ward, "--schema", schema, *BAD_OPTIONS[case])
    assert done.code == (3 if "absent" in case else 2), done.err
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def test_a_typo_is_answered_with_a_suggestion(run: Run) -> None:
    assert "Did you mean 'mondrian'?" in run("anonymize", "--dataset", "adult", "--method", "mondrain").err


def test_internal_errors_show_no_values(run: Run, monkeypatch: pytest.MonkeyPatch, ward: Path, schema: Path) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("fedanon.cli.anonymize.run", broken)
    done = run("anonymize", ward, "--schema", schema, "--k", "3")
    assert done.code == 70
    assert CANARY not in done.err
    assert "ValueError" in done.err
