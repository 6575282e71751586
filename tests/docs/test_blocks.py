"""The runner of the documentation's blocks notices what it is there for, and every page keeps its form."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import check_site
import pytest
from blocks import LANGUAGES, blocks_of, console_steps, missing_line
from run_blocks import run_page

ROOT = Path(__file__).parents[2]
FENCE = "```"


def page(folder: Path, *blocks: str) -> Path:
    path = folder / "tutorials" / "page.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(blocks), encoding="utf-8")
    return path


def test_blocks_are_run_in_order_and_files_are_written(tmp_path: Path) -> None:
    done = run_page(
        page(
            tmp_path,
            f'{FENCE}toml title="a.toml"\nx = 1\n{FENCE}',
            f"{FENCE}sh\ntest -f a.toml && echo 2 > b\n{FENCE}",
            f"{FENCE}console\n$ cat b\n2\n{FENCE}",
            f"{FENCE}python\nx = int(open('b').read())\n{FENCE}",
            f"{FENCE}python\nassert x == 2\n{FENCE}",
            f"<!-- not run: it would fail -->\n{FENCE}sh\nfalse\n{FENCE}",
        )
    )
    assert done.failures == []
    assert done.ran == 5
    assert [block.reason for block in done.skipped] == ["it would fail"]


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("sh", "false"),
        ("console", "$ echo one\ntwo"),
        ("python", "raise SystemExit(3)"),
        ("toml", "x = = 1"),
        ("json", "{"),
    ],
)
def test_what_does_not_work_is_a_failure(language: str, code: str, tmp_path: Path) -> None:
    assert run_page(page(tmp_path, f"{FENCE}{language}\n{code}\n{FENCE}")).failures


def test_what_a_console_shows_is_compared_in_order() -> None:
    assert console_steps("$ a \\\n  b\none\n$ c\n") == [("a \\\n  b", ["one"]), ("c", [])]
    assert missing_line(["one  1", "...", "t...o"], "zero\none 1\nx\ntwo") is None
    assert missing_line(["two", "one"], "one\ntwo") == "one"


@pytest.mark.parametrize("path", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name)
def test_fences_of_a_page_are_known(path: Path) -> None:
    """A block in a language that nothing runs would be shown unchecked."""
    fences = re.findall(r"^ *```(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences) <= {*LANGUAGES, "text"}
    assert len(blocks_of(path)) == sum(fence != "text" for fence in fences)


def test_files_at_the_root_link_to_what_is_there() -> None:
    assert check_site.broken_links(ROOT) == []


def test_pages_that_are_named_exist() -> None:
    """In docstrings, comments and messages too."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in files:
        path = ROOT / name
        if path.suffix not in (".py", ".toml", ".md", ".service") or "CHANGELOG" in name or not path.exists():
            continue
        for found in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text(encoding="utf-8")):
            assert (ROOT / found).exists(), f"{name} names {found}"


def test_a_page_that_loads_from_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://flower.ai">x</a><script src="local.js"></script>')
    assert check_site.loads_from_elsewhere(tmp_path) == []
    (tmp_path / "b.html").write_text('<link rel="stylesheet" href="https://fonts.example/css">')
    assert len(check_site.loads_from_elsewhere(tmp_path)) == 1


def test_examples_are_short() -> None:
    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert len(scripts) == 5
    for script in scripts:
        assert len(script.read_text(encoding="utf-8").splitlines()) < 40, script.name


def test_notebooks_hold_the_outputs_of_one_run_without_errors() -> None:
    notebooks = sorted((ROOT / "examples").glob("*.ipynb"))
    assert len(notebooks) == 3
    for path in notebooks:
        cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1)), path.name
        outputs = [output for cell in cells for output in cell["outputs"]]
        assert outputs
        assert not [output for output in outputs if output["output_type"] == "error"]
