"""Conclusion: what is to be said first of a release, its worst finding, and all the findings behind it.

Every command and the risk report say the same of the same file, since all of them ask :func:`conclude`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from fedanon.data.schema import Unit
from fedanon.release.exposure import Exposure, Portion, measure_exposure
from fedanon.release.verdicts import Mechanism, Promise, Verdict
from fedanon.release.view import PublishedView

#: the worst first. Nothing promised stands apart: no promise is broken or kept
Level = Literal["broken", "not_checked", "kept_but", "kept", "nothing_promised"]
FindingKind = Literal[
    "promise_broken",
    "file_changed",
    "check_failed",
    "promise_not_checked",
    "suspected_identifier",
    "jointly_unique",
    "singled_out",
    "homogeneous",
    "attack_gains",
    "federation_scope",
    "records_counted",
]
#: the kinds that break a release, whatever else holds
BREAKING = frozenset({"promise_broken", "file_changed", "check_failed"})

#: Share of the rows that may be unique over all published columns, or of the statements that may single out, before it
#: is a finding. A class with a few values of a sensitive column always has some row whose value is the only one in its
#: class, and knowing that value gives nothing more away; beyond one row in twenty the other columns act as
#: quasi-identifiers that no promise covers.
MAX_UNIQUE = 0.05
#: By how much an attack other than singling out may surely beat guessing before it is a finding: one try in five, as an
#: attacker who is right more often than that puts a record at risk (:data:`fedanon.metrics.risk.RISK_THRESHOLD`).
MAX_GAIN = 0.2
#: Share of the people who may be in a class that has one single sensitive value. Each of them is exposed for certain,
#: without being found, so one is too many.
MAX_CERTAIN = 0.0


class AttackOutcome(Protocol):
    """What an attack achieved."""

    @property
    def attack(self) -> str:
        """Its name."""

    @property
    def rate(self) -> float:
        """Share of the tries that succeeded."""

    @property
    def baseline(self) -> float:
        """Share that succeeds by guessing."""

    @property
    def low(self) -> float:
        """Lower end of the interval of the rate."""


@dataclass(frozen=True, kw_only=True)
class ReleaseFinding:
    """One thing that speaks against a release; names of columns and numbers, no cell.

    Parameters
    ----------
    kind : what was found.
    columns : the columns it is about.
    model : the promise it is about.
    reason : why a promise is open or records are counted, or the name of a check that failed or of an attack.
    portion : how many are concerned, of how many.
    share : the same as a share.
    baseline : the share there would be without the release, for an attack.
    """

    kind: FindingKind
    columns: tuple[str, ...] = ()
    model: Promise | None = None
    reason: str = ""
    portion: Portion | None = None
    share: float | None = None
    baseline: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what does not apply is left out."""
        portion = None if self.portion is None else {"count": self.portion.count, "of": self.portion.of}
        known = {
            "columns": list(self.columns),
            "promise": "" if self.model is None else str(self.model),
            "reason": self.reason,
            **(portion or {}),
            "share": self.share,
            "baseline": self.baseline,
        }
        return {"kind": self.kind} | {name: value for name, value in known.items() if value not in (None, "", [])}


@dataclass(frozen=True)
class Conclusion:
    """The level of a release, and why.

    Parameters
    ----------
    level : the worst that is known of it.
    unit : what was counted, people or records.
    promised : of whom the promises are; they may be of people where only records can be counted.
    findings : all that was found, the worst first.
    measured : the counts behind it by name, also those that are no finding.
    """

    level: Level
    unit: Unit = "records"
    promised: Unit = "records"
    findings: tuple[ReleaseFinding, ...] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "level": self.level,
            "findings": [finding.to_dict() for finding in self.findings],
            "measured": dict(self.measured),
        }


