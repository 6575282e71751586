"""A suite of attacks on one scene."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, AttackResult, NotApplicableError
from fedanon.attacks.scene import Scene


@dataclass(frozen=True)
class Report:
    """Results of a suite, and why the other attacks were not tried."""

    results: list[AttackResult]
    not_tried: dict[str, str]


def attack_scene(
    scene: Scene, attacks: Sequence[tuple[str, Attack]], on_attack: Callable[[str], None] = lambda _: None
) -> Report:
    """Try every attack; ``on_attack`` is called with the name before each."""
    results: list[AttackResult] = []
    not_tried: dict[str, str] = {}
    for name, attack in attacks:
        on_attack(name)
        try:
            results.append(_tried(name, attack, scene))
        except NotApplicableError as reason:
            not_tried[name] = str(reason)
    return Report(results, not_tried)


def _tried(name: str, attack: Attack, scene: Scene) -> AttackResult:
    begun = time.perf_counter()
    found = attack.run(scene, scene.rng(name))
    return AttackResult(
        attack=name,
        title=attack.title,
        rate=found.rate,
        baseline=found.baseline,
        lift=found.lift,
        low=found.interval[0],
        high=found.interval[1],
        n=found.n,
        seconds=round(time.perf_counter() - begun, 3),
        seed=scene.seed,
        details=dict(found.details),
    )


def suite(names: str = "all") -> list[tuple[str, Attack]]:
    """Attacks by name, with commas; `all` of them, or all on a `release`, a `model` or a `federation`."""
    if names in ("all", "release", "model", "federation"):
        return [(name, attack()) for name, attack in ATTACKS.items() if names in ("all", attack.target)]
    return [(name, ATTACKS[name]()) for name in (part.strip() for part in names.split(",")) if name]
