"""The runner of the documentation's blocks notices what it is there for, and every page keeps its form."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import check_site
import click
import pytest
from blocks import LANGUAGES, Block, blocks_of, console_steps, missing_line
from run_blocks import all_pages, queues_of, run_page
from typer.main import get_command

from fedanon.cli.app import app

ROOT = Path(__file__).parents[2]
FENCE = "```"
COMMAND = get_command(app)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


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


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_fences_of_a_page_are_known(path: Path) -> None:
    """A block in a language that nothing runs would be shown unchecked."""
    fences = re.findall(r"^ *```(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences) <= {*LANGUAGES, "text"}
    assert len(blocks_of(path)) == sum(fence != "text" for fence in fences)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_every_fence_says_what_it_holds(path: Path) -> None:
    fences = re.findall(r"^ *```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert "" not in fences[::2], "a block without a language would be shown unchecked"


def commands(block: Block) -> list[list[str]]:
    """The words of every fedanon command of a block."""
    text = block.code if block.language == "sh" else "\n".join(command for command, _ in console_steps(block.code))
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("fedanon ")]


@pytest.mark.parametrize(
    ("block", "words"),
    [(b, words) for page in PAGES for b in blocks_of(page) if b.language in ("sh", "console") for words in commands(b)],
    ids=str,
)
def test_commands_exist_with_their_options(block: Block, words: list[str]) -> None:
    """Also of blocks that are not run: every word is read by the command it is given to, and nothing is executed."""
    end = next((i for i, word in enumerate(words) if word in ("|", ">", "&&", ";", "&", "2>")), len(words))
    read(COMMAND, words[:end])


@pytest.mark.parametrize("line", ["anonymize x.csv --bogus 3", "bogus", "server register folder", "sdc bogus"])
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        read(COMMAND, line.split())


def read(command: click.Command, words: list[str]) -> None:
    """Read the words as a shell would give them; files need not be there."""
    try:
        context = command.make_context("fedanon", list(words))
    except click.exceptions.Exit:
        return
    except click.BadParameter as error:
        if isinstance(error, click.MissingParameter):
            raise
        return
    if isinstance(command, click.Group) and context._protected_args:
        name, child, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert child is not None, name
        read(child, rest)


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


def test_pages_that_start_a_server_run_one_after_another() -> None:
    serving, *others = queues_of(all_pages())
    assert {path.name for path in serving} >= {"README.md", "first_deployment.md"}
    assert all(len(queue) == 1 for queue in others)
    assert sorted([*serving, *(path for queue in others for path in queue)]) == sorted(all_pages())
