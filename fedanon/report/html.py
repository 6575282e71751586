"""A document as a self-contained HTML page: no network, no other file, and readable without its script."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from functools import singledispatchmethod
from html import escape
from importlib.resources import files

from fedanon.report.charts import DARK, LIGHT, Panel, describe
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
)
from fedanon.report.drawing import legend_svg, panel_svg

#: panels shown at once; the others are a click away
MAX_PANELS = 12


def render_html(document: Document) -> str:
    """Return the page as text; the same document gives the same text."""
    style, script = page_css(), _part("page.js")
    page = _Page(document)
    body = page.blocks(document.blocks, 2)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # nothing is loaded, and only the page's own script runs
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    labels = document.labels
    return (
        f'<!doctype html>\n<html lang="{escape(document.language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(document.title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#text">{escape(labels.skip)}</a>\n'
        f'<header><div class="bar"><p class="kicker">{escape(document.kicker)}</p>'
        f'<button type="button" id="theme" hidden>{escape(labels.theme)}</button></div>\n'
        f"<h1>{escape(document.title)}</h1>\n{_paragraphs(document.lead, 'lead')}</header>\n"
        f'<div class="frame">\n{page.contents()}<main id="text" tabindex="-1">\n{body}</main>\n</div>\n'
        f"<footer><p>{escape(document.footer)}</p></footer>\n<script>{script}</script>\n</body>\n</html>\n"
    )


def inline(text: str) -> str:
    """Escape text; words in backticks become code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


