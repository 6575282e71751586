"""Attack: what someone tries who has a release, a model or a place in the federation, and how often it works."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon import parameters
from fedanon.attacks.intervals import by_cluster, wilson
from fedanon.attacks.scene import Members, Scene
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

    @classmethod
    def of_tries(
        cls,
        successes: NDArray[Any],
        baseline: float,
        *,
        clusters: NDArray[Any] | None = None,
        details: Mapping[str, float] | None = None,
    ) -> Finding:
        """From the success (or its chance) of every try; ``clusters`` numbers what tries hang together by."""
        n = len(successes)
        if n == 0:
            raise NotApplicableError("The release publishes no row the attack could be tried on.")
        # a sum of chances may round to more than all tries
        rate = min(float(successes.sum()) / n, 1.0)
        interval = wilson(rate * n, n) if clusters is None else by_cluster(successes, clusters)
        return cls(rate, baseline, (min(interval[0], rate), max(interval[1], rate)), n, details or {})

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


def members_of(scene: Scene) -> Members:
    """The members of a scene and people outside; NotApplicableError where there is no method or no one."""
    if scene.anonymizer is None:
        raise NotApplicableError("It needs the method, to make a release that some people are not in.")
    members = scene.members
    assert members is not None
    if members.release.classes.count == 0 or len(members.control) == 0:
        raise NotApplicableError("The table is too small to keep people out of a release.")
    return members
