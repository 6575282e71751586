"""Attack: what someone tries who holds a release, a model or a place in the federation, and how often it succeeds.

An attack runs on an :class:`~fedanon.attacks.context.AttackContext` and returns a :class:`Finding`: the rate of
success, its 95 % interval, and the rate of someone who lacks what is attacked. A rate means nothing without that
baseline.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedanon.attacks.context import AttackContext, Members
from fedanon.errors import NotApplicableError
from fedanon.fields import check_fields
from fedanon.types import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class RecordChances:
    """How often an attack succeeds with each record it was tried on; records are named by their rows alone.

    Whoever picks the records that were hit most often and reports how often picks luck as well. So there are two counts
    of the same: ``ranks`` to pick by, ``chances`` to report. They are equal where chances are exact.

    Parameters
    ----------
    rows : of the table, each once, in ascending order.
    ranks : high where a record is exposed.
    chances : of success, counted apart from the ranks.
    guesses : the same without what is attacked.
    clusters : records with the same number succeed or fail together.
    """

    rows: IndexArray
    ranks: FloatArray
    chances: FloatArray
    guesses: FloatArray
    clusters: IndexArray


@dataclass(frozen=True)
class Finding:
    """The outcome of an attack.

    Parameters
    ----------
    rate : share of the tries that succeed.
    baseline : share that would succeed without what is attacked, by the best guess.
    interval : 95 % interval of the rate.
    n : number of tries.
    details : further numbers by name.
    records : the same by record, where the attack can tell.
    """

    rate: float
    baseline: float
    interval: tuple[float, float]
    n: int
    details: Mapping[str, float] = field(default_factory=dict)
    records: RecordChances | None = field(default=None, compare=False)

    @classmethod
    def from_tries(
        cls,
        successes: NDArray[Any],
        baseline: float,
        *,
        clusters: NDArray[Any] | None = None,
        details: Mapping[str, float] | None = None,
        records: RecordChances | None = None,
    ) -> Finding:
        """From the success (or its chance) of every try; tries with the same number in ``clusters`` are dependent."""
        n = len(successes)
        if n == 0:
            raise NotApplicableError("The release publishes no row the attack could be tried on.")
        # a sum of chances may round to more than the number of tries
        rate = min(float(successes.sum()) / n, 1.0)
        interval = wilson_interval(rate * n, n) if clusters is None else interval_by_cluster(successes, clusters)
        return cls(rate, baseline, (min(interval[0], rate), max(interval[1], rate)), n, details or {}, records)

    @property
    def lift(self) -> float | None:
        """Rate over baseline; None where a guess never succeeds."""
        return self.rate / self.baseline if self.baseline > 0 else None


@dataclass(frozen=True)
class AttackResult:
    """A finding together with what it takes to reproduce it."""

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
        """As a dictionary that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Attack(ABC):
    """Base class of all attacks; parameters are keyword-only dataclass fields."""

    #: name shown to people
    title: ClassVar[str]
    #: what a success means: one plain sentence without numbers
    meaning: ClassVar[str]
    #: what is attacked
    target: ClassVar[Literal["release", "model", "federation"]]

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Run the attack; raise NotApplicableError where the context lacks what it needs."""


def require_members(context: AttackContext) -> Members:
    """Return the context's members and control; raise NotApplicableError without a method or without people."""
    if context.anonymizer is None:
        raise NotApplicableError("It needs the method, to make a release that some people are not in.")
    members = context.members
    assert members is not None
    if members.release.classes.count == 0 or len(members.control) == 0:
        raise NotApplicableError("The table is too small to keep people out of a release.")
    return members


#: the 97.5 % quantile of the normal distribution
Z = 1.959963984540054


def wilson_interval(successes: float, n: float) -> tuple[float, float]:
    r"""Compute Wilson's 95 % score interval of a proportion; (0, 1) without tries.

    .. math:: \frac{1}{1 + z^2/n}\left(p + \frac{z^2}{2n} \pm z\sqrt{\frac{p(1-p)}{n} + \frac{z^2}{4n^2}}\right)

    with :math:`p` the share of successes (Wilson 1927). ``successes`` may be fractional, as expected hits among ties
    are; the interval is then too wide, never too narrow.
    """
    if n == 0:
        return 0.0, 1.0
    share = successes / n
    middle = share + Z * Z / (2 * n)
    reach = Z * math.sqrt(max(share * (1 - share), 0.0) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    # rounding must not push the share itself outside
    return max(0.0, min(share, (middle - reach) / scale)), min(1.0, max(share, (middle + reach) / scale))


def clustered_interval(successes: NDArray[Any], tries: NDArray[Any]) -> tuple[float, float]:
    r"""Compute Wilson's interval of dependent tries, such as those on the people of one equivalence class.

    The number of tries is replaced by the number of independent ones that would vary as much,

    .. math:: n^* = \frac{p(1-p)}{v}, \qquad v = \frac{C}{C-1} \frac{\sum_c (h_c - p m_c)^2}{n^2}

    with :math:`h_c` successes of the :math:`m_c` tries in cluster c of C: Kish's effective sample size by the variance
    of a ratio of cluster totals (Korn & Graubard 1998). It is never more than the tries there were; where all or none
    succeed, every cluster counts once.

    Parameters
    ----------
    successes, tries : per cluster; successes may be fractional.
    """
    tried = tries > 0
    hits, sizes = np.asarray(successes, dtype=np.float64)[tried], np.asarray(tries, dtype=np.float64)[tried]
    n, clusters = float(sizes.sum()), len(sizes)
    if clusters < 2:
        return wilson_interval(float(hits.sum()) / n, 1.0) if clusters else wilson_interval(0.0, 0.0)
    share = min(max(float(hits.sum()) / n, 0.0), 1.0)
    spread = share * (1 - share)
    effective = float(clusters)
    if spread > 0:
        variance = clusters / (clusters - 1) * float(np.square(hits - share * sizes).sum()) / n**2
        effective = n if variance * n <= spread else spread / variance
    return wilson_interval(share * effective, effective)


def interval_by_cluster(successes: NDArray[Any], labels: NDArray[Any]) -> tuple[float, float]:
    """Compute :func:`clustered_interval` from the success of every try and the number of its cluster."""
    return clustered_interval(np.bincount(labels, weights=successes), np.bincount(labels))
