"""The result of a simulated federation for people: a table of scores, and what has to be said about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fedanon.cli.output import console, print_table

SHOWN = ("accuracy", "auc_pooled", "auc_client_mean", "log_loss", "f1", "ncp", "linkage", "truthfulness", "seconds")
#: updates that were left out, at most
LEFT_OUT = 10
#: said where noise can be taken off by whoever knows the seed
NO_PROMISE = " The noise follows from the seed: nothing is promised."


def print_result(title: str, result: dict[str, Any]) -> None:
    """The main measures, and the notes."""
    print_table(title, ["measure", "value"], [(name, result.get(name)) for name in SHOWN])
    out = console()
    for note in _notes(result):
        out.print(note)


def _notes(result: dict[str, Any]) -> Iterator[str]:
    yield "Scores are on raw test rows; ncp, linkage and truthfulness are means over the clients' releases."
    if "together" in result:
        yield _agreed(result["together"])
        yield _disclosed(result["together"])
    yield from map(_suspect, result["suspects"])
    if "dp" in result:
        yield _budget(result["dp"])
    for entry in result["rejected"][:LEFT_OUT]:
        yield f"Left out: client {entry['client']} in round {entry['round']}: {entry['reason']}"


def _agreed(agreed: dict[str, Any]) -> str:
    """What clients that anonymised together reached."""
    return (
        f"Anonymised together by {len(agreed['clients'])} clients: every class holds at least "
        f"{agreed['smallest_class_at_least']} people of the federation (confidence {agreed['confidence']:g}); "
        f"ncp is that of the published cells. {agreed['warning']}"
    )


def _disclosed(agreed: dict[str, Any]) -> str:
    """What the counts gave away, in words."""
    told = agreed["disclosure"]
    if "epsilon" not in told:
        words = {
            "plain": "the server saw exact counts of every client",
            "threshold": f"the server saw counts of every client, none below {told.get('threshold')}",
            "secure": "the server saw sums over all clients only",
        }
        return f"Counts: {words[told['counts']]} ({agreed['questions']} questions)."
    return (
        f"Counts: epsilon {agreed['epsilon_spent']:g} of each client is spent on {agreed['questions']} questions "
        f"({agreed['protocols']} protocols), against {told['against']}." + ("" if agreed["promised"] else NO_PROMISE)
    )


def _suspect(entry: dict[str, Any]) -> str:
    return (
        f"Suspect: client {entry['client']}: its updates were refused or unlike the others' in "
        f"{entry['rounds_flagged']} of {entry['rounds']} rounds."
    )


def _budget(spent: dict[str, Any]) -> str:
    promise = "" if spent["promised"] else NO_PROMISE
    return (
        f"Privacy budget: epsilon {spent['epsilon_spent']:.3g} spent at delta {spent['delta']:g}, unit: "
        f"{spent['unit']}. It covers {spent['covers']}.{promise}"
    )
