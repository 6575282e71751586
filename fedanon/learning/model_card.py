"""The card of a trained model: what it was made of, what is promised, and how well it did; for programs and people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedanon._version import __version__
from fedanon.learning.rounds import RunResult
from fedanon.learning.settings import RunSettings
from fedanon.models.outcome import Outcome

FORMAT = 1


def make_card(settings: RunSettings, outcome: RunResult, *, security: str) -> dict[str, Any]:
    """All that is known of a model, without a cell of anybody's.

    Parameters
    ----------
    settings : of the run.
    outcome : of the run.
    security : how nodes and server spoke: 'tls', 'none', 'simulated' for a run on one machine, or 'unknown'.
    """
    facts = outcome.facts
    return {
        "format": FORMAT,
        "version": __version__,
        "settings": {n: dict(v) if isinstance(v, Mapping) else v for n, v in settings.tagged().items()},
        "security": security,
        "counted": outcome.counted,
        "schema_sha256": next(iter(facts.values())).schema_sha256,
        "width": next(iter(facts.values())).width,
        "classes": next(iter(facts.values())).classes,
        "nodes": [
            {"number": number, "name": outcome.names.get(number), **_sizes(facts[number].to_dict())}
            for number in sorted(facts)
        ],
        "metrics": dict(outcome.rounds[-1]) if outcome.rounds else {},
        "privacy": {
            "smallest_k_reached": _least(outcome, "k_reached"),
            "largest_linkage_expected_share": _most(outcome, "linkage_expected_share"),
            "dp": outcome.dp,
            "joint": outcome.joint,
        },
        "egress": None if outcome.egress is None else {str(n): outcome.egress[n] for n in sorted(outcome.egress)},
        "updates_left_out": len(outcome.rejected),
        "answers_missing": len(outcome.unresponsive),
        "suspects": outcome.suspects,
    }


def _sizes(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: facts[name] for name in ("n_train", "n_test", "measures")}


def _measured(outcome: RunResult, name: str) -> list[float]:
    """A metric of all nodes; empty unless every one reports it."""
    found = [facts.measures[name] for facts in outcome.facts.values() if name in facts.measures]
    return found if len(found) == len(outcome.facts) else []


def _least(outcome: RunResult, name: str) -> float | None:
    return min(_measured(outcome, name), default=None)


def _most(outcome: RunResult, name: str) -> float | None:
    return max(_measured(outcome, name), default=None)


# ---- for people ----------------------------------------------------------------------------------


def card_text(card: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    settings = card["settings"]
    lines = [
        f"# Model card: {settings['model']} on {settings['method']}",
        "",
        f"Made by fedanon {card['version']}. `card.json` holds the same for programs, and all settings.",
        "",
        "## Data",
        "",
        "| node | name | training records | test records |",
        "|---:|---|---:|---:|",
        *(f"| {n['number']} | {n['name'] or ''} | {n['n_train']} | {n['n_test']} |" for n in card["nodes"]),
        "",
        f"{sum(n['n_train'] for n in card['nodes'])} training records of {len(card['nodes'])} nodes, as "
        f"{card['width']} features, to predict {Outcome(card['classes'])}. "
        f"Schema (SHA-256): `{card['schema_sha256']}`.",
        "",
        "## What is promised",
        "",
        *(f"- {line}" for line in _promises(card)),
        "",
        "## Metrics of the last evaluated round",
        "",
        "| metric | value |",
        "|---|---:|",
        *(f"| {name} | {value:.6g} |" for name, value in card["metrics"].items()),
        "",
        "Means over the nodes' own test records, `rmse` and `r2` of all of them; those named `_recoded` are on records "
        "recoded like the training data.",
        "",
        *_left(card),
        "## What went wrong",
        "",
        f"{card['updates_left_out']} updates were left out, {card['answers_missing']} answers were missing, "
        f"{len(card['suspects'])} nodes are suspects.",
        "",
    ]
    return "\n".join(lines)


def _promises(card: Mapping[str, Any]) -> Iterator[str]:
    settings, privacy = card["settings"], card["privacy"]
    k, linkage, dp = privacy["smallest_k_reached"], privacy["largest_linkage_expected_share"], privacy["dp"]
    yield f"Every node trained on its own release, made by `{settings['method']}` with {settings['method_settings']}."
    if k is None:
        yield "Not every node reported the k of its release."
    else:
        yield f"The smallest k a node measured of its release is {k:g}, counted in {card['counted']}."
    if linkage is not None:
        yield f"A node's own estimate of the share of its records that can be linked is at most {linkage:.3g}."
    if privacy["joint"]:
        yield "The nodes agreed on one recoding; `card.json` says what their counts gave away."
    if dp:
        yield (
            f"Training spent epsilon {dp['epsilon_spent']:.3g} at delta {dp['delta']:g}; the unit is: {dp['unit']}. "
            f"It covers {dp['covers']}."
            + ("" if dp["promised"] else " The noise follows from the seed: nothing is promised.")
        )
    else:
        yield "Training added no noise: the arrays themselves are not covered by a privacy budget."
    yield {
        "tls": "Nodes and server spoke over TLS and knew each other by keys.",
        "none": "Nodes and server spoke without TLS and without keys.",
        "simulated": "All nodes were simulated on one machine.",
    }.get(card["security"], "Whether nodes and server spoke over TLS is not known.")
    if card["egress"] is None:
        yield "What left the nodes was not collected here; the audit log of every node has it, where one is kept."


def _left(card: Mapping[str, Any]) -> Iterator[str]:
    """What left the nodes, by their own count."""
    if card["egress"] is None:
        return
    told = [(node, card["egress"].get(str(node["number"]))) for node in card["nodes"]]
    columns = list(next((counts for _, counts in told if counts), {}))
    yield from ("## What left the nodes", "")
    if columns:
        yield f"| node | {' | '.join(columns)} |"
        yield "|---" + "|---:" * len(columns) + "|"
        for node, counts in told:
            cells = [str(counts[name]) if counts else "not told" for name in columns]
            yield f"| {node['name'] or node['number']} | {' | '.join(cells)} |"
        yield ""
    silent = sum(not counts for _, counts in told)
    yield (
        f"As {len(told) - silent} of {len(told)} nodes counted it in the run that ended here, bytes of content without "
        "their envelopes. What left before a run was resumed, and in other runs, stands in a node's own log "
        "(`fedanon node egress`)."
    )
    yield ""
