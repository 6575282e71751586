"""The risk report of a federation: what each node promised and kept, and what k over all of them does not protect."""

from __future__ import annotations

from collections.abc import Iterator

from fedanon._version import __version__
from fedanon.attacks.base import wilson_interval
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.report.document import (
    Block,
    Code,
    Document,
    Facts,
    Note,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
    TableColumn,
)
from fedanon.report.numbers import NOTHING
from fedanon.report.privacy.claims import TONES, verdict_cell, verdict_table
from fedanon.report.privacy.federation_result import FederationResult, NodeResult
from fedanon.report.privacy.headline import headline, promise
from fedanon.report.privacy.language import Language
from fedanon.report.privacy.limits import impact_section, limits_section
from fedanon.report.privacy.origin import hash_table, parameter_table

LINKED = "linkage_expected_share"


def federation_report(result: FederationResult, say: Language, *, title: str | None = None) -> Document:
    """Return the document about a run of a federation."""
    limits = list(_limits(result, say))
    blocks: tuple[Block, ...] = (
        headline(result.conclusion(), say),
        Facts(_key_facts(result, say), large=True),
        _nodes_section(result, say),
        limits_section(limits, say),
        impact_section(_impact(result, len(limits), say), say),
        _origin(result, say),
    )
    return Document(
        title=title or say("report.federation_title", n=result.n_nodes),
        kicker=say("report.kicker"),
        lead=say("report.federation_lead", file=result.path.name),
        blocks=blocks,
        footer=say("report.footer", version=__version__),
        language=say.code,
        labels=say.labels(),
    )


def _key_facts(result: FederationResult, say: Language) -> tuple[tuple[str, str], ...]:
    linked, unit = _largest(result), say(f"unit.{result.unit}")
    return (
        (say("key.nodes"), say.number(result.n_nodes)),
        (say("key.scope"), say(f"scope.{result.scope}")),
        (say("key.k", unit=unit), say.number(result.smallest)),
        (say("federation.linked"), say.share(linked)),
        (say("key.rejected"), say.number(len(result.document.get("rejected", [])))),
        (say("key.silent"), say.number(len(result.unresponsive))),
    )


def _largest(result: FederationResult) -> float | None:
    return max((float(node.metrics[LINKED]) for node in result.nodes if LINKED in node.metrics), default=None)


# ---- nodes -----------------------------------------------------------------------------------


def _nodes_section(result: FederationResult, say: Language) -> Section:
    about = {"node": "about_node", "federation": "about_federation", "none": "about_nothing"}[result.scope]
    blocks: list[Block] = [Paragraph(say(f"federation.{about}"))]
    if result.promises:
        blocks.append(verdict_table([_promise_row(one, result, say) for one in result.promises], say))
    if result.parameters.get("require"):
        blocks.append(Paragraph(say("federation.required", require=result.parameters["require"])))
    if result.budget:
        blocks.append(Paragraph(_budget(result, say)))
    if result.nodes and result.smallest is not None:
        blocks += [
            _table(result, say),
            Paragraph(say("federation.together_caption")),
            Paragraph(say("federation.measured_at")),
        ]
    else:
        blocks.append(Note(say("federation.no_nodes_title"), (say("federation.no_nodes"),), "warning"))
    return Section(say("federation.title"), (*blocks, *_events(result, say)))


def _budget(result: FederationResult, say: Language) -> str:
    spent = result.budget
    text = say("federation.budget", spent=spent["epsilon_spent"], epsilon=spent["epsilon"], delta=spent["delta"])
    return text if spent.get("promised", True) else f"{text} {say('federation.not_secret')}"


def _promise_row(model: KAnonymity, result: FederationResult, say: Language) -> tuple[TableCell, ...]:
    reached, holds = result.reached(model), result.verdict(model).holds
    key = "doubt.nodes" if holds is None else "claims.all_classes" if model.of_federation else "claims.by_node"
    more = say(key, classes=result.joint.get("classes")) if holds is not False else say.number(reached)
    return (
        TableCell(promise(model, result.unit, say)),
        TableCell(say.number(model.k), model.k),
        TableCell(say.number(reached), reached),
        verdict_cell(holds, more, say),
    )


