"""Suites: several attacks on one context, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, AttackResult, RecordChances
from fedanon.attacks.context import AttackContext
from fedanon.attacks.record_risk import RecordRisk, summarize_records
from fedanon.errors import ConfigError, FedanonError
from fedanon.fields import build, listed

#: names of suites: every attack, or every attack on one target
SUITES = ("all", "release", "model", "federation")


@dataclass(frozen=True)
class AttackReport:
    """The results of a suite, and why the other attacks were not tried.

    Of the attacks that can tell, ``records`` holds the chance of every record, and ``record_risks`` sums it up.
    """

    results: list[AttackResult] = field(default_factory=list)
    not_tried: dict[str, str] = field(default_factory=dict)
    records: dict[str, RecordChances] = field(default_factory=dict)
    record_risks: list[RecordRisk] = field(default_factory=list)


def run_attacks(
    context: AttackContext, attacks: Sequence[tuple[str, Attack]], on_attack: Callable[[str], None] = lambda _: None
) -> AttackReport:
    """Run every attack; ``on_attack`` is called with its name first. One that cannot be tried stops no other."""
    report = AttackReport()
    for name, attack in attacks:
        on_attack(name)
        try:
            _run_attack(name, attack, context, report)
        except FedanonError as reason:
            report.not_tried[name] = str(reason)
    return report


def _run_attack(name: str, attack: Attack, context: AttackContext, report: AttackReport) -> None:
    begun = time.perf_counter()
    found = attack.run(context, context.rng(name))
    result = AttackResult(
        attack=name,
        title=attack.title,
        rate=found.rate,
        baseline=found.baseline,
        lift=found.lift,
        low=found.interval[0],
        high=found.interval[1],
        n=found.n,
        seconds=round(time.perf_counter() - begun, 3),
        seed=context.seed,
        details=dict(found.details),
    )
    report.results.append(result)
    if found.records is not None:
        report.records[name] = found.records
        report.record_risks.append(summarize_records(name, context.table, found.records))


def select_attacks(
    names: str = "all", settings: Mapping[str, Mapping[str, Any]] | None = None
) -> list[tuple[str, Attack]]:
    """Make the attacks named, separated by commas; `all`, `release`, `model` and `federation` name all on that target.

    ``settings`` holds parameters by attack and name.
    """
    chosen = dict.fromkeys(name for part in listed(names) for name in _names_in(part))
    given = settings or {}
    unused = [name for name in given if name not in chosen]
    if unused:
        raise ConfigError(f"Parameters are given for attacks that are not in the suite: {', '.join(unused)}.")
    return [(name, build(ATTACKS[name], given.get(name, {}))) for name in chosen]


def _names_in(part: str) -> list[str]:
    """List the attacks of a suite, or the single attack of that name."""
    if part in SUITES:
        return [name for name, attack in ATTACKS.items() if part in ("all", attack.target)]
    return [part]
