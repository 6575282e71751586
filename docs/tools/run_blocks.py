"""Run every code and console block of the README and of docs/, and the examples, each in a folder of its own.

    python docs/tools/run_blocks.py [PAGE ...]

A tutorial starts in an empty folder: it has to work with its own words alone. Other pages find the files that
`fedanon data example` writes. Shell blocks run under `bash -eu`; of a console block, what is shown below a command must be
printed by it. Python blocks of a page share their names. A block that cannot run says why in a comment before it.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from blocks import Block, blocks_of, console_steps, missing_line

ROOT = Path(__file__).parents[2]
LIMIT = 240
#: other names under which pages use the example files
COPIES = {
    "patients.csv": ("ward.csv", "jan.csv", "data.csv", "rows.csv"),
    "north.csv": ("a.csv",),
    "south.csv": ("b.csv",),
    "schema.toml": ("patients.toml", "s.toml"),
}


@dataclass
class PageRun:
    """What became of the blocks of a page; CPU seconds are those of commands that ended by themselves."""

    page: Path
    seconds: float = 0.0
    cpu: float = 0.0
    ran: int = 0
    skipped: list[Block] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    """Run the pages; returns the number of failures."""
    pages = [Path(each).resolve() for each in arguments] or all_pages()
    started = time.monotonic()
    # one more than cores, since pages with a deployment mostly wait
    jobs = int(os.environ.get("DOCS_JOBS", (os.cpu_count() or 1) + 1))
    # Ray gives up if its daemons do not start within 30 seconds, so its pages have the machine to themselves
    alone = [page for page in pages if _holds(page, r"--engine ray")]
    with ThreadPoolExecutor(jobs) as pool:
        together = queues_of([page for page in pages if page not in alone])
        runs = [run for queue in pool.map(_run_queue, together) for run in queue]
    runs += _run_queue(alone)
    for run in runs:
        print(
            f"{run.seconds:6.1f} s  {run.cpu:6.1f} s of CPU  {run.ran:3} run  {len(run.skipped):2} not  {run.page.relative_to(ROOT)}"
        )
        for block in run.skipped:
            print(f"            line {block.line} not run: {block.reason}")
        for failure in run.failures:
            print(failure)
    failed = sum(len(run.failures) for run in runs)
    total = sum(run.ran for run in runs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = f"{time.monotonic() - started:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU"
    print(f"{total} blocks run, {failed} failed, in {spent}")
    return min(failed, 1)


def all_pages() -> list[Path]:
    """The README, what is written in docs/, and the examples."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]
    return [*(page for page in pages if blocks_of(page)), *sorted((ROOT / "examples").glob("*.py"))]


def queues_of(pages: list[Path]) -> list[list[Path]]:
    """Pages to run one after another: those that start a server, which share its port, then each other one by itself."""
    serving = [page for page in pages if _holds(page, r"^fedanon server run")]
    return [*([serving] if serving else []), *([page] for page in pages if page not in serving)]


def _holds(page: Path, command: str) -> bool:
    """Whether a block of the page that is run holds a command."""
    return any(not block.reason and re.search(command, block.code, re.MULTILINE) for block in blocks_of(page))


def _run_queue(queue: list[Path]) -> list[PageRun]:
    return [run_page(page) for page in queue]


def run_page(page: Path) -> PageRun:
    """Run the blocks of a page in order; the rest of a page is left out after a failure. A script is one block."""
    run, started = PageRun(page), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="docs-") as name:
        folder, home = Path(name) / "work", Path(name) / "home"
        folder.mkdir()
        home.mkdir()
        if "tutorials" not in page.parts:
            _example_files(folder, page)
        seen: list[str] = []
        for block in [Block(page, 1, "python", page.read_text())] if page.suffix == ".py" else blocks_of(page):
            if block.reason:
                run.skipped.append(block)
                continue
            problem = _run_block(block, folder, home, seen, run)
            run.ran += 1
            if problem:
                run.failures.append(f"---- {block}\n{block.code}\n{problem}\n----")
                break
    run.seconds = time.monotonic() - started
    return run


def _example_files(folder: Path, page: Path) -> None:
    """What `fedanon data example` writes, under the names that pages use, or a page asks for in a comment."""
    from fedanon.datasets.example_files import SCHEMA, write_example_files

    write_example_files(folder)
    (folder / "pseudonyms.toml").write_text(SCHEMA.replace('type = "text"', 'type = "text"\npseudonym = true', 1))
    lines = (folder / "patients.csv").read_text().splitlines(keepends=True)
    later = (folder / "new_patients.csv").read_text().splitlines(keepends=True)
    (folder / "feb.csv").write_text("".join([lines[0], *lines[200:], *later[1:]]))
    for name, copies in COPIES.items():
        for copy in copies:
            shutil.copy(folder / name, folder / copy)
    for asked in re.findall(r"<!-- files: (.+?) -->", page.read_text(encoding="utf-8")):
        for copy, name in (pair.split("=") for pair in asked.split(", ")):
            shutil.copy(folder / name, folder / copy)


def _run_block(block: Block, folder: Path, home: Path, seen: list[str], run: PageRun) -> str:
    """Run or write a block; returns what went wrong, or ''."""
    if block.title:
        path = folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.code, encoding="utf-8")
    if block.language in ("toml", "json"):
        return _parse(block)
    if block.title:
        return ""
    if block.language == "python":
        seen.append(block.code)
        return _call([sys.executable, "-W", "ignore", "-c", "\n".join(seen)], folder, home, run)[1]
    if block.language == "sh":
        return _call(["bash", "-euo", "pipefail", "-c", block.code], folder, home, run)[1]
    for command, shown in console_steps(block.code):
        printed, problem = _call(["bash", "-euo", "pipefail", "-c", command], folder, home, run)
        missing = missing_line(shown, printed)
        if problem or missing is not None:
            return problem or f"$ {command}\ndid not print:\n{missing}\nbut\n{printed}"
    return ""


def _parse(block: Block) -> str:
    try:
        tomllib.loads(block.code) if block.language == "toml" else json.loads(block.code)
    except ValueError as error:
        return f"not {block.language}: {error}"
    return ""


def _call(command: list[str], folder: Path, home: Path, run: PageRun) -> tuple[str, str]:
    """Run a command in a session of its own, which ends with it; returns what it printed, and what went wrong."""
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FEDANON_", "FLWR_"))},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "COLUMNS": "120",
        "OPENBLAS_NUM_THREADS": "1",
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", ""),
    }
    env = {name: value for name, value in env.items() if value}
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code = _wait(process, run)
        _end(process.pid)
        output.seek(0)
        printed = output.read()
    if code == 0:
        return printed, ""
    return printed, f"{printed[-3000:]}\n{'took too long' if code is None else f'exit code {code}'}"


def _wait(process: subprocess.Popen[str], run: PageRun) -> int | None:
    """The exit code of a process, whose CPU seconds are added to those of its page; None if it takes too long."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        if ended:
            run.cpu += used.ru_utime + used.ru_stime
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        time.sleep(0.05)
    return None


def _end(group: int) -> None:
    """End what a block left running."""
    try:
        os.killpg(group, signal.SIGTERM)
        time.sleep(0.2)
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
