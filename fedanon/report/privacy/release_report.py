"""The risk report of a release: what a data protection officer reads before signing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedanon._version import __version__
from fedanon.attacks.suite import AttackReport
from fedanon.data.lint import Lookalike
from fedanon.data.schema import Role
from fedanon.report.document import Block, Document, Facts
from fedanon.report.privacy.attacks import attacks_section, largest_gain
from fedanon.report.privacy.claims import SensitiveFacts, claims_section, sensitive_facts
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.exposed import attack_title
from fedanon.report.privacy.headline import headline, promise
from fedanon.report.privacy.language import Language
from fedanon.report.privacy.limits import impact_section, limits_of_release, limits_section
from fedanon.report.privacy.losses import ColumnLoss, column_losses, losses_section, mean_loss
from fedanon.report.privacy.origin import columns_section, harbor_section, origin_section
from fedanon.report.privacy.risks import prosecutor, risks_section


@dataclass(frozen=True)
class _Found:
    """What the sections share."""

    facts: Sequence[SensitiveFacts]
    looks: Sequence[Lookalike]
    losses: Sequence[ColumnLoss]
    attacks: AttackReport | None
    limits: Sequence[str]


def release_report(
    evidence: ReleaseEvidence,
    say: Language,
    *,
    attacks: AttackReport | None = None,
    title: str | None = None,
    by_hand: Mapping[str, str] | None = None,
) -> Document:
    """Return the document about a release.

    Parameters
    ----------
    evidence, say : what is known, and the language.
    attacks : the results of running them, if they were run.
    title : of the document, unless that of the schema.
    by_hand : fields of the impact assessment that people filled in.
    """
    found = _found(evidence, attacks, say)
    blocks: tuple[Block, ...] = (
        headline(evidence.conclusion(attacks), say),
        Facts(_key_facts(evidence, found, say), large=True),
        claims_section(evidence, found.facts, say),
        risks_section(evidence, say),
        attacks_section(attacks, say),
        limits_section(found.limits, say),
        losses_section(evidence, found.losses, say),
        columns_section(evidence, say),
        harbor_section(found.looks, say),
        impact_section(_impact(evidence, found, say), say, by_hand),
        origin_section(evidence, say),
    )
    return Document(
        title=title or say("report.title", name=evidence.schema.title or evidence.schema.name),
        kicker=say("report.kicker"),
        lead=say("report.lead", file=evidence.path.name),
        blocks=blocks,
        footer=say("report.footer", version=__version__),
        language=say.code,
        labels=say.labels(),
    )


def _found(evidence: ReleaseEvidence, attacks: AttackReport | None, say: Language) -> _Found:
    facts, losses = sensitive_facts(evidence), column_losses(evidence)
    looks = evidence.lookalikes
    return _Found(facts, looks, losses, attacks, limits_of_release(evidence, facts, looks, losses, say))


def _key_facts(evidence: ReleaseEvidence, found: _Found, say: Language) -> tuple[tuple[str, str], ...]:
    risk, gain = prosecutor(evidence), largest_gain(found.attacks)
    exposed = max((one.exposed for one in found.facts), default=None)
    unit, unique = evidence.unit_name(say), evidence.exposure.unique
    facts = [
        (unit, say.number(evidence.n_people)),
        (say("key.k", unit=unit), say.number(evidence.released.smallest_class)),
        (say("key.risk"), say.share(risk.highest if risk else None)),
        (say("key.average"), say.share(risk.average if risk else None)),
        (say("key.exposed", unit=unit), say.share(exposed)),
        (say("key.unique"), say.share(unique.share if unique.of else None)),
        (say("key.loss"), say.share(mean_loss(found.losses))),
        (say("key.suppressed"), say.share(evidence.suppressed / len(evidence.released))),
    ]
    if gain is not None:
        gained = say(
            "key.gain_text",
            attack=attack_title(gain.attack, say),
            rate=say.share(gain.rate),
            guess=say.share(gain.baseline),
        )
        facts.append((say("key.gain"), gained))
    return tuple(facts)


def _impact(evidence: ReleaseEvidence, found: _Found, say: Language) -> dict[str, str]:
    """Return the fields that the evidence fills in."""
    schema, risk = evidence.schema, prosecutor(evidence)
    roles = {role: [a.name for a in schema.attributes if a.role is role] for role in Role}
    method = evidence.provenance.get("method", say("words.unknown"))
    highest, average = (risk.highest, risk.average) if risk else (None, None)
    exposed = max((one.exposed for one in found.facts), default=None)
    risks = say(
        "impact.risks",
        highest=say.share(highest),
        average=say.share(average),
        unit=evidence.unit_name(say, "unit_title"),
        exposed=say.share(exposed),
    )
    gain = largest_gain(found.attacks)
    if gain is not None:
        risks += " " + say(
            "impact.gain",
            attack=attack_title(gain.attack, say),
            rate=say.share(gain.rate),
            guess=say.share(gain.baseline),
        )
    return {
        "nature": say("impact.nature", method=method, file=evidence.path.name),
        "categories": say("impact.categories", **{str(role): say.named(names) for role, names in roles.items()}),
        "special": say("impact.special", columns=say.named(schema.sensitive)),
        "subjects": say("impact.subjects", n=evidence.n_people, unit=evidence.unit_name(say)),
        "necessity": say("impact.necessity", loss=say.share(mean_loss(found.losses)), suppressed=evidence.suppressed),
        "risks": risks,
        "measures": say(
            "impact.measures",
            removed=say.named([name for name in schema.identifying if name != schema.pseudonym]),
            promises="; ".join(promise(one.model, schema.unit, say) for one in evidence.verdicts if one.holds)
            or say("words.none"),
        ),
        "residual": say("impact.residual", n=len(found.limits)),
    }
