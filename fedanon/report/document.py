"""A document: what a report says, independent of how a page or a PDF shows it.

Texts are plain; words in `backticks` are shown as code. Renderers escape everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from fedanon.report.charts import Panel

Tone = Literal["", "good", "bad"]
#: how grave a text that is set apart is: an alarm is red, a caution amber, a finding blue
NoteKind = Literal["finding", "note", "warning", "caution", "alarm"]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """A list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """A text set apart, ``large`` to be read first; how grave it is shows in its title, not by color alone."""

    title: str
    texts: tuple[str, ...]
    kind: NoteKind = "note"
    large: bool = False


@dataclass(frozen=True)
class Facts:
    """Terms with a short text each; ``large`` for the few numbers to be read first."""

    items: tuple[tuple[str, str], ...]
    large: bool = False


@dataclass(frozen=True)
class Code:
    """Text shown verbatim, such as a file or a command."""

    text: str


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: its text, the number to sort by, and whether it is good or bad news."""

    text: str
    value: float | None = None
    tone: Tone = ""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table; ``hint`` is its title in full."""

    title: str
    numeric: bool = False
    hint: str = ""


@dataclass(frozen=True)
class TableBlock:
    """A table; the first column names the row."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[TableCell, ...], ...]


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with the numbers behind them.

    Parameters
    ----------
    name : of its files.
    title : what it shows.
    caption : how to read it.
    panels : drawn in this order; the name of a series means the same in all of them.
    table : the numbers.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    table: TableBlock


@dataclass(frozen=True)
class Details:
    """Blocks shown on request; on paper only if ``printed``."""

    summary: str
    blocks: tuple[Block, ...]
    printed: bool = True


@dataclass(frozen=True)
class Section:
    """A heading with its blocks."""

    title: str
    blocks: tuple[Block, ...]


Block = Paragraph | Bullets | Note | Facts | Code | TableBlock | Figure | Details | Section


@dataclass(frozen=True)
class Labels:
    """The renderer's own texts, in the language of the document."""

    contents: str = "Contents"
    skip: str = "Skip to the text"
    theme: str = "Dark theme"
    numbers: str = "The numbers behind this figure"
    sort: str = "Sort by {column}"
    page: str = "Page {number}"
    left_out: str = "Not printed here: {what}."
    more: str = "More panels"


@dataclass(frozen=True)
class Document:
    """A whole report.

    Parameters
    ----------
    title, kicker, lead : its title, the kind of document, and its first paragraph.
    blocks : the text.
    footer : last line.
    language : of its texts, such as ``en`` or ``pt``.
    """

    title: str
    kicker: str
    lead: str
    blocks: tuple[Block, ...]
    footer: str
    language: str = "en"
    labels: Labels = field(default_factory=Labels)

    def figures(self) -> list[Figure]:
        """Return all figures in order."""
        return [block for block in walk(self.blocks) if isinstance(block, Figure)]


def walk(blocks: tuple[Block, ...]) -> Iterator[Block]:
    """Yield all blocks, including nested ones."""
    for block in blocks:
        yield block
        if isinstance(block, (Section, Details)):
            yield from walk(block.blocks)