def conclude(
    view: PublishedView,
    verdicts: Sequence[Verdict],
    *,
    exposure: Exposure | None = None,
    attacks: Iterable[AttackOutcome] = (),
    failed: Iterable[ReleaseFinding] = (),
) -> Conclusion:
    """The conclusion about a release.

    Parameters
    ----------
    view : what is published.
    verdicts : on what was promised and required of it.
    exposure : what its columns give away, if it was measured already; needed where the view holds only some of them.
    attacks : what attacks achieved, if any were run.
    failed : what was found beside the promises, such as that the file was changed.
    """
    exposure = exposure or measure_exposure(view)
    tried = list(attacks)
    noise = any(isinstance(verdict.model, Mechanism) for verdict in verdicts)
    findings = [
        *failed,
        *_promises(verdicts),
        *_columns(exposure, noise=noise, pseudonyms=view.has_pseudonyms),
        *_singled_out(tried),
        *_certain(exposure),
        *_gains(tried),
        *_records(view),
    ]
    level = grade(findings, promised=bool(verdicts))
    measured = exposure.to_dict() | {"promises": count_promises(verdicts)}
    return Conclusion(level, exposure.unit, view.schema.unit, tuple(findings), measured)


def count_promises(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many promises are kept, broken and not checked."""
    names = {True: "kept", False: "broken", None: "not_checked"}
    return {name: sum(verdict.holds is holds for verdict in verdicts) for holds, name in names.items()}


def grade(findings: Iterable[ReleaseFinding], *, promised: bool) -> Level:
    """The level that follows from what was found."""
    kinds = {finding.kind for finding in findings}
    if kinds & BREAKING:
        return "broken"
    if not promised:
        return "nothing_promised"
    if "promise_not_checked" in kinds:
        return "not_checked"
    return "kept_but" if kinds else "kept"


def _promises(verdicts: Sequence[Verdict]) -> Iterator[ReleaseFinding]:
    for verdict in verdicts:
        if verdict.holds is False:
            portion = Portion(verdict.broken, verdict.classes)
            yield ReleaseFinding(kind="promise_broken", model=verdict.model, portion=portion)
    for verdict in verdicts:
        if verdict.holds is None:
            yield ReleaseFinding(kind="promise_not_checked", model=verdict.model, reason=verdict.doubt)


def _columns(exposure: Exposure, *, noise: bool, pseudonyms: bool) -> Iterator[ReleaseFinding]:
    if exposure.suspected:
        yield ReleaseFinding(kind="suspected_identifier", columns=exposure.suspected)
    # what a mechanism drew is true of nobody, so that it is unique says nothing
    if exposure.unique.share > MAX_UNIQUE and not noise:
        # where pseudonyms are published, they are not among the columns that anybody may know
        reason = "pseudonyms" if pseudonyms else ""
        yield ReleaseFinding(kind="jointly_unique", reason=reason, portion=exposure.unique, share=exposure.unique.share)


def _singled_out(attacks: Sequence[AttackOutcome]) -> Iterator[ReleaseFinding]:
    for one in attacks:
        if one.attack == "singling_out" and one.rate > MAX_UNIQUE and one.low > one.baseline:
            yield ReleaseFinding(kind="singled_out", share=one.rate, baseline=one.baseline)


def _gains(attacks: Sequence[AttackOutcome]) -> Iterator[ReleaseFinding]:
    # singling out and homogeneous classes are findings of their own
    others = [one for one in attacks if one.attack not in ("singling_out", "homogeneity")]
    for one in sorted(others, key=lambda one: one.baseline - one.low):
        if one.low - one.baseline > MAX_GAIN:
            yield ReleaseFinding(kind="attack_gains", reason=one.attack, share=one.rate, baseline=one.baseline)


def _certain(exposure: Exposure) -> Iterator[ReleaseFinding]:
    worst_first = sorted(exposure.certain.items(), key=lambda item: -item[1].exposed.share)
    for name, one in worst_first:
        if one.exposed.share > MAX_CERTAIN:
            share = one.exposed.share
            yield ReleaseFinding(kind="homogeneous", columns=(name,), portion=one.exposed, share=share)


def _records(view: PublishedView) -> Iterator[ReleaseFinding]:
    if view.unit == "records":
        yield ReleaseFinding(kind="records_counted", reason="schema" if view.knows_people else "original")
