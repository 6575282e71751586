"""A document as PDF, with ReportLab; the same document gives the same bytes. Imported only to make a PDF."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from functools import singledispatchmethod
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from fedanon.errors import ConfigError
from fedanon.report.document import (
    Block,
    Bullets,
    Code,
    Details,
    Document,
    Facts,
    Figure,
    Note,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
    TableColumn,
)
from fedanon.report.drawing import ACROSS, SMALL_ACROSS, figure_file

try:
    import matplotlib as mpl
    from reportlab import platypus
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfbase.pdfmetrics import registerFont, registerFontFamily, stringWidth
    from reportlab.pdfbase.ttfonts import TTFont
except ModuleNotFoundError:
    raise ConfigError("A PDF needs ReportLab and matplotlib: pip install 'fedanon[report]'.") from None

INK, SOFT, LINE, ACCENT, BAD, GOOD = "#1c2530", "#566270", "#d9dfe6", "#0b5f8f", "#a63a00", "#00694b"
BACK = {"finding": "#e6f1f8", "note": "#f3f5f8", "warning": "#fdf0e6", "caution": "#fff4d1", "alarm": "#fde8ea"}
EDGE = {"finding": ACCENT, "note": SOFT, "warning": BAD, "caution": "#805300", "alarm": "#b00020"}
#: panels of a figure on one page
PANELS = 9
MARGIN = 50.0
#: free fonts with the characters a report needs, as matplotlib ships them
FONTS = {"Sans": "DejaVuSans.ttf", "Sans-Bold": "DejaVuSans-Bold.ttf", "Mono": "DejaVuSansMono.ttf"}


def render_pdf(document: Document) -> bytes:
    """Return the PDF as bytes."""
    for name, file in FONTS.items():
        registerFont(TTFont(name, str(Path(mpl.get_data_path()) / "fonts" / "ttf" / file)))
    registerFontFamily("Sans", normal="Sans", bold="Sans-Bold", italic="Sans", boldItalic="Sans-Bold")
    buffer = io.BytesIO()
    margins = {f"{side}Margin": MARGIN for side in ("left", "right", "top", "bottom")}
    # invariant: without a date and a random name
    facts = {"title": document.title, "author": "fedanon", "lang": document.language, "invariant": 1}
    template = _Template(buffer, pagesize=A4, **margins, **facts)
    writer = _Writer(document, template.width, template.height)
    template.build(writer.story(), onFirstPage=writer.foot, onLaterPages=writer.foot)
    return buffer.getvalue()


def inline(text: str) -> str:
    """Escape text; words in backticks become code."""
    return re.sub(r"`([^`]+)`", r'<font name="Mono">\1</font>', escape(text))


class _Template(platypus.SimpleDocTemplate):  # type: ignore[misc]
    """Adds headings to the outline of the PDF."""

    def afterFlowable(self, flowable: Any) -> None:  # noqa: N802  ReportLab's name
        level, text = getattr(flowable, "heading", (None, ""))
        if level is not None:
            name = f"part-{self.canv.getPageNumber()}-{text}"
            self.canv.bookmarkPage(name)
            self.canv.addOutlineEntry(text, name, level, closed=level > 0)


class _Writer:
    """Turns blocks into ReportLab flowables."""

    def __init__(self, document: Document, width: float, height: float) -> None:
        self._document = document
        self._width, self._height = width - 12, height - 12  # a frame pads its sides by 6

    def story(self) -> list[Any]:
        """Return everything in order."""
        document = self._document
        story = [_text(document.kicker.upper(), size=7.5, color=ACCENT, font="Sans-Bold")]
        story += [_text(document.title, size=19, font="Sans-Bold", after=8, heading=(0, document.title))]
        story += [_text(part, size=10.5, color=SOFT, after=5) for part in _parts(document.lead)]
        return story + self._blocks(document.blocks, 1)

    def foot(self, canvas: Any, template: Any) -> None:
        """Draw the last line of a page: who made it, and its number."""
        canvas.saveState()
        canvas.setFont("Sans", 7)
        canvas.setFillColor(SOFT)
        canvas.drawString(MARGIN + 6, MARGIN / 2, self._document.footer)
        number = self._document.labels.page.format(number=template.page)
        canvas.drawRightString(MARGIN + 6 + self._width, MARGIN / 2, number)
        canvas.restoreState()

    def _blocks(self, blocks: tuple[Block, ...], level: int) -> list[Any]:
        return [flowable for block in blocks for flowable in self.block(block, level)]

    @singledispatchmethod
    def block(self, block: Block, level: int) -> list[Any]:
        """Flowables of a block; ``level`` counts the sections around it."""
        raise TypeError(type(block).__name__)

    @block.register
    def _(self, block: Section, level: int) -> list[Any]:
        size = {1: 14.0, 2: 11.5}.get(level, 10.0)
        mark = (level, block.title)
        title = _text(block.title, size=size, font="Sans-Bold", before=size, after=5, heading=mark, keepWithNext=1)
        return [title, *self._blocks(block.blocks, level + 1)]

    @block.register
    def _(self, block: Paragraph, level: int) -> list[Any]:
        return [_text(part, after=5) for part in _parts(block.text)]

    @block.register
    def _(self, block: Bullets, level: int) -> list[Any]:
        return [_text(f"• {item}", after=3, leftIndent=10, firstLineIndent=-8) for item in block.items]

    @block.register
    def _(self, block: Note, level: int) -> list[Any]:
        mark = "• " if len(block.texts) > 1 else ""
        texts = [_text(f"{mark}{' '.join(text.split())}") for text in block.texts]
        title, size = (block.title, 12.0) if block.large else (block.title.upper(), 7.5)
        rows = [[_text(title, size=size, font="Sans-Bold", color=EDGE[block.kind])], *([t] for t in texts)]
        looks = [
            ("BACKGROUND", (0, 0), (-1, -1), BACK[block.kind]),
            ("LINEBEFORE", (0, 0), (0, -1), 3, EDGE[block.kind]),
        ]
        return [_grid(rows, [self._width], [*looks, ("LEFTPADDING", (0, 0), (-1, -1), 12)])]

    @block.register
    def _(self, block: Facts, level: int) -> list[Any]:
        rows = [
            [_text(term, color=SOFT), _text(text, font="Sans-Bold" if block.large else "Sans")]
            for term, text in block.items
        ]
        return [_grid(rows, [self._width * 0.27, self._width * 0.73], [_ruled(0)])]

    @block.register
    def _(self, block: Code, level: int) -> list[Any]:
        lines = [part for line in block.text.splitlines() for part in (re.findall(r".{1,95}", line) or [""])]
        style = ParagraphStyle("code", fontName="Mono", fontSize=7, leading=9.5, backColor=BACK["note"], spaceAfter=6)
        return [platypus.Preformatted("\n".join(lines), style)]

    @block.register
    def _(self, block: Details, level: int) -> list[Any]:
        if not block.printed:
            return [_text(self._document.labels.left_out.format(what=block.summary), size=7.5, color=SOFT)]
        # a table has a caption of its own
        title = (
            []
            if isinstance(block.blocks[0], TableBlock)
            else [_text(block.summary, size=8, font="Sans-Bold", keepWithNext=1)]
        )
        return [*title, *self._blocks(block.blocks, level)]

    @block.register
    def _(self, block: TableBlock, level: int) -> list[Any]:
        size = next((s for s in (7.0, 6.2, 5.6) if sum(self._least(block, s)) <= self._width), 5.0)
        head = [_text(c.title, size=size, font="Sans-Bold", color=SOFT, alignment=2 * c.numeric) for c in block.columns]
        rows = [[self._cell(cell, i, block, size) for i, cell in enumerate(row)] for row in block.rows]
        caption = _text(block.caption, size=8.5, font="Sans-Bold", before=8, after=4, keepWithNext=1)
        looks = [_ruled(1), ("LINEBELOW", (0, 0), (-1, 0), 1, SOFT)]
        return [caption, _grid([head, *rows], self._widths(block, size), looks, head=1)]

    def _cell(self, cell: TableCell, i: int, table: TableBlock, size: float) -> Any:
        color = {"good": GOOD, "bad": BAD, "": INK}[cell.tone]
        font = "Sans-Bold" if i == 0 or cell.tone == "bad" else "Sans"
        column = table.columns[i]
        return _text(_cell_text(cell, column), size=size, font=font, color=color, after=0, alignment=2 * column.numeric)

    def _least(self, table: TableBlock, size: float) -> list[float]:
        """Return the widths at which no word is broken."""
        words = [[word for text in column for word in text.split(" ")] for column in _columns(table)]
        return [max(_width(word, size) for word in column) for column in words]

    def _widths(self, table: TableBlock, size: float) -> list[float]:
        """Return widths that give the spare room to the columns with the longest texts."""
        least = self._least(table, size)
        wishes = [max(_width(t, size) for t in texts) - w for texts, w in zip(_columns(table), least, strict=True)]
        spread = min(1.0, max(0.0, self._width - sum(least)) / max(sum(wishes), 1))
        widths = [w + spread * wish for w, wish in zip(least, wishes, strict=True)]
        return [width * self._width / sum(widths) for width in widths]

    @block.register
    def _(self, block: Figure, level: int) -> list[Any]:
        title = _text(block.title, size=10, font="Sans-Bold", before=8, after=1, keepWithNext=1)
        caption = _text(block.caption, size=8, color=SOFT, after=4, keepWithNext=1)
        chunks = [block.panels[i : i + PANELS] for i in range(0, len(block.panels), PANELS)]
        return [title, caption, *(self._image(replace(block, panels=panels)) for panels in chunks)]

    def _image(self, figure: Figure) -> Any:
        data = io.BytesIO(figure_file(figure, "png", dpi=220))
        wide, high = ImageReader(data).getSize()
        # a single panel is not enlarged to the width of the page
        small = figure.panels[0].small
        most, power = (SMALL_ACROSS, 1.0) if small else (ACROSS, 0.6)
        width = self._width * (min(len(figure.panels), most) / most) ** power
        scale = min(width / wide, (self._height - 60) / high)
        return platypus.Image(data, wide * scale, high * scale, hAlign="LEFT")


def _text(
    text: str,
    *,
    size: float = 9,
    font: str = "Sans",
    color: str = INK,
    before: float = 0,
    after: float = 2,
    heading: tuple[int, str] | None = None,
    **more: Any,
) -> Any:
    spaces = {"spaceBefore": before, "spaceAfter": after, "splitLongWords": 1}
    style = ParagraphStyle("text", fontName=font, fontSize=size, leading=size * 1.38, textColor=color, **spaces, **more)
    flowing = platypus.Paragraph(inline(text), style)
    if heading is not None:
        flowing.heading = heading
    return flowing


def _grid(rows: list[list[Any]], widths: list[float], looks: list[Any], *, head: int = 0) -> Any:
    padding = [(f"{side}PADDING", (0, 0), (-1, -1), 2.2) for side in ("TOP", "BOTTOM")]
    sides = [(f"{side}PADDING", (0, 0), (-1, -1), 3) for side in ("LEFT", "RIGHT")]
    style = platypus.TableStyle([("VALIGN", (0, 0), (-1, -1), "TOP"), *padding, *sides, *looks])
    return platypus.LongTable(
        rows, colWidths=widths, repeatRows=head, style=style, spaceBefore=4, spaceAfter=8, hAlign="LEFT"
    )


def _columns(table: TableBlock) -> list[list[str]]:
    return [[c.title, *(_cell_text(row[i], c) for row in table.rows)] for i, c in enumerate(table.columns)]


def _cell_text(cell: TableCell, column: TableColumn) -> str:
    """Return the text of a cell; a number is not broken across lines."""
    return cell.text.replace(" ", "\xa0") if column.numeric else cell.text


def _width(text: str, size: float) -> float:
    return float(stringWidth(text.replace("`", ""), "Sans-Bold", size)) + 8  # with the space beside it


def _ruled(first: int) -> tuple[Any, ...]:
    return ("LINEBELOW", (0, first), (-1, -1), 0.4, LINE)


def _parts(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
