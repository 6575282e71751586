"""The risk that a record is re-identified, for three attackers."""

from __future__ import annotations

import math
from typing import NamedTuple

from fedanon.attacks.base import Z
from fedanon.metrics.risk import record_risks, summarize_risks
from fedanon.report.document import Block, Paragraph, Section, TableBlock, TableCell, TableColumn
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.language import Language
from fedanon.types import FloatArray


def risks_section(evidence: ReleaseEvidence, say: Language) -> Section:
    """Return the risk from the three attackers of El Emam & Dankar (2008), with intervals where chance matters."""
    known = prosecutor(evidence)
    if known is None:
        return Section(say("risks.title"), (Paragraph(say("risks.nothing")),))
    blocks: list[Block] = [Paragraph(say("risks.about")), _table(known, journalist(evidence), say)]
    blocks.append(Paragraph(say("risks.above", share=say.share(known.above))))
    if evidence.population is None:
        blocks.append(Paragraph(say("risks.no_population")))
    return Section(say("risks.title"), tuple(blocks))


def _table(known: Risk, drawn: Risk | None, say: Language) -> TableBlock:
    columns = (
        TableColumn(say("risks.attacker")),
        TableColumn(say("risks.knows")),
        TableColumn(say("risks.highest"), numeric=True),
        TableColumn(say("risks.average"), numeric=True),
        TableColumn(say("risks.interval"), numeric=True),
    )
    rows = [_row("prosecutor", known, say)]
    rows += [_row("journalist", drawn, say)] if drawn else []
    rows.append(_row("marketer", known, say, highest=False))
    return TableBlock(say("risks.caption"), columns, tuple(rows))


def _row(attacker: str, risk: Risk, say: Language, *, highest: bool = True) -> tuple[TableCell, ...]:
    most = risk.highest if highest else None
    return (
        TableCell(say(f"attacker.{attacker}")),
        TableCell(say(f"attacker.{attacker}_knows")),
        TableCell(say.share(most), most),
        TableCell(say.share(risk.average), risk.average),
        TableCell(say.interval(risk.low, risk.high), risk.high),
    )


# ---- the attackers -------------------------------------------------------------------------------


class Risk(NamedTuple):
    """The risk from one attacker.

    Parameters
    ----------
    highest : of any published record.
    average : over the published records: the share that an attacker who names all of them gets right.
    low, high : 95 % interval of that share, since the attacker picks at random within a class.
    above : share of the records with a risk above one in five.
    """

    highest: float
    average: float
    low: float
    high: float
    above: float


def prosecutor(evidence: ReleaseEvidence) -> Risk | None:
    """Return the risk from an attacker who knows that the person is in the release; None if nothing is published."""
    return _risk(record_risks(evidence.released)) if evidence.people.size else None


def journalist(evidence: ReleaseEvidence) -> Risk | None:
    """Return the risk from an attacker who knows that the person is in the population; None without one."""
    from fedanon.kernels.scan import points_in_cells

    population = evidence.population
    if population is None or not evidence.people.size:
        return None
    matching = points_in_cells(population.points, *population.bounds(evidence.released.cells))
    return _risk(record_risks(evidence.released, matching))


def _risk(risks: FloatArray) -> Risk:
    r"""Add the interval to the summary of the chance :math:`p` of every record.

    The hits of an attacker who names every record are a sum of independent trials, so their share has the variance
    :math:`\sum_r p_r (1 - p_r) / n^2`; the interval is that of the normal distribution.
    """
    highest, average, above = summarize_risks(risks)
    reach = Z * math.sqrt(float((risks * (1 - risks)).sum())) / len(risks)
    return Risk(highest, average, max(0.0, average - reach), min(1.0, average + reach), above)
