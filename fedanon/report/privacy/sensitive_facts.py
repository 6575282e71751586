"""What equivalence classes give away of a sensitive column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.privacy.counts import Counter, Counts
from fedanon.privacy.entropy_l_diversity import entropies
from fedanon.privacy.t_closeness import TCloseness
from fedanon.report.privacy.evidence import Evidence


@dataclass(frozen=True)
class SensitiveFacts:
    """The worst class of a release, for one sensitive column.

    Parameters
    ----------
    column : its name.
    l : least number of different values.
    entropy_l : least exponential of the entropy.
    alpha : largest share of the people of a class who have the same value.
    t : largest distance to the distribution of the whole release; NaN where it has no order that could be measured.
    homogeneous : number of classes in which all have the same value.
    exposed : share of the people who are in them.
    """

    column: str
    l: int  # noqa: E741  the model's own name
    entropy_l: float
    alpha: float
    t: float
    homogeneous: int
    exposed: float


def sensitive_facts(evidence: Evidence) -> list[SensitiveFacts]:
    """Of every sensitive column, in the order of the schema; nothing where nothing is published."""
    if evidence.released.classes.count == 0:
        return []
    return [_facts(evidence, name) for name in evidence.schema.sensitive]


def _facts(evidence: Evidence, name: str) -> SensitiveFacts:
    counter = Counter(evidence.rows, name, ~evidence.released.suppressed)
    parts = [_worst(counts, name) for counts in counter.chunks(evidence.released.classes)]
    distinct, spread, share, distance, alike, exposed = (np.array(column) for column in zip(*parts, strict=True))
    return SensitiveFacts(
        column=name,
        l=int(distinct.min()),
        entropy_l=float(np.exp(spread.min())),
        alpha=float(share.max()),
        t=float(distance.max()),
        homogeneous=int(alike.sum()),
        exposed=float(exposed.sum() / evidence.people.sum()),
    )


def _worst(counts: Counts, name: str) -> tuple[float, ...]:
    different = (counts.by_class > 0).sum(axis=1)
    alike = different == 1
    return (
        different.min(),
        entropies(counts.distributions).min(),
        counts.shares.max(),
        TCloseness(column=name, t=1.0).distances(counts).max(),
        alike.sum(),
        counts.people[alike].sum(),
    )
