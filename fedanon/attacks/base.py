"""Attack: what someone tries who has a release, a model or a place in the federation, and how often it works."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from fedanon import parameters
from fedanon.attacks.scene import Scene
from fedanon.errors import FedanonError


class NotApplicableError(FedanonError):
    """The attack cannot be tried here; the message says what it would need."""


@dataclass(frozen=True)
class Finding:
    """What an attack found.

    Parameters
    ----------
    rate : share of the tries that succeed.
    baseline : share that would succeed without what is attacked, by the best guess.
    interval : 95 % interval of the rate.
    n : number of tries.
    details : further numbers by name.
    """

    rate: float
    baseline: float
    interval: tuple[float, float]
    n: int
    details: Mapping[str, float] = field(default_factory=dict)

    @property
    def lift(self) -> float | None:
        """How many times as often as by guessing; None where a guess never succeeds."""
        return self.rate / self.baseline if self.baseline > 0 else None


@dataclass(frozen=True)
class AttackResult:
    """A finding with what it takes to find it again."""

    attack: str
    title: str
    rate: float
    baseline: float
    lift: float | None
    low: float
    high: float
    n: int
    seconds: float
    seed: int
    details: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Attack(ABC):
    """Base of all attacks; parameters are keyword-only dataclass fields."""

    #: its name for people
    title: ClassVar[str]
    #: what it means if the attack succeeds, one plain sentence without numbers
    meaning: ClassVar[str]
    #: what is attacked
    target: ClassVar[Literal["release", "model", "federation"]]

    def __post_init__(self) -> None:
        parameters.check(self)

    @abstractmethod
    def run(self, scene: Scene, rng: np.random.Generator) -> Finding:
        """Try it; raise NotApplicableError where the scene lacks what it needs."""
