"""The headline of a report, and the words a command ends with: the worst finding first, in every language alike."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from fedanon.data.schema import Unit
from fedanon.privacy import PRIVACY_MODELS
from fedanon.release.conclusion import Conclusion, Level, ReleaseFinding
from fedanon.release.verdicts import Mechanism, OverReleases, Promise
from fedanon.report.document import Note, NoteKind
from fedanon.report.privacy.language import Language

#: how a level looks; every title also begins with a sign of its own
LOOKS: dict[Level, NoteKind] = {
    "broken": "alarm",
    "not_checked": "caution",
    "kept_but": "caution",
    "nothing_promised": "caution",
    "kept": "finding",
}


def headline(conclusion: Conclusion, say: Language) -> Note:
    """The first block of a report."""
    texts = (*sentences(conclusion, say), say("conclusion.evidence"))
    return Note(title(conclusion, say), texts, LOOKS[conclusion.level], large=True)


def title(conclusion: Conclusion, say: Language) -> str:
    """The level in a line."""
    if conclusion.level != "broken":
        return say(f"conclusion.{conclusion.level}")
    kinds = {finding.kind for finding in conclusion.findings}
    keys = {"promise_broken": "broken", "file_changed": "changed", "check_failed": "failed"}
    return say(f"conclusion.{next(key for kind, key in keys.items() if kind in kinds)}")


def sentences(conclusion: Conclusion, say: Language) -> tuple[str, ...]:
    """Why, a sentence per finding, the worst first."""
    counts = conclusion.measured.get("promises", {})
    first = {"broken": [say("conclusion.stop")], "nothing_promised": [say("conclusion.unbounded")]}
    kept = [say("conclusion.promises", kept=counts["kept"], all=sum(counts.values()))] if any(counts.values()) else []
    texts = [finding_text(finding, conclusion, say) for finding in conclusion.findings]
    return (*first.get(conclusion.level, []), *texts, *kept)


def finding_text(finding: ReleaseFinding, conclusion: Conclusion, say: Language) -> str:
    """A finding as a sentence."""
    key, reason = f"finding.{finding.kind}", finding.reason
    if finding.kind == "jointly_unique":
        key = f"finding.jointly_unique_{finding.reason or conclusion.unit}"
    elif finding.kind == "records_counted":
        key = f"finding.records_{reason}"
    elif finding.kind == "federation_scope":
        key = "limits.federation"
    elif finding.kind == "promise_broken" and finding.portion is None:
        key = "finding.promise_short"
    elif finding.kind == "promise_not_checked":
        reason = say(f"doubt.{reason}")
    elif finding.kind == "attack_gains" and say.knows(f"attack.{reason}"):
        reason = say(f"attack.{reason}")
    portion = finding.portion
    return say(
        key,
        promise="" if finding.model is None else promise(finding.model, conclusion.promised, say),
        columns=say.named(finding.columns),
        reason=reason,
        unit=say(f"unit.{conclusion.unit}"),
        count=None if portion is None else portion.count,
        of=None if portion is None else portion.of,
        share=say.share(finding.share),
        baseline=say.share(finding.baseline),
    )


def promise(model: Promise, unit: Unit, say: Language) -> str:
    """Describe a model in a sentence; one that the language has no text for describes itself."""
    if isinstance(model, Mechanism):
        key = f"promise.{model.name.replace(' ', '_')}"
        return say(key, **model.parameters) if say.knows(key) else model.name
    if isinstance(model, OverReleases):
        least = min(model.least_values.values())
        return say("promise.series", releases=model.releases, least=least, columns=say.named(list(model.least_values)))
    names = {component: name for name, component in PRIVACY_MODELS.items()}
    key = f"promise.{names.get(type(model), '')}{'_federation' if model.of_federation else ''}"
    fields = {name: Path(value).name if name == "population" else value for name, value in asdict(model).items()}
    return say(key, unit=say(f"unit.{unit}"), **fields) if say.knows(key) else str(model)
