"""What was required of the release, what it reached, and whether every promise holds on the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import Rows
from fedanon.privacy.models.l_diversity import entropies
from fedanon.privacy.models.t_closeness import TCloseness
from fedanon.privacy.sensitive import Counter, Counts
from fedanon.release.verdicts import Mechanism, OverReleases, Verdict
from fedanon.report.document import Block, Note, Paragraph, Section, TableBlock, TableCell, TableColumn, Tone
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.headline import promise
from fedanon.report.privacy.language import Language

TONES: dict[bool | None, Tone] = {True: "good", False: "bad", None: ""}


def claims_section(evidence: ReleaseEvidence, facts: Sequence[SensitiveFacts], say: Language) -> Section:
    """Show the promises one by one, then what the worst class reveals of every sensitive column."""
    blocks: list[Block] = [Paragraph(say("claims.about", unit=evidence.unit_name(say))), _counted(evidence, say)]
    blocks += [_file(evidence, say)]
    if evidence.verdicts:
        blocks.append(verdict_table([_row(verdict, evidence, facts, say) for verdict in evidence.verdicts], say))
    else:
        blocks.append(Note(say("claims.none_title"), (say("claims.none"),), "warning"))
    blocks += _sensitive(evidence, facts, say)
    return Section(say("claims.title"), tuple(blocks))


def verdict_table(rows: list[tuple[TableCell, ...]], say: Language) -> TableBlock:
    """Return a table of promises with their verdicts."""
    columns = (
        TableColumn(say("claims.promise")),
        TableColumn(say("claims.asked"), numeric=True),
        TableColumn(say("claims.reached"), numeric=True),
        TableColumn(say("claims.verdict")),
    )
    return TableBlock(say("claims.caption"), columns, tuple(rows))


def verdict_cell(holds: bool | None, text: str, say: Language) -> TableCell:
    """Say whether a promise holds, fails or is open, by a sign, a word and a color."""
    key = {True: "claims.holds", False: "claims.fails", None: "claims.open"}[holds]
    return TableCell(say(key, more=text), tone=TONES[holds])


def _counted(evidence: ReleaseEvidence, say: Language) -> Paragraph:
    if evidence.persons is not None:
        return Paragraph(say("claims.people", column=evidence.schema.person_id))
    if evidence.schema.one_row_per_person:
        return Paragraph(say("claims.one_row"))
    return Paragraph(say("claims.rows_blind" if evidence.schema.person_id else "claims.rows"))


def _file(evidence: ReleaseEvidence, say: Language) -> Block:
    if evidence.is_as_written is None:
        return Note(say("claims.no_manifest_title"), (say("claims.no_manifest"),), "warning")
    if evidence.is_as_written:
        return Paragraph(say("claims.as_written"))
    return Note(say("claims.changed_title"), (say("claims.changed"),), "warning")


def _row(
    verdict: Verdict, evidence: ReleaseEvidence, facts: Sequence[SensitiveFacts], say: Language
) -> tuple[TableCell, ...]:
    asked, reached = _numbers(verdict, evidence, facts)
    if verdict.holds is None:
        more = say(f"doubt.{verdict.doubt}")
    else:
        key = "claims.all_classes" if verdict.holds else "claims.broken"
        more = say(key, broken=verdict.broken, classes=verdict.classes)
    cells = [TableCell(say.number(value), value) for value in (asked, reached)]
    return TableCell(promise(verdict.model, evidence.schema.unit, say)), *cells, verdict_cell(verdict.holds, more, say)


def _numbers(
    verdict: Verdict, evidence: ReleaseEvidence, facts: Sequence[SensitiveFacts]
) -> tuple[float | None, float | None]:
    """Return the number that was required and the one that was reached, if any."""
    model = verdict.model
    if isinstance(model, Mechanism):
        return model.parameters.get("epsilon"), None
    if isinstance(model, OverReleases):
        return float(min(model.least_values.values())), None
    if model.min_people:
        return float(model.min_people), float(evidence.released.smallest_class)
    values = asdict(model)
    names = {component: name for name, component in PRIVACY_MODELS.items()}
    name = names.get(type(model), "")
    asked = next(
        (values[field] for field in ("l", "t", "alpha", "beta", "delta", "k", "high") if field in values), None
    )
    of_column = next((one for one in facts if one.column == values.get("column")), None)
    # a distance other than the usual one was required
    if of_column is None or values.get("distance", "auto") != "auto":
        return asked, None
    return asked, getattr(of_column, name, None)


def _sensitive(evidence: ReleaseEvidence, facts: Sequence[SensitiveFacts], say: Language) -> list[Block]:
    if not facts:
        return [Note(say("sensitive.none_title"), (say("sensitive.none"),), "warning")]
    names = ("l", "entropy_l", "alpha", "t", "classes")
    columns = [
        TableColumn(say("sensitive.column")),
        *(TableColumn(say(f"sensitive.{name}"), numeric=True) for name in names),
        TableColumn(say("sensitive.exposed", unit=evidence.unit_name(say, "unit_title")), numeric=True),
    ]
    return [TableBlock(say("sensitive.caption"), tuple(columns), tuple(_sensitive_row(one, say) for one in facts))]


def _sensitive_row(one: SensitiveFacts, say: Language) -> tuple[TableCell, ...]:
    tone: Tone = "bad" if one.homogeneous else "good"
    return (
        TableCell(f"`{one.column}`"),
        TableCell(say.number(one.l), one.l, tone),
        TableCell(say.number(one.entropy_l), one.entropy_l),
        TableCell(say.share(one.alpha), one.alpha),
        TableCell(say.number(one.t), one.t),
        TableCell(say.number(one.homogeneous), one.homogeneous, tone),
        TableCell(say.share(one.exposed), one.exposed, tone),
    )


# ---- what classes reveal of a sensitive column ---------------------------------------------------


@dataclass(frozen=True)
class SensitiveFacts:
    """The worst class of a release, for one sensitive column.

    Parameters
    ----------
    column : its name.
    l : smallest number of different values.
    entropy_l : smallest exponential of the entropy.
    alpha : largest share of the people (or records) of a class that have the same value.
    t : largest distance to the distribution of the whole release; NaN if the column has no order to measure by.
    homogeneous : number of classes in which all have the same value.
    exposed : share of the people (or records) that are in these classes.
    """

    column: str
    l: int  # noqa: E741  the model's own name
    entropy_l: float
    alpha: float
    t: float
    homogeneous: int
    exposed: float


@lru_cache(maxsize=1)  # the page and its JSON ask the same
def sensitive_facts(evidence: ReleaseEvidence) -> tuple[SensitiveFacts, ...]:
    """Return the facts of every sensitive column, in the order of the schema; none if nothing is published."""
    if evidence.released.classes.count == 0:
        return ()
    return tuple(_facts(evidence, name) for name in evidence.schema.sensitive)


def _facts(evidence: ReleaseEvidence, name: str) -> SensitiveFacts:
    counter = Counter(Rows.from_view(evidence.released), name, ~evidence.released.suppressed)
    parts = [_worst(counts, name) for counts in counter.chunks(evidence.released.classes)]
    distinct, spread, share, distance = (np.array(column) for column in zip(*parts, strict=True))
    certain = evidence.exposure.certain[name]
    return SensitiveFacts(
        column=name,
        l=int(distinct.min()),
        entropy_l=float(np.exp(spread.min())),
        alpha=float(share.max()),
        t=float(distance.max()),
        homogeneous=certain.classes.count,
        exposed=certain.exposed.share,
    )


def _worst(counts: Counts, name: str) -> tuple[float, ...]:
    different = (counts.by_class > 0).sum(axis=1)
    return (
        different.min(),
        entropies(counts.distributions).min(),
        counts.shares.max(),
        TCloseness(column=name, t=1.0).distances(counts).max(),
    )
