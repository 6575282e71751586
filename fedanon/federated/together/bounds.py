r"""Lower bounds of counts with noise that hold for all classes at once.

**Nodes.** That a region, or all parts of a region that was cut, hold *k* people is a hypothesis to be shown for many at
once. Were all *n* nodes with the same number of leaves short, each could have a part :math:`1/n` of their doubt; but a
node that is large needs none. At least every second short node has a noisy count below *k*, so that there are about
:math:`2 (w + 1)` of them, where *w* is the number of noisy counts below *k*. The doubt is divided among so many: nodes
with the same number of leaves share none, so that their noises are independent, and some short one passes with no more
than this doubt (adaptive Bonferroni, Finner & Gontscharuk 2009, Guo 2009, with :math:`\lambda = 1/2`). Nodes of *m*
leaves have a part :math:`1 / (m (m + 1))` of the doubt; these parts sum to 1. What is shown is *k*, not how many people
there are beyond.

**Any merged regions.** Which are merged depends on the noise, so the bounds must hold for every set of regions that
could be: :math:`\binom{n}{m}` sets of *m* of the *n* regions. Sets of *m* share a part :math:`2^{1-m}` of the rest of
the doubt; these parts sum to less than all of it (union bound).
"""

from __future__ import annotations

from math import lgamma, log
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from fedanon.federated.together.merging import LowerBound
from fedanon.federated.together.noise import reach
from fedanon.federated.together.regions import LEAF, RegionTree, Router

Counts = NDArray[np.int64]
#: part of the doubt that is about nodes; the rest is about any merged regions
NODES = 0.95
#: regions that will be short by their noisy counts, before there are any
EXPECTED_SHORT = 50


class FinalNoise(TypedDict):
    """What the final count does not tell.

    scale, draws : of the noise, and how many noises are in the count of a region; 0 where counts are exact.
    doubt : probability that any of the bounds is wrong.
    slack : counted people of a class who may not be published.
    """

    scale: float
    draws: float
    doubt: float
    slack: int


def lower_bound(totals: Counts, k: int, **noise: Unpack[FinalNoise]) -> LowerBound:
    """People in a class at least, by its noisy count; of a single region no more than k are ever sure.

    ``totals`` are the noisy counts of all regions.
    """
    n, slack, draws = len(totals), noise["slack"], noise["draws"]
    if not draws:
        return lambda total, _: total - slack
    single = _reach_of_nodes(1, int((totals < k + slack).sum()), noise)

    def least(total: int, members: int) -> int:
        if members == 1:
            return min(total - slack - single, k)
        log_sets = lgamma(n + 1) - lgamma(members + 1) - lgamma(n - members + 1)
        log_doubt = log((1 - NODES) * noise["doubt"]) + (1 - members) * log(2) - log_sets
        return total - slack - reach(noise["scale"], members * draws, log_doubt)

    return least


def sure_nodes(router: Router, totals: Counts, k: int, **noise: Unpack[FinalNoise]) -> list[NDArray[np.int64]]:
    """Regions that were cut and are sure to hold k people though none of their parts is: positions of their leaves."""
    if not noise["draws"] or not isinstance(router, RegionTree):
        return []
    sums, n_leaves = router.sums(totals), router.sums(np.ones_like(totals))
    least = k + noise["slack"]
    sure = np.zeros(len(router), dtype=bool)
    for size in np.unique(n_leaves).tolist():
        alike = n_leaves == size
        needed = least + _reach_of_nodes(size, int((sums[alike] < least).sum()), noise)
        sure[alike] = sums[alike] >= needed
    inside = sure.copy()  # sure, or with a sure part
    found = []
    for region in np.flatnonzero(router.axis != LEAF)[::-1].tolist():
        parts = inside[router.left[region]] or inside[router.left[region] + 1]
        if sure[region] and not parts:
            found.append(router.leaves_below(region))
        inside[region] |= parts
    return [np.searchsorted(router.leaves, leaves) for leaves in found]


def expected_need(k: int, **noise: Unpack[FinalNoise]) -> int:
    """People a region should have so that a count with noise will show k."""
    return k + noise["slack"] + (_reach_of_nodes(1, EXPECTED_SHORT, noise) if noise["draws"] else 0)


def _reach_of_nodes(n_leaves: int, n_short: int, noise: FinalNoise) -> int:
    part = NODES * noise["doubt"] / (n_leaves * (n_leaves + 1))
    return reach(noise["scale"], n_leaves * noise["draws"], log(part / (2 * (n_short + 1))))
