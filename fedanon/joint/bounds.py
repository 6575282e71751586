"""Lower bounds of counts with noise that hold for all classes at once.

**Regions and pairs.** That a region holds *k* people is a hypothesis to be shown for many at once. Were all *n* regions
short, each could have a part :math:`1/n` of the doubt; but a region that is large needs none. Of those that are short
no more than a part :math:`\\lambda` has a noisy count that would be as large by chance only as rarely as
:math:`\\lambda`, so that there are about :math:`(w + 1) / (1 - \\lambda)` of them, where *w* is the number of smaller
counts. The doubt is divided among so many: the noises of different regions are independent, and some short one passes
with no more than this doubt (adaptive Bonferroni, Finner & Gontscharuk 2009, Guo 2009). Neighbours are tested in pairs
as well: some matchings of the regions, in each of which no region is in two pairs, share the doubt about pairs. Which
regions are matched follows from their boxes, not from their counts. What is shown is *k*, not how many people there are
beyond.

**Any merged regions.** Which are merged depends on the noise, so the bounds must hold for every set of regions that
could be: :math:`\binom{n}{m}` sets of *m* of the *n* regions. Sets of *m* share a part :math:`2^{1-m}` of the rest of
the doubt; these parts sum to less than all of it (union bound).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log
from typing import TypedDict, Unpack

import numpy as np

from fedanon.joint.merging import LowerBound, Pairs
from fedanon.joint.noise import reach
from fedanon.types import CountArray

#: parts of the doubt that are about single regions and about pairs; the rest is about any merged regions
SINGLE, PAIRED = 0.5, 0.45
#: how rarely a short region has a count that is not taken for small; 1/2 would be k
LAMBDA = 0.15
#: regions that will be short by their noisy counts, before there are any
EXPECTED_SHORT = 100


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


def lower_bound(totals: CountArray, k: int, **noise: Unpack[FinalNoise]) -> LowerBound:
    """People in a class at least, by its noisy count; of a single region no more than k are ever sure.

    ``totals`` are the noisy counts of all regions.
    """
    n, slack, draws = len(totals), noise["slack"], noise["draws"]
    if not draws:
        return lambda total, _: total - slack
    single = _least_count(totals, k, 1, SINGLE, noise)

    def least(total: int, members: int) -> int:
        if members == 1:
            return min(total - single + k, k)
        log_sets = lgamma(n + 1) - lgamma(members + 1) - lgamma(n - members + 1)
        log_doubt = log((1 - SINGLE - PAIRED) * noise["doubt"]) + (1 - members) * log(2) - log_sets
        return total - slack - reach(noise["scale"], members * draws, log_doubt)

    return least


def sure_pairs(matchings: Sequence[Pairs], totals: CountArray, k: int, **noise: Unpack[FinalNoise]) -> Pairs:
    """Pairs of regions that are sure to hold k people together, those of the first matchings first."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for pairs in matchings if noise["draws"] else ():
        sums = totals[pairs].sum(axis=1)
        found.append(pairs[sums >= _least_count(sums, k, 2, PAIRED / len(matchings), noise)])
    return np.concatenate(found)


def expected_need(k: int, **noise: Unpack[FinalNoise]) -> int:
    """People a region should have so that a count with noise will show k."""
    if not noise["draws"]:
        return k + noise["slack"]
    return _least_count(np.full(EXPECTED_SHORT, -1), k, 1, SINGLE, noise)


def _least_count(counts: CountArray, k: int, n_regions: int, part: float, noise: FinalNoise) -> int:
    """The noisy count of ``n_regions`` regions that shows k people, among counts of which this is tested for all."""
    least, scale, draws = k + noise["slack"], noise["scale"], n_regions * noise["draws"]
    n_small = int((counts < least + reach(scale, draws, log(LAMBDA))).sum())
    return least + reach(scale, draws, log(part * noise["doubt"] * (1 - LAMBDA) / (n_small + 1)))