class _Page:
    """Renders blocks, assigning ids and collecting the table of contents."""

    def __init__(self, document: Document) -> None:
        self._labels = document.labels
        self._ids: Counter[str] = Counter()
        self._headings: list[tuple[int, str, str]] = []

    def blocks(self, blocks: tuple[Block, ...], level: int) -> str:
        return "".join(self.block(block, level) for block in blocks)

    def contents(self) -> str:
        if len(self._headings) < 2:
            return ""
        items = "".join(f'<li class="l{level}"><a href="#{i}">{inline(t)}</a></li>' for level, i, t in self._headings)
        title = escape(self._labels.contents)
        return f'<nav aria-label="{title}"><details open><summary>{title}</summary><ul>{items}</ul></details></nav>\n'

    @singledispatchmethod
    def block(self, block: Block, level: int) -> str:
        raise TypeError(type(block).__name__)

    @block.register
    def _(self, block: Section, level: int) -> str:
        name = self._id(block.title)
        if level <= 3:
            self._headings.append((level, name, block.title))
        tag = f"h{min(level, 6)}"
        heading = f'<{tag} id="{name}">{inline(block.title)}</{tag}>'
        return f'<section aria-labelledby="{name}">\n{heading}\n{self.blocks(block.blocks, level + 1)}</section>\n'

    @block.register
    def _(self, block: Paragraph, level: int) -> str:
        return _paragraphs(block.text)

    @block.register
    def _(self, block: Bullets, level: int) -> str:
        return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in block.items) + "</ul>\n"

    @block.register
    def _(self, block: Note, level: int) -> str:
        name = self._id(block.title)
        title = f'<p class="title" id="{name}">{inline(block.title)}</p>'
        one = len(block.texts) == 1
        text = (
            _paragraphs(block.texts[0])
            if one
            else "<ul>" + "".join(f"<li>{inline(t)}</li>" for t in block.texts) + "</ul>"
        )
        look = f"note {block.kind}{' large' if block.large else ''}"
        return f'<div class="{look}" role="group" aria-labelledby="{name}">{title}{text}</div>\n'

    @block.register
    def _(self, block: Facts, level: int) -> str:
        pairs = "".join(f"<div><dt>{inline(term)}</dt><dd>{inline(text)}</dd></div>" for term, text in block.items)
        return f'<dl class="{"tiles" if block.large else "facts"}">{pairs}</dl>\n'

    @block.register
    def _(self, block: Code, level: int) -> str:
        return f'<pre tabindex="0"><code>{escape(block.text)}</code></pre>\n'

    @block.register
    def _(self, block: Details, level: int) -> str:
        return _details(block.summary, self.blocks(block.blocks, level))

    @block.register
    def _(self, block: TableBlock, level: int) -> str:
        name = self._id(block.caption)
        head = "".join(
            f'<th scope="col"{_class("n" if c.numeric else "")}{_title(c.hint)}>{inline(c.title)}</th>'
            for c in block.columns
        )
        rows = "".join(f"<tr>{self._row(block, row)}</tr>\n" for row in block.rows)
        return (
            f'<div class="wide" role="region" aria-labelledby="{name}" tabindex="0">'
            f'<table data-sort="{escape(self._labels.sort)}"><caption id="{name}">{inline(block.caption)}</caption>\n'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
        )

    def _row(self, table: TableBlock, row: tuple[TableCell, ...]) -> str:
        parts = []
        for i, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
            value = "" if cell.value is None else f' data-v="{cell.value:.10g}"'
            look = _class(" ".join(filter(None, ["n" if column.numeric else "", cell.tone])))
            tag, scope = ("th", ' scope="row"') if i == 0 else ("td", "")
            parts.append(f"<{tag}{scope}{look}{value}>{inline(cell.text)}</{tag}>")
        return "".join(parts)

    @block.register
    def _(self, block: Figure, level: int) -> str:
        name = self._id(block.name)
        panels = [self._panel(panel, f"{name}-{i}") for i, panel in enumerate(block.panels)]
        shown, more = _panels(panels[:MAX_PANELS]), _panels(panels[MAX_PANELS:])
        rest = _details(f"{self._labels.more} ({len(panels) - MAX_PANELS})", more) if more else ""
        numbers = _details(self._labels.numbers, self.block(block.table, level))
        return (
            f'<figure aria-labelledby="{name}"><figcaption><p class="title" id="{name}">{inline(block.title)}</p>'
            f"<p>{inline(block.caption)}</p></figcaption>\n{self._legend(block, name)}{shown}{rest}{numbers}</figure>\n"
        )

    def _panel(self, panel: Panel, name: str) -> str:
        title = f'<p class="panel-title" aria-hidden="true">{inline(panel.title)}</p>' if panel.title else ""
        words = escape(describe(panel))
        look = "panel small" if panel.small else "panel"
        return f'<div class="{look}" role="img" aria-label="{words}">{title}{panel_svg(panel, name)}</div>\n'

    def _legend(self, figure: Figure, name: str) -> str:
        styles = {one.label: one.style for panel in figure.panels for one in panel.series}
        if len(styles) < 2:
            return ""
        items = [
            f"<li>{legend_svg(look, f'{name}-l{i}')}{escape(label)}</li>"
            for i, (label, look) in enumerate(styles.items())
        ]
        return f'<ul class="legend">{"".join(items)}</ul>\n'

    def _id(self, text: str) -> str:
        name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50] or "part"
        self._ids[name] += 1
        # two dashes never come from a text
        return name if self._ids[name] == 1 else f"{name}--{self._ids[name]}"


def _panels(panels: list[str]) -> str:
    return f'<div class="panels">{"".join(panels)}</div>\n' if panels else ""


def _details(summary: str, content: str) -> str:
    return f"<details><summary>{inline(summary)}</summary>\n{content}</details>\n"


def _paragraphs(text: str, look: str = "") -> str:
    parts = [" ".join(part.split()) for part in text.split("\n\n")]
    return "".join(f"<p{_class(look)}>{inline(part)}</p>\n" for part in parts if part)


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _title(hint: str) -> str:
    return f' title="{escape(hint)}"' if hint else ""


def _part(name: str) -> str:
    return files("fedanon.report").joinpath(name).read_text(encoding="utf-8")


def page_css() -> str:
    """Return the style of a page, with the colors of the series for light and dark screens."""
    light, dark = (" ".join(f"--s{i}: {color};" for i, color in enumerate(colors)) for colors in (LIGHT, DARK))
    return _part("page.css").replace("/* LIGHT SERIES */", light).replace("/* DARK SERIES */", dark)
