"""The evidence of a risk report as data, for programs: the numbers of its sections and the same conclusion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from fedanon.attacks.record_risk import RecordRisk
from fedanon.attacks.suite import AttackReport
from fedanon.release.verdicts import Verdict
from fedanon.report.privacy.claims import sensitive_facts
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.federation_result import FederationResult
from fedanon.report.privacy.losses import column_losses
from fedanon.report.privacy.pooled_copies import pooled_facts
from fedanon.report.privacy.risks import Risk, journalist, prosecutor


def describe_release(evidence: ReleaseEvidence, attacks: AttackReport | None = None) -> dict[str, Any]:
    """Return what the report of a release shows; ``attacks`` are the results of running them, if they were run."""
    return {
        "release": evidence.path.name,
        "sha256": evidence.sha256,
        "as_written": evidence.is_as_written,
        "conclusion": evidence.conclusion(attacks).to_dict(),
        "counted": evidence.released.unit,
        "n": evidence.n_people,
        "suppressed": evidence.suppressed,
        "promises": _promises(evidence.verdicts),
        "sensitive": [asdict(one) for one in sensitive_facts(evidence)],
        "risks": {"prosecutor": _risk(prosecutor(evidence)), "journalist": _risk(journalist(evidence))},
        "attacks": None if attacks is None else _attacks(attacks),
        "losses": [asdict(one) for one in column_losses(evidence)],
        "pooled": pooled_facts(evidence),
        "columns": {attribute.name: str(attribute.role) for attribute in evidence.schema.attributes},
        "lookalikes": [
            {"column": look.column, "kind": look.kind.letter, "sign": look.sign, "published": look.published}
            for look in evidence.lookalikes
        ],
        "provenance": evidence.provenance or None,
    }


def describe_federation(result: FederationResult) -> dict[str, Any]:
    """Return what the report of a federation shows."""
    nodes = {node.number: {"rows": node.rows, "holds": result.holds_at(node), **node.metrics} for node in result.nodes}
    return {
        "result": result.path.name,
        "sha256": result.sha256,
        "conclusion": result.conclusion().to_dict(),
        "counted": result.unit,
        "scope": result.scope,
        "promises": _promises(result.verdict(model) for model in result.promises),
        "nodes": nodes,
        "rejected": len(result.document.get("rejected", [])),
        "unresponsive": len(result.unresponsive),
        "budget": result.budget or None,
    }


def _promises(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    return [
        {
            "promise": one.name,
            "holds": one.holds,
            "broken_classes": one.broken,
            "classes": one.classes,
            "doubt": one.doubt,
        }
        for one in verdicts
    ]


def _risk(risk: Risk | None) -> dict[str, float] | None:
    return None if risk is None else risk._asdict()


def _attacks(found: AttackReport) -> dict[str, Any]:
    """Return the results without the time they took, so that the same files give the same text."""
    results = [{name: value for name, value in one.to_dict().items() if name != "seconds"} for one in found.results]
    return {
        "results": results,
        "not_tried": found.not_tried,
        "record_risks": [_exposed(one) for one in found.record_risks],
    }


def _exposed(risk: RecordRisk) -> dict[str, Any]:
    """Return the risk per record with columns by name and their subgroups by number alone."""
    columns = [
        {
            "column": one.column,
            "subgroups": len(one.subgroups),
            "lowest": one.subgroups[0].chance,
            "highest": one.subgroups[-1].chance,
            "differs": one.differs,
        }
        for one in risk.columns
    ]
    return risk.to_dict() | {"columns": columns}
