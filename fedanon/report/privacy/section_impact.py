"""Fields of a data protection impact assessment: filled where the evidence says, blank where only people can.

GDPR art. 35(7) asks for (a) a description of the processing and its purposes, (b) necessity and proportionality, (c)
the risks and (d) the measures; LGPD art. 38, sole paragraph, for the kinds of data, the methods and the controller's
analysis of measures, safeguards and mitigation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedanon.report.document import Cell, Column, Paragraph, Section, Table
from fedanon.report.privacy.language import Language

#: fields in order; those that are not filled are left for the hand
FIELDS = (
    "controller",
    "officer",
    "nature",
    "purpose",
    "basis",
    "categories",
    "special",
    "subjects",
    "recipients",
    "necessity",
    "risks",
    "measures",
    "residual",
    "consultation",
    "review",
)
SIGNERS = ("author", "officer", "controller")


def impact_section(known: Mapping[str, str], say: Language) -> Section:
    """The fields and the place for signatures; ``known`` are those the evidence fills."""
    columns = tuple(Column(say(f"impact.{name}")) for name in ("field", "content"))
    rows = tuple(_row(name, known.get(name), say) for name in FIELDS)
    table = Table(say("impact.caption"), columns, rows)
    return Section(say("impact.title"), (Paragraph(say("impact.about")), table, _signatures(SIGNERS, say)))


def _row(name: str, content: str | None, say: Language) -> tuple[Cell, ...]:
    return Cell(say(f"field.{name}")), Cell(say("impact.by_hand") if content is None else content)


def _signatures(signers: Sequence[str], say: Language) -> Table:
    columns = tuple(Column(say(f"signature.{name}")) for name in ("who", "name", "date", "signature"))
    line, short = "_" * 22, "_" * 12
    rows = tuple((Cell(say(f"signer.{who}")), Cell(line), Cell(short), Cell(line)) for who in signers)
    return Table(say("signature.caption"), columns, rows)
