"""What is not protected, in plain language and only as far as it applies; and the fields of an impact assessment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fedanon.data.columns import changed_columns
from fedanon.data.lint import Lookalike
from fedanon.data.schema import Role
from fedanon.release.verdicts import OverReleases
from fedanon.report.document import Bullets, Paragraph, Section, TableBlock, TableCell, TableColumn
from fedanon.report.privacy.claims import SensitiveFacts
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.impact_fields import FIELDS, SIGNERS
from fedanon.report.privacy.language import Language
from fedanon.report.privacy.losses import ColumnLoss, is_truthful

#: a guess that is right this often reveals nearly as much as a value that all share
NEARLY_SURE = 0.9


def limits_section(items: Sequence[str], say: Language) -> Section:
    """Return the section with these items."""
    return Section(say("limits.title"), (Paragraph(say("limits.about")), Bullets(tuple(items))))


def limits_of_release(
    evidence: ReleaseEvidence,
    facts: Sequence[SensitiveFacts],
    looks: Sequence[Lookalike],
    losses: Sequence[ColumnLoss],
    say: Language,
) -> list[str]:
    """List what does not stop an attacker, for this release."""
    return [
        *_promises(evidence, say),
        *_sensitive(evidence, facts, say),
        *_columns(evidence, looks, say),
        *_people(evidence, say),
        *_knowledge(evidence, say),
        *([] if is_truthful(evidence, losses) else [say("limits.untrue"), say("limits.seed")]),
        say("limits.models"),
        say("limits.measured"),
    ]


def _promises(evidence: ReleaseEvidence, say: Language) -> Iterator[str]:
    models = [verdict.model for verdict in evidence.verdicts]
    unit = evidence.unit_name(say)
    if not models:
        yield say("limits.no_claim", unit=unit)
    if any(model.min_people or model.of_federation for model in models):
        yield say("limits.k", unit=unit)
    if any(model.of_federation for model in models):
        yield say("limits.federation")
    if evidence.failed:
        yield say("limits.failed")


def _sensitive(evidence: ReleaseEvidence, facts: Sequence[SensitiveFacts], say: Language) -> Iterator[str]:
    unit = evidence.unit_name(say)
    for one in facts:
        if one.homogeneous:
            share = say.share(one.exposed)
            yield say("limits.homogeneous", column=one.column, classes=one.homogeneous, share=share, unit=unit)
        elif one.alpha > NEARLY_SURE:
            yield say("limits.nearly", column=one.column, share=say.share(one.alpha), unit=unit)
    if evidence.schema.sensitive:
        yield say("limits.background", columns=say.named(evidence.schema.sensitive))


def _columns(evidence: ReleaseEvidence, looks: Sequence[Lookalike], say: Language) -> Iterator[str]:
    changed = changed_columns(evidence.schema)
    carried = [a.name for a in evidence.schema.attributes if a.role in (Role.SENSITIVE, Role.INSENSITIVE)]
    passed = [name for name in carried if name not in changed and name not in evidence.masked]
    shown = [name for name in passed if name not in evidence.guarded_cells]
    guarded = [name for name in passed if name in evidence.guarded_cells]
    if shown:
        yield say("limits.shown", columns=say.named(shown))
    if evidence.masked:
        yield say("limits.masked", columns=say.named(list(evidence.masked)))
    if guarded:
        yield say("limits.guarded", columns=say.named(guarded))
    if [name for name in changed if name in carried]:
        yield say("limits.changed", columns=say.named([name for name in changed if name in carried]))
    if evidence.schema.pseudonym is not None:
        yield say("limits.pseudonyms")
    if evidence.row_order == "kept":
        yield say("limits.order")
    suspicious = list(dict.fromkeys(look.column for look in looks if look.published))
    if suspicious:
        yield say("limits.lookalike", columns=say.named(suspicious))


def _people(evidence: ReleaseEvidence, say: Language) -> Iterator[str]:
    if not evidence.counts_people:
        yield say("limits.people_unknown", column=evidence.schema.person_id)
    elif evidence.schema.unit == "records":
        yield say("limits.rows")
    if evidence.schema.household is None:
        yield say("limits.household", unit=evidence.unit_name(say))


def _knowledge(evidence: ReleaseEvidence, say: Language) -> Iterator[str]:
    over_series = any(isinstance(verdict.model, OverReleases) for verdict in evidence.verdicts)
    yield say("limits.series" if over_series else "limits.composition")
    if not any(verdict.model.hides_presence and verdict.holds for verdict in evidence.verdicts):
        yield say("limits.membership")


# ---- fields of a data protection impact assessment -----------------------------------------------
#
# GDPR art. 35(7) asks for (a) a description of the processing and its purposes, (b) necessity and proportionality, (c)
# the risks and (d) the measures; LGPD art. 38, sole paragraph, for the kinds of data, the methods and the controller's
# analysis of measures, safeguards and mitigation.


def impact_section(known: Mapping[str, str], say: Language, by_hand: Mapping[str, str] | None = None) -> Section:
    """Return the fields and the lines for signatures.

    Parameters
    ----------
    known : the fields that the evidence fills in; nobody can replace them.
    say : the language.
    by_hand : what people filled in (:func:`~fedanon.report.privacy.impact_fields.read_fields`).
    """
    filled = dict(by_hand or {})
    columns = tuple(TableColumn(say(f"impact.{name}")) for name in ("field", "content"))
    rows = tuple(_row(name, known.get(name, filled.get(name)), say) for name in FIELDS)
    table = TableBlock(say("impact.caption"), columns, rows)
    return Section(say("impact.title"), (Paragraph(say("impact.about")), table, _signatures(SIGNERS, say, filled)))


def _row(name: str, content: str | None, say: Language) -> tuple[TableCell, ...]:
    return TableCell(say(f"field.{name}")), TableCell(say("impact.by_hand") if content is None else content)


def _signatures(signers: Sequence[str], say: Language, filled: Mapping[str, str]) -> TableBlock:
    columns = tuple(TableColumn(say(f"signature.{name}")) for name in ("who", "name", "date", "signature"))
    line, short = "_" * 22, "_" * 12
    rows = tuple(
        (
            TableCell(say(f"signer.{who}")),
            TableCell(filled.get(f"{who}_name", line)),
            TableCell(short),
            TableCell(line),
        )
        for who in signers
    )
    return TableBlock(say("signature.caption"), columns, rows)
