"""A hospital's own table through the command line: from the file to a verified release, its report and a federation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.hospital_table import HOSPITALS, hospital_rows, write_csv, write_excel, write_fhir, write_sqlite

ROWS = hospital_rows()
#: the rules that `schema infer` proposes by itself
RULED = {"nascimento": "date", "cep": "code", "cid": "icd10"}
WRITTEN = {"csv": "csv", "xlsx": "xlsx", "sqlite": "csv", "fhir": "ndjson"}


def check_proposal(schema: Path) -> None:
    """Rules are proposed, the target is named, and nothing is left for a person to write."""
    text = schema.read_text(encoding="utf-8")
    for column, rule in RULED.items():
        assert re.search(rf'\[attributes.{column}\]\nrole = "\w+"\ntype = "{rule}"', text), column
    assert 'target = "obito"' in text
    assert 'role = "undecided"' not in text


def source(kind: str, folder: Path) -> list[str | Path]:
    """The same rows in one of the formats, as arguments of a command."""
    if kind == "csv":
        return [write_csv(ROWS, folder / "pacientes.csv")]
    if kind == "xlsx":
        return [write_excel(ROWS, folder / "pacientes.xlsx"), "--sheet", "internações"]
    if kind == "sqlite":
        return [write_sqlite(ROWS, folder / "h.db"), "--query", "SELECT * FROM stays"]
    first, second = write_fhir(ROWS, folder / "export")
    return [folder / "export", "--view", first, "--view", second]


@pytest.mark.parametrize(
    "kind", ["csv", "fhir", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("xlsx", "sqlite"))]
)
def test_from_a_hospitals_table_to_a_release_a_report_and_a_federation(kind: str, run: Run, tmp_path: Path) -> None:
    table = source(kind, tmp_path)
    schema, out, key = tmp_path / "s.toml", tmp_path / f"released.{WRITTEN[kind]}", tmp_path / "rows.json"
    inferred = run("schema", "infer", *table, "--target", "obito", "-o", schema)
    assert inferred.code == 0, inferred.err
    if kind == "csv":
        assert "cp1252, separator ';', decimal comma, header line, quotes where needed" in inferred.out
    check_proposal(schema)
    made = run("anonymize", *table, "--schema", schema, "--k", "10", "-o", out, "--row-key", key, "--json")
    assert made.code == 0, made.err
    assert made.json["people"] == ROWS["cpf"].nunique()
    assert made.json["k_reached"] >= 10
    if kind == "fhir":
        assert '"valuePeriod": {"start": "19' in out.read_text(encoding="utf-8")
    original, *options = table
    seen = ("--original", original, *options, "--row-key", key)
    checked = run("check", out, "--schema", schema, *seen, "--k", "10", "--json")
    assert checked.code == 0, checked.err
    assert checked.json["k_reached"] == made.json["k_reached"]
    assert checked.json["truthfulness"] == 1
    page = tmp_path / "report.html"
    told = run("report", "--privacy", out, "--schema", schema, *seen, "--no-attacks", "-o", page)
    assert told.code == 0, told.err
    learned = run(
        "simulate", *table, "--schema", schema, "--partition", "by:hospital", "--k", "10", "--rounds", "2", "--json"
    )
    assert learned.code == 0, learned.err
    assert learned.json["settings"]["nodes"] == len(HOSPITALS)
    assert learned.json["n_train"] + learned.json["n_test"] == len(ROWS)
    assert learned.json["k_reached"] >= 10
    assert str(tmp_path) not in learned.out
    manifest = Path(f"{out}.manifest.json").read_text(encoding="utf-8")
    for text in (page.read_text(encoding="utf-8"), manifest, made.out, learned.out):
        assert not any(secret in text for secret in (*ROWS["cpf"][:20], *ROWS["nome"][:20]))


def test_a_target_is_a_column_of_the_table_that_names_nobody(run: Run, tmp_path: Path) -> None:
    table = write_csv(ROWS, tmp_path / "pacientes.csv")
    for column, said in {
        "morte": "no column 'morte'",
        "cpf": "'cpf' cannot be the target: it looks identifying",
    }.items():
        failed = run("schema", "infer", table, "--target", column)
        assert failed.code == 2
        assert said in failed.err


SCHEMA = """
person_id = "patient"
target = "outcome"
[attributes.patient]
role = "identifying"
[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
integer = true
[attributes.stay]
role = "quasi_identifying"
type = "numeric"
range = [0, 60]
[attributes.outcome]
role = "sensitive"
type = "categorical"
values = ["good", "poor"]
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three files, one per node, and a schema."""
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    folder = tmp_path / "nodes"
    folder.mkdir()
    found = []
    for node in range(3):
        lines = ["patient,age,stay,outcome"]
        for i in range(40 + 10 * node):
            age = 20 + (i * 7 + node) % 60
            lines.append(f"{node}-{i},{age},{i % 9 + 0.5},{'poor' if (age + i) % 3 else 'good'}")
        path = folder / f"ward{node}.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found.append(path)
    return found


def test_a_file_per_node(run: Run, files: list[Path], tmp_path: Path) -> None:
    how = ("--schema", tmp_path / "s.toml", "--k", "4", "--rounds", "2", "--json")
    each = [argument for file in files for argument in ("--node", file)]
    several, folder = run("simulate", *each, *how), run("simulate", tmp_path / "nodes", *how)
    assert several.code == folder.code == 0, several.err + folder.err
    sizes = [facts["n_train"] + facts["n_test"] for facts in several.json["facts"].values()]
    assert sizes == [40, 50, 60]
    assert several.json["settings"]["partition"] == "stored"
    assert list(several.json["data"]["files"]) == ["ward0.csv", "ward1.csv", "ward2.csv"]
    assert folder.json["auc_pooled"] == several.json["auc_pooled"]
    assert str(tmp_path) not in several.out + folder.out


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--methods", "mondrian", "--k", "4"),
        ("attack", "--k", "4", "--suite", "record_linkage"),
        ("sdc", "risk"),
        ("sdc", "compare", "--method", "rounding", "--sweep", "base=5"),
        ("anonymize", "--k", "4"),
    ],
)
def test_every_command_takes_a_folder_and_files(
    command: tuple[str, ...], run: Run, files: list[Path], tmp_path: Path
) -> None:
    told = run(*command, tmp_path / "nodes", "--schema", tmp_path / "s.toml", "--json")
    assert told.code == 0, told.err
    assert told.json["n"] == 150
    some = run(*command, "--node", files[0], "--node", files[1], "--schema", tmp_path / "s.toml", "--json")
    assert some.json["n"] == 90


def test_a_data_set_may_be_named_in_place_of_a_file(run: Run) -> None:
    told = run("compare", "randhie", "--methods", "identity", "--k", "5", "--json")
    assert told.code == 0, told.err
    assert told.json["n"] == 5514
    assert run("compare", "nosuch", "--methods", "identity", "--schema", "x.toml").code == 3
    both = run("compare", "randhie", "--dataset", "adult", "--methods", "identity")
    assert both.code == 2
    assert "either" in both.err


def test_a_new_experiment_runs_as_it_is(run: Run, files: list[Path], tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    toml = tmp_path / "own" / "own.toml"
    new = ("experiment", "new", tmp_path / "nodes", "--schema", tmp_path / "s.toml", "-o", toml)
    assert run(*new).code == 0
    assert run(*new).code == 2, "it exists"
    text = toml.read_text(encoding="utf-8")
    assert 'data = "../nodes"' in text
    assert 'partition = "stored"' in text
    small = {
        "rounds = 20": "rounds = 2",
        "k = [5, 10, 20]": "k = 5",
        "k = [5, 10]": "k = 5",
        "seeds = 3 ": "seeds = 1 ",
    }
    for old, new_text in (small | {'["mondrian", "gfkmc"]': '["mondrian"]', '["lr", "xgb"]': '"lr"'}).items():
        assert old in text
        text = text.replace(old, new_text)
    toml.write_text(text, encoding="utf-8")
    done = run("experiment", "run", toml, "--workers", "1", "--json")
    assert done.code == 0, done.err
    assert (done.json["computed"], done.json["failures"]) == (3, {})
    assert run("experiment", "run", toml, "--workers", "1", "--json").json["kept"] == 3
    manifest = (tmp_path / "own/results/own/manifest.json").read_text(encoding="utf-8")
    known = json.loads(manifest)
    assert {"nodes", "nodes: ward0.csv", "nodes: schema"} <= set(known["data"])
    assert "../" not in known["config"]
    assert str(tmp_path) not in manifest
    with files[0].open("a", encoding="utf-8") as file:
        file.write("9-9,50,1.5,good\n")
    assert run("experiment", "status", toml, "--json").json["finished"] == 0, "other data are other cells"


def test_an_experiment_without_a_target_or_with_wrong_keys(run: Run, files: list[Path], tmp_path: Path) -> None:
    schema = tmp_path / "s.toml"
    schema.write_text(SCHEMA.replace('target = "outcome"\n', ""), encoding="utf-8")
    toml = tmp_path / "own.toml"
    assert run("experiment", "new", files[0], "--schema", schema, "-o", toml).code == 0
    assert "names no target" in toml.read_text(encoding="utf-8")
    assert run("experiment", "status", toml, "--json").json["cells"] == 18
    for wrong, words in (
        ('dataset = "adult"\ndata = "a.csv"', "give one of them"),
        ('schema = "s.toml"', "give one of them"),
        ('source = { data = ["a.csv"] }', "unknown key source"),
        ("data = 3", "texts or lists of texts"),
        ('data = "a.csv"', "needs a schema"),
    ):
        toml.write_text(f'[[grid]]\ntask = "release"\nmethods = ["mondrian"]\nk = 5\n{wrong}\n', encoding="utf-8")
        told = run("experiment", "status", toml)
        assert told.code == 2, wrong
        assert words in told.err


@pytest.mark.slow
def test_the_tour_takes_an_own_table(run: Run, files: list[Path], tmp_path: Path) -> None:
    table = ("--data", tmp_path / "nodes", "--schema", tmp_path / "s.toml")
    told = run("tour", *table, "--k", "4", "--rounds", "1", "--plot", tmp_path / "tour.png", "--json")
    assert told.code == 0, told.err
    assert {result["dataset"] for result in told.json} == {"nodes"}
    assert {result["settings"]["partition"] for result in told.json} == {"stored"}


def test_a_table_without_header(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{20 + i},{i % 3}.5\n" for i in range(30)), encoding="utf-8")
    told = run("schema", "infer", path)
    assert told.code == 3
    assert "--no-header" in told.err
    assert "[attributes.c1]" in run("schema", "infer", path, "--no-header").out
    out = tmp_path / "out.csv"
    made = run("anonymize", path, "--no-header", "--qi", "c1", "--k", "3", "-o", out, "--json")
    assert made.code == 3, "undecided columns are not published"
    made = run("anonymize", path, "--no-header", "--qi", "all", "--k", "3", "-o", out, "--json")
    assert made.code == 0, made.err
    assert "no header line" in made.json["read_as"]
    assert [change["kind"] for change in made.json["changes"]] == ["header"]
    assert out.read_text(encoding="utf-8").splitlines()[0] == "c1,c2"
    schema = tmp_path / "s.toml"
    assert run("schema", "infer", path, "--no-header", "-o", schema).code == 0
    schema.write_text(schema.read_text(encoding="utf-8").replace("undecided", "quasi_identifying"), encoding="utf-8")
    how = ("--schema", schema, "--no-header")
    assert run("anonymize", path, *how, "--k", "3", "-o", out, "--force").code == 0
    page = tmp_path / "report.html"
    told = run("report", "--privacy", out, "--original", path, *how, "--language", "pt", "--no-attacks", "-o", page)
    assert told.code == 0, told.err
    assert "Linha de cabeçalho" in page.read_text(encoding="utf-8")
