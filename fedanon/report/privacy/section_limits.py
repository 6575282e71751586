"""What is not protected, in plain words; only what applies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedanon.data.safe_harbor import Lookalike
from fedanon.data.schema import Role
from fedanon.privacy.delta_presence import DeltaPresence
from fedanon.privacy.k_anonymity import KAnonymity
from fedanon.report.document import Bullets, Paragraph, Section
from fedanon.report.privacy.evidence import Evidence
from fedanon.report.privacy.language import Language
from fedanon.report.privacy.losses import ColumnLoss
from fedanon.report.privacy.section_losses import is_truthful
from fedanon.report.privacy.sensitive_facts import SensitiveFacts

#: a guess that is right so often tells nearly as much as a value all share
NEARLY_SURE = 0.9


def limits_section(items: Sequence[str], say: Language) -> Section:
    """The section with these items."""
    return Section(say("limits.title"), (Paragraph(say("limits.about")), Bullets(tuple(items))))


def limits_of_release(
    evidence: Evidence,
    facts: Sequence[SensitiveFacts],
    looks: Sequence[Lookalike],
    losses: Sequence[ColumnLoss],
    say: Language,
) -> list[str]:
    """What does not hold back an attacker, for this release."""
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


def _promises(evidence: Evidence, say: Language) -> Iterator[str]:
    models = [verdict.model for verdict in evidence.verdicts]
    ks = [model for model in models if isinstance(model, KAnonymity)]
    if not models:
        yield say("limits.no_claim")
    if ks:
        yield say("limits.k")
    if any(k.scope == "federation" for k in ks):
        yield say("limits.federation")
    if evidence.failed:
        yield say("limits.failed")


def _sensitive(evidence: Evidence, facts: Sequence[SensitiveFacts], say: Language) -> Iterator[str]:
    for one in facts:
        if one.homogeneous:
            share = say.share(one.exposed)
            yield say("limits.homogeneous", column=one.column, classes=one.homogeneous, share=share)
        elif one.alpha > NEARLY_SURE:
            yield say("limits.nearly", column=one.column, share=say.share(one.alpha))
    if evidence.schema.sensitive:
        yield say("limits.background", columns=say.named(evidence.schema.sensitive))


def _columns(evidence: Evidence, looks: Sequence[Lookalike], say: Language) -> Iterator[str]:
    shown = [a.name for a in evidence.schema.attributes if a.role in (Role.SENSITIVE, Role.INSENSITIVE)]
    if shown:
        yield say("limits.shown", columns=say.named(shown))
    suspicious = list(dict.fromkeys(look.column for look in looks if look.published))
    if suspicious:
        yield say("limits.lookalike", columns=say.named(suspicious))


def _people(evidence: Evidence, say: Language) -> Iterator[str]:
    if not evidence.counts_people:
        yield say("limits.people_unknown", column=evidence.schema.person_id)
    elif evidence.schema.person_id is None:
        yield say("limits.rows")
    if evidence.schema.household is None:
        yield say("limits.household")


def _knowledge(evidence: Evidence, say: Language) -> Iterator[str]:
    yield say("limits.composition")
    if not any(isinstance(verdict.model, DeltaPresence) and verdict.holds for verdict in evidence.verdicts):
        yield say("limits.membership")
