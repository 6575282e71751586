"""The columns, the roles they play, and those that look like an identifier."""

from __future__ import annotations

from collections.abc import Sequence

from fedanon.data.safe_harbor import KINDS, Kind, Lookalike
from fedanon.data.schema import Attribute, Categorical, FreeText, Numeric
from fedanon.report.document import Cell, Column, Note, Paragraph, Section, Table, Tone
from fedanon.report.privacy.evidence import Evidence
from fedanon.report.privacy.language import Language

TYPES = {Numeric: "numeric", Categorical: "categorical", FreeText: "text"}


def columns_section(evidence: Evidence, say: Language) -> Section:
    """One line for each column."""
    columns = tuple(Column(say(f"columns.{name}")) for name in ("column", "role", "type", "published"))
    rows = tuple(_row(attribute, say) for attribute in evidence.schema.attributes)
    table = Table(say("columns.caption", n=len(rows)), columns, rows)
    return Section(say("columns.title"), (Paragraph(say("columns.about")), table))


def harbor_section(looks: Sequence[Lookalike], say: Language) -> Section:
    """A line for each of the 18 kinds a column looks like; the others are named."""
    columns = (Column(say("harbor.kind")), Column(say("harbor.columns")))
    found = {look.kind for look in looks}
    rows = tuple(_kind_row(kind, [look for look in looks if look.kind == kind], say) for kind in KINDS if kind in found)
    others = "; ".join(_kind_name(kind, say) for kind in KINDS if kind not in found)
    published = list(dict.fromkeys(look.column for look in looks if look.published))
    note = (
        Note(say("harbor.warning_title"), (say("harbor.warning", columns=say.named(published)),), "warning")
        if published
        else Note(say("harbor.clear_title"), (say("harbor.clear"),))
    )
    table = (Table(say("harbor.caption"), columns, rows),) if rows else ()
    rest = Paragraph(say("harbor.others", kinds=others))
    return Section(say("harbor.title"), (Paragraph(say("harbor.about")), note, *table, rest))


def _row(attribute: Attribute, say: Language) -> tuple[Cell, ...]:
    return (
        Cell(f"`{attribute.name}`"),
        Cell(say(f"role.{attribute.role}")),
        Cell(say(f"type.{TYPES[type(attribute)]}")),
        Cell(say(f"fate.{attribute.role}")),
    )


def _kind_row(kind: Kind, looks: list[Lookalike], say: Language) -> tuple[Cell, ...]:
    found = "; ".join(
        say("harbor.look", column=look.column, sign=say(f"sign.{look.sign}"), fate=say(f"fate.{look.role}"))
        for look in looks
    )
    tone: Tone = "bad" if any(look.published for look in looks) else ""
    return Cell(_kind_name(kind, say)), Cell(found, tone=tone)


def _kind_name(kind: Kind, say: Language) -> str:
    return f"{kind.letter}. {say(f'kind.{kind.letter}')}"
