"""The risk that a record is put to a name."""

from __future__ import annotations

from fedanon.report.document import Block, Cell, Column, Paragraph, Section, Table
from fedanon.report.privacy.evidence import Evidence
from fedanon.report.privacy.language import Language
from fedanon.report.privacy.risks import Risk, journalist, prosecutor


def risks_section(evidence: Evidence, say: Language) -> Section:
    """The three attackers of El Emam & Dankar (2008), each with an interval where chance plays a part."""
    known = prosecutor(evidence)
    if known is None:
        return Section(say("risks.title"), (Paragraph(say("risks.nothing")),))
    blocks: list[Block] = [Paragraph(say("risks.about")), _table(known, journalist(evidence), say)]
    blocks.append(Paragraph(say("risks.above", share=say.share(known.above))))
    if evidence.population is None:
        blocks.append(Paragraph(say("risks.no_population")))
    return Section(say("risks.title"), tuple(blocks))


def _table(known: Risk, drawn: Risk | None, say: Language) -> Table:
    columns = (
        Column(say("risks.attacker")),
        Column(say("risks.knows")),
        Column(say("risks.highest"), numeric=True),
        Column(say("risks.average"), numeric=True),
        Column(say("risks.interval"), numeric=True),
    )
    rows = [_row("prosecutor", known, say)]
    rows += [_row("journalist", drawn, say)] if drawn else []
    rows.append(_row("marketer", known, say, highest=False))
    return Table(say("risks.caption"), columns, tuple(rows))


def _row(attacker: str, risk: Risk, say: Language, *, highest: bool = True) -> tuple[Cell, ...]:
    most = risk.highest if highest else None
    return (
        Cell(say(f"attacker.{attacker}")),
        Cell(say(f"attacker.{attacker}_knows")),
        Cell(say.share(most), most),
        Cell(say.share(risk.average), risk.average),
        Cell(say.interval(risk.low, risk.high), risk.high),
    )
