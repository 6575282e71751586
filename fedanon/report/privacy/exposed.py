"""The most exposed records, and whether subgroups are exposed alike: numbers and names of columns, no cell."""

from __future__ import annotations

from collections.abc import Sequence

from fedanon.attacks import ATTACKS
from fedanon.attacks.record_risk import ColumnRisk, RecordRisk
from fedanon.report.document import Block, Paragraph, TableBlock, TableCell, TableColumn
from fedanon.report.privacy.language import Language


def attack_title(name: str, say: Language) -> str:
    """Return the title of an attack; one that the language has no text for keeps its own."""
    key = f"attack.{name}"
    return say(key) if say.knows(key) else ATTACKS[name].title


def exposed_blocks(risks: Sequence[RecordRisk], say: Language) -> list[Block]:
    """Return the tables about single records and about subgroups; nothing if no attack can tell."""
    if not risks:
        return []
    columns = [(risk, column) for risk in risks for column in risk.columns]
    blocks: list[Block] = [Paragraph(say("exposed.about")), _most_exposed(risks, say)]
    if columns:
        blocks += [Paragraph(say("exposed.subgroups_about")), _subgroups(columns, say)]
    return blocks


def _most_exposed(risks: Sequence[RecordRisk], say: Language) -> TableBlock:
    names = ("tried", "chance", "most", "most_chance", "interval", "guess")
    columns = (
        TableColumn(say("attacks.attack")),
        *(TableColumn(say(f"exposed.{name}"), numeric=True) for name in names),
    )
    return TableBlock(say("exposed.table"), columns, tuple(_row(risk, say) for risk in risks))


def _row(risk: RecordRisk, say: Language) -> tuple[TableCell, ...]:
    return (
        TableCell(attack_title(risk.attack, say)),
        TableCell(f"{say.number(risk.n)} {say(f'unit.{risk.unit}')}", risk.n),
        TableCell(say.share(risk.chance), risk.chance),
        TableCell(say.number(risk.most), risk.most),
        TableCell(say.share(risk.most_chance), risk.most_chance),
        TableCell(say.interval(risk.most_low, risk.most_high), risk.most_high),
        TableCell(say.share(risk.most_guess), risk.most_guess),
    )


def _subgroups(columns: Sequence[tuple[RecordRisk, ColumnRisk]], say: Language) -> TableBlock:
    header = (
        TableColumn(say("attacks.attack")),
        TableColumn(say("exposed.column")),
        *(TableColumn(say(f"exposed.{name}"), numeric=True) for name in ("subgroups", "lowest", "highest")),
        TableColumn(say("exposed.verdict")),
    )
    rows = []
    for risk, column in columns:
        lowest, highest = column.subgroups[0].chance, column.subgroups[-1].chance
        rows.append(
            (
                TableCell(attack_title(risk.attack, say)),
                TableCell(f"`{column.column}`"),
                TableCell(say.number(len(column.subgroups)), len(column.subgroups)),
                TableCell(say.share(lowest), lowest),
                TableCell(say.share(highest), highest),
                TableCell(say("exposed.differs" if column.differs else "exposed.alike")),
            )
        )
    return TableBlock(say("exposed.subgroups_table"), header, tuple(rows))
