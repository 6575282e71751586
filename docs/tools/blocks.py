"""The code blocks of a Markdown page: what each holds, and whether and why it is not run.

A fence with a title is a file that a reader writes: ```` ```toml title="gateway.toml" ````. A block that cannot run has the
reason in a comment in front of it: ``<!-- not run: it asks for an MQTT broker -->``.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

#: languages of blocks that are run, written, or at least parsed; others are text
LANGUAGES = ("sh", "console", "python", "toml", "json")
_BLOCK = re.compile(
    r"(?P<before>(?:^[^\n]*\n)?)^(?P<indent> *)```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Parameters
    ----------
    page : the file it stands in.
    line : the line of its fence.
    language : what the fence says.
    code : its text.
    title : the file it is to be written to; empty if it is to be run.
    reason : why it is not run; empty if it is.
    """

    page: Path
    line: int
    language: str
    code: str
    title: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page that a runner knows, in order."""
    text, found = page.read_text(encoding="utf-8"), []
    for match in _BLOCK.finditer(text):
        if match["language"] not in LANGUAGES:
            continue
        title = re.search(r'title="([^"]+)"', match["options"])
        reason = re.search(r"<!-- not run: (.+?) -->", match["before"])
        found.append(
            Block(
                page,
                text.count("\n", 0, match.start("indent")) + 1,
                match["language"],
                textwrap.dedent(match["code"]),
                title[1] if title else "",
                reason[1] if reason else "",
            )
        )
    return found


def console_steps(code: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that are shown below it."""
    steps: list[tuple[str, list[str]]] = []
    for line in code.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif steps and steps[-1][0].endswith("\\"):
            steps[-1] = (f"{steps[-1][0]}\n{line}", [])
        elif steps:
            steps[-1][1].append(line)
    return steps


def missing_line(shown: list[str], printed: str) -> str | None:
    """The first shown line that was not printed, in this order; ``...`` stands for anything, spaces do not matter."""
    lines, at = [" ".join(line.split()) for line in printed.splitlines()], 0
    for line in shown:
        wanted = " ".join(line.split())
        if wanted in ("", "..."):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in wanted.split("...")))
        places = [i for i in range(at, len(lines)) if pattern.fullmatch(lines[i])]
        if not places:
            return line
        at = places[0] + 1
    return None
