"""What commands print: tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedanon.release.conclusion import Conclusion
    from fedanon.verification import Check

COLORS = {"pass": "green", "fail": "bold red", "open": "yellow"}
LEVELS = {
    "broken": "bold red",
    "not_checked": "bold yellow",
    "kept_but": "bold yellow",
    "nothing_promised": "bold yellow",
    "kept": "bold green",
}


def print_json(value: Any) -> None:
    """One JSON value on standard output; numbers that do not exist become null."""
    sys.stdout.write(json_text(value))


def json_text(value: Any) -> str:
    """A JSON value as lines of text; numbers that do not exist become null."""
    return json.dumps(_jsonable(value), indent=2) + "\n"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for people; numbers to the right."""
    from rich.table import Table

    rows = [list(row) for row in rows]
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        numeric = any(isinstance(row[i], (int, float)) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(show(cell) for cell in row))
    console().print(table)


def print_checks(checks: Iterable[Check]) -> None:
    """A line per check: pass, fail or open in its color, then what was checked and what came out."""
    out = console()
    for check in checks:
        out.print(check.outcome, style=COLORS[check.outcome], end="  ")
        out.print(f"{check.name}: {check.text}", soft_wrap=True)


def print_conclusion(conclusion: Conclusion, code: str = "en") -> None:
    """The headline, then a line per finding, in the words of the report; ``code`` names the language."""
    from fedanon.report.privacy.headline import sentences, title
    from fedanon.report.privacy.language import language

    out, say = console(), language(code)
    out.print(title(conclusion, say), style=LEVELS[conclusion.level])
    for text in sentences(conclusion, say):
        out.print(f"- {text.replace('`', chr(39))}", soft_wrap=True)


def print_markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table to be pasted into a document."""
    lines = [list(columns), ["---"] * len(columns), *([show(cell) for cell in row] for row in rows)]
    sys.stdout.writelines(f"| {' | '.join(line)} |\n" for line in lines)


def print_lines(lines: Iterable[str]) -> None:
    """Lines as they are, however long."""
    sys.stdout.writelines(f"{line}\n" for line in lines)


def console(*, stderr: bool = False) -> Any:
    """A console as wide as the terminal, or wide enough for a table where output goes to a file."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 140
    return Console(stderr=stderr, width=width, highlight=False, markup=False)


def tell_progress(share: float, text: str, **facts: Any) -> None:
    """Add a line of JSON to the file that FEDANON_PROGRESS names, if it names one: for programs that wait.

    ``share`` is that of the work which is done, ``text`` what is being done; ``facts`` are names and numbers.
    """
    file = os.environ.get("FEDANON_PROGRESS")
    if file:
        with Path(file).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(_jsonable({"share": share, "text": text, **facts})) + "\n")


def show(value: Any) -> str:
    """A cell for people: four significant places, thousands separated, a dash where there is nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def search_progress(verb: str = "searching", found: str = "loss") -> Iterator[None]:
    """Show the progress of a search inside the block, if there is one; Ctrl-C ends it with the best found so far."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from fedanon.anonymizers.progress import watching

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=console(stderr=True), transient=True)
    task = bar.add_task(verb, total=1.0)

    def show(share: float, loss: float) -> bool:
        bar.start()  # only now: a method that does not search leaves no trace on the screen
        text = verb if math.isnan(loss) else f"{found} {loss:.4f}"
        bar.update(task, completed=share, description=text)
        tell_progress(share, text)
        return True

    try:
        with watching(show):
            yield
    finally:
        if bar.live.is_started:
            bar.stop()