def _table(result: FederationResult, say: Language) -> TableBlock:
    names = ("rows", "k", "verdict", "linked", "interval", "loss", "suppressed", "true")
    numeric = tuple(TableColumn(say(f"federation.{name}"), numeric=True) for name in names)
    columns = (TableColumn(say("federation.node")), *numeric)
    return TableBlock(say("federation.caption"), columns, tuple(_row(node, result, say) for node in result.nodes))


def _row(node: NodeResult, result: FederationResult, say: Language) -> tuple[TableCell, ...]:
    linked = node.metrics.get(LINKED)
    interval = NOTHING if linked is None else say.interval(*wilson_interval(linked * node.rows, node.rows))
    shares = [
        TableCell(say.share(node.metrics.get(name)), node.metrics.get(name))
        for name in ("ncp_published", "suppressed_share", "truthfulness")
    ]
    holds = result.holds_at(node)
    key = "federation.kept" if holds else "federation.short"
    verdict = TableCell(NOTHING) if holds is None else TableCell(say(key, k=result.k_local), tone=TONES[holds])
    return (
        TableCell(node.number, float(node.number) if node.number.isdecimal() else None),
        TableCell(say.number(node.rows), node.rows),
        TableCell(say.number(node.k_reached), node.k_reached),
        verdict,
        TableCell(say.share(linked), linked),
        TableCell(interval),
        *shares,
    )


def _events(result: FederationResult, say: Language) -> Iterator[Block]:
    rejected, silent = len(result.document.get("rejected", [])), len(result.unresponsive)
    if rejected or silent:
        yield Note(
            say("federation.events_title"), (say("federation.events", rejected=rejected, silent=silent),), "warning"
        )
    if "security" in result.document:
        yield Paragraph(say("federation.security", security=f"`{result.document['security']}`"))


# ---- what follows --------------------------------------------------------------------------------


def _limits(result: FederationResult, say: Language) -> Iterator[str]:
    if result.failed:
        yield say("limits.failed")
    yield say("limits.no_claim" if result.k is None else "limits.k", unit=say(f"unit.{result.unit}"))
    if result.scope == "federation":
        yield say("limits.federation")
    yield from (say(f"limits.{name}") for name in ("nodes_differ", "updates", "membership", "models"))
    if result.document.get("security") == "none":
        yield say("limits.insecure")
    if any(float(node.metrics.get("truthfulness", 1)) < 1 for node in result.nodes):
        yield say("limits.untrue")
    yield say("limits.measured")


def _impact(result: FederationResult, n_limits: int, say: Language) -> dict[str, str]:
    rounds = result.settings.get("rounds", len(result.document["rounds"]))
    rows = sum(node.rows for node in result.nodes) or result.document.get("n_train")
    kept = [promise(one, result.unit, say) for one in result.promises if result.verdict(one).holds]
    return {
        "nature": say(
            "impact.federation_nature", method=result.method, model=result.settings.get("model"), rounds=rounds
        ),
        "subjects": say("impact.federation_subjects", n=rows, nodes=result.n_nodes),
        "risks": say(
            "impact.federation_risks",
            k=say.number(result.smallest),
            unit=say(f"unit.{result.unit}"),
            linked=say.share(_largest(result)),
        ),
        "measures": say("impact.federation_measures", promises="; ".join(kept) or say("words.none")),
        "residual": say("impact.residual", n=n_limits),
    }


def _origin(result: FederationResult, say: Language) -> Section:
    facts = (
        (say("origin.result"), f"`{result.path.name}`"),
        (say("origin.method"), f"`{result.method}`"),
        (say("origin.seed"), str(result.settings.get("seed", NOTHING))),
        (say("origin.made_by"), f"fedanon {result.document.get('version', NOTHING)}"),
        (say("origin.reported_by"), f"fedanon {__version__}"),
    )
    schemas = sorted({str(one["schema_sha256"]) for one in (result.document.get("facts") or {}).values()})
    hashes = [(say("origin.result"), result.sha256), *((say("origin.schema"), sha) for sha in schemas)]
    if "recoding_sha256" in result.joint:
        hashes.append((say("origin.recoding"), str(result.joint["recoding_sha256"])))
    blocks = (
        Facts(facts),
        hash_table(hashes, say),
        parameter_table(result.settings, say),
        Paragraph(say("origin.again_federation")),
        Code(f"fedanon report --privacy {result.path.name} --language {say.code}"),
    )
    return Section(say("origin.title"), blocks)
