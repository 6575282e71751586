"""Risk and loss of a chain of steps, modified beside original, for people and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fedanon.cli.output import print_table

if TYPE_CHECKING:
    from fedanon.sdc.measures import Measures

#: most categories of which a transition matrix is printed
MOST_PRINTED = 12


def refuse_unknown_metrics(names: Sequence[str]) -> None:
    """Raise ConfigError for a metric that does not exist."""
    from fedanon.metrics import METRICS

    for name in names:
        METRICS[name]


def measured(measures: Measures, metrics: Sequence[str] = ()) -> dict[str, Any]:
    """Return the usual numbers by list of columns, with ``metrics`` in addition; what does not apply is left out."""
    from fedanon.sdc.measures import CATEGORY_METRICS, KEY_METRICS, NUMBER_METRICS

    lists = measures.variables
    usual = [
        *(KEY_METRICS if lists.keys else ()),
        *(NUMBER_METRICS if lists.numbers else ()),
        *CATEGORY_METRICS,
    ]
    found = measures.measure(dict.fromkeys([*usual, *metrics]))
    shown = {name: pair._asdict() for name, pair in found.items() if name in metrics or pair.modified == pair.modified}
    randomized = measures.randomized()
    return {
        "measured": shown,
        **({"randomized": randomized, "contingencies": measures.contingencies()} if randomized else {}),
    }


def print_measured(result: dict[str, Any]) -> None:
    """Print what :func:`measured` returned."""
    from fedanon.metrics import METRICS

    rows = [(METRICS[name].title, pair["modified"], pair["original"]) for name, pair in result["measured"].items()]
    lists = ", ".join(f"{part}: {', '.join(names) or 'none'}" for part, names in result["variables"].items())
    print_table(f"Risk and loss; {lists}", ["metric", "modified", "original"], rows)
    if "randomized" not in result:
        return
    changes = [
        (one["column"], one["changed"], one["changed_share"], one["ut1"], one["conditional_entropy"])
        for one in result["randomized"]
    ]
    print_table(
        "Randomized categories",
        ["column", "changed", "share", "UT1 of its counts (%)", "entropy given the release"],
        changes,
    )
    for one in result["randomized"]:
        counts = [(entry["category"], entry["before"], entry["after"]) for entry in one["counts"]]
        print_table(f"Counts of {one['column']}", ["category", "original", "modified"], counts)
    pairs = [(*entry["columns"], entry["ut1"]) for entry in result["contingencies"]]
    if len(pairs) > 1:
        print_table("Contingency distance UT1 (%)", ["column", "column", "UT1"], pairs)
    for step in result["steps"]:
        _print_transitions(step.get("transitions", {}))


def _print_transitions(transitions: dict[str, Any]) -> None:
    for name, matrices in transitions.items():
        for i, one in enumerate(matrices):
            names = one["categories"]
            if len(names) > MOST_PRINTED:
                continue
            stratum = f", stratum {i + 1}" if len(matrices) > 1 else ""
            rows = [(label, *row) for label, row in zip(names, one["matrix"], strict=True)]
            print_table(f"Transition matrix of {name}{stratum}", ["from", *names], rows)
