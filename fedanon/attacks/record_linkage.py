"""Record linkage: an attacker who holds the originals matches each released record to the nearest of them.

Knows: the exact quasi-identifiers of everyone. Does: links every released record to an original at the smallest
distance, drawn where several are. Judged by: the share of records that are linked to their own original.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import Attack, Finding, RecordChances, clustered_interval
from fedanon.attacks.context import AttackContext
from fedanon.errors import NotApplicableError
from fedanon.metrics.distances import record_distances
from fedanon.metrics.linkage import Links, link


@ATTACKS.register("record_linkage")
@dataclass(frozen=True, kw_only=True)
class RecordLinkage(Attack):
    r"""Share of the released records that are linked to their own original.

    .. math:: \frac1n \sum_r \frac{[o(r) \in N(r)]}{|N(r)|}

    with :math:`N(r)` the originals nearest to the released record (:func:`fedanon.metrics.linkage.linkage_expected`);
    one of them is drawn. Baseline: an original drawn blindly, 1 / N of all N originals.
    """

    title = "Record linkage"
    meaning = "Someone who knows the quasi-identifiers of everyone finds the released record of a person."
    target = "release"

    def run(self, context: AttackContext, rng: np.random.Generator) -> Finding:
        """Link every released record."""
        sizes = context.release.classes.sizes
        n = int(sizes.sum())
        if n == 0:
            raise NotApplicableError("The release publishes no row.")
        if context.release.has_pseudonyms:
            raise NotApplicableError("Pseudonyms link rows: linking them one by one would understate the risk.")
        links = link(context.table, context.release, record_distances)
        hits = links.own / links.near
        details = {
            "linked_records": float(hits.sum()),
            "linked_records_first_of_ties": links.first_hits,
            "highest_chance_of_a_record": float((hits / sizes).max()),
        }
        rate, guess = float(hits.sum()) / n, 1 / len(context.table)
        return Finding(rate, guess, clustered_interval(hits, sizes), n, details, _by_record(context, links, guess))


def _by_record(context: AttackContext, links: Links, guess: float) -> RecordChances:
    """The chance that, of the released records linked to a person, the one picked is theirs.

    All records of a class look alike, so whoever is linked with one of them is linked with all: one in so many.
    """
    classes = context.release.classes
    rows = np.flatnonzero(~classes.suppressed)
    clusters = classes.labels[rows].astype(np.int64)
    chances = links.own_is_near / classes.sizes[clusters]
    return RecordChances(rows, chances, chances, np.full(len(rows), guess), clusters)
