"""Rules and taxonomies as forms give them; roles that need a type; a project that is copied."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fedanon.app.pages.protect import requirement
from fedanon.app.pages.rules import read_outline, tree_lines
from fedanon.app.project import Project
from fedanon.data.hierarchy import Hierarchy
from fedanon.data.schema import Numeric, Schema
from fedanon.privacy.requirements import parse_requirements
from tests.app.conftest import Visitor

TREE: list[Any] = [{"Surgery": ["heart", "bones"]}, "other"]


def test_an_outline_is_read_back() -> None:
    text = "Surgery\n  heart\n  bones\nother\n"
    assert read_outline(text, {"heart", "bones", "other"}) == TREE
    assert [line["label"] for line in tree_lines(Hierarchy.from_nested(TREE))] == ["Surgery", "heart", "bones", "other"]


@pytest.mark.parametrize(
    "text", ["heart\n", "heart\nheart\nbones\nother", "    heart\nbones\nother", "Surgery\n      heart\nbones\nother"]
)
def test_an_outline_that_loses_repeats_or_jumps_is_refused(text: str) -> None:
    assert read_outline(text, {"heart", "bones", "other"}) is None


def test_groups_in_which_nothing_is_are_left_out() -> None:
    assert read_outline("Empty\nheart\n", {"heart"}) == ["heart"]


def _open(visitor: Visitor) -> Schema:
    visitor.enter()
    wards = ("heart", "bones", "lungs")
    rows = "\n".join(f"{i},{20 + i % 50},{wards[i % 3]},{i % 2}" for i in range(60))
    visitor.post("/open/upload", files={"file": ("t.csv", f"patient_id,age,ward,sick\n{rows}\n".encode(), "text/csv")})
    assert visitor.post("/columns/propose").status_code == 303
    roles = ("identifying", "quasi_identifying", "quasi_identifying", "sensitive")
    form = {f"role_{i}": role for i, role in enumerate(roles)}
    assert visitor.post("/columns", {**form, "person": "column:patient_id"}).status_code == 303
    return Schema.read(visitor.state.project.schema)


def test_without_a_table_no_page_fails(visitor: Visitor) -> None:
    visitor.enter()
    for path in ("/columns", "/risk", "/protect", "/steps", "/result"):
        assert visitor.client.get(path).status_code == 303, path
    for path in ("/columns/0", "/result/001", "/attacks/001", "/report/001"):
        assert visitor.client.get(path).status_code == 422, path
    assert visitor.post("/columns/propose").status_code == 422
    for path in ("/columns", "/columns/0", "/risk", "/protect", "/protect/compare", "/steps", "/steps/run"):
        form = {"step": "mondrian:k=5", "methods": "mondrian"}
        assert visitor.post(path, form).status_code == 422, path


def test_rules_are_kept_in_the_schema(visitor: Visitor) -> None:
    """Bands and a wider range of a number; values gathered in a new group, renamed, and moved out again."""
    schema = _open(visitor)
    assert schema.person_id == "patient_id"
    answer = visitor.post("/columns/1", {"type": "numeric", "low": "0", "high": "110", "integer": "1", "bands": "10"})
    assert answer.status_code == 303, answer.text
    age = Schema.read(visitor.state.project.schema)["age"]
    assert isinstance(age, Numeric)
    assert (age.low, age.high, age.integer) == (0, 110, True)

    def taxonomy(**form: str) -> Any:
        answer = visitor.post("/columns/2", {"type": "categorical", "by": "tree", **form})
        assert answer.status_code == 303, answer.text
        return Schema.read(visitor.state.project.schema)["ward"].hierarchy.to_nested()  # type: ignore[union-attr]

    assert taxonomy(new_group="Inside", into_1="1", into_2="1") == [{"Inside": ["heart", "lungs"]}, "bones"]
    assert taxonomy(label_0="Organs", parent_1="0", parent_2="0") == [{"Organs": ["heart", "lungs"]}, "bones"]
    assert taxonomy(parent_0="0", parent_1="", parent_2="0") == [{"Organs": ["lungs"]}, "heart", "bones"]
    bad = visitor.post("/columns/1", {"type": "numeric", "low": "x", "high": "110"})
    assert bad.status_code == 422
    assert visitor.client.get("/columns/99").status_code == 422


def test_a_text_that_becomes_a_quasi_identifier_gets_the_type_of_its_values(visitor: Visitor) -> None:
    _open(visitor)
    answer = visitor.post("/columns", {"role_0": "quasi_identifying", "person": "records"})
    assert answer.status_code == 303, answer.text
    schema = Schema.read(visitor.state.project.schema)
    assert schema.person_id is None
    assert isinstance(schema["patient_id"], Numeric)


@pytest.mark.parametrize("column", ["ill", "T.categ", "ill, or not", "a:b", "l=3:x,k=1"])
def test_a_requirement_is_about_the_column_whatever_its_name(column: str) -> None:
    text = requirement({"column": column, "l": 3, "t": 40})
    assert [model.column for model in parse_requirements(text)] == [column, column]  # type: ignore[attr-defined]


def test_a_project_is_the_same_wherever_it_is_copied(tmp_path: Path) -> None:
    project = Project.open(tmp_path / "one")
    project.save("source", data=["data/a b.csv"], header=False, query='SELECT "x"\n')
    project.save("protect", k=7, missing="category")
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    copied = Project.open(tmp_path / "other")
    assert copied.settings == project.settings
    words = [
        "data/a b.csv",
        "--query",
        'SELECT "x"\n',
        "--no-header",
        "--schema",
        "schema.toml",
        "--missing",
        "category",
    ]
    assert copied.table_words() == words
