r"""Lower bounds: how many people a noisy count proves, for all classes at once.

The bounds share one failure probability, the chance that any of them is wrong.

**Regions and pairs.** That a region holds *k* people is a hypothesis, to be tested for many regions at once. If all *n*
regions were short, each could have a part :math:`1/n` of the failure probability; but a region that is large needs
none. Of the short ones, at most a part :math:`\lambda` has a noisy count so large that chance alone would give it with
probability :math:`\lambda`; so there are about :math:`(w + 1) / (1 - \lambda)` of them, where *w* is the number of
smaller counts. The failure probability is divided among so many: the noises of different regions are independent, and
the chance that any short region passes stays within it (adaptive Bonferroni, Finner & Gontscharuk 2009, Guo 2009).
Neighbors are also tested in pairs: a few matchings of the regions, in each of which no region is in two pairs, share
the part for pairs. Which regions are matched depends on their boxes, not on their counts. What is proved is *k*, not
how many people there are beyond it.

**Any merged regions.** Which regions are merged depends on the noise, so the bounds must hold for every set of regions
that could be: :math:`\binom{n}{m}` sets of *m* of the *n* regions. Sets of *m* share a part :math:`2^{1-m}` of the rest
of the failure probability; these parts sum to less than all of it (union bound).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log
from typing import TypedDict, Unpack

import numpy as np

from fedanon.joint.merging import LowerBound
from fedanon.joint.noise import upper_quantile
from fedanon.types import CountArray, IndexArray

#: parts of the failure probability for single regions and for pairs; the rest is for any merged regions
SINGLE, PAIRED = 0.5, 0.45
#: how rarely a short region has a count that is not regarded as small; with 1/2 the limit would be k
LAMBDA = 0.15
#: number of regions expected to have short noisy counts, before there are any counts
EXPECTED_SHORT = 100


class FinalNoise(TypedDict):
    """The uncertainty of the final count.

    scale, draws : of the noise, and the number of noises in the count of a region; 0 where counts are exact.
    failure_probability : that any of the bounds is wrong.
    slack : people of a class who may have been counted and are not published.
    """

    scale: float
    draws: float
    failure_probability: float
    slack: int


def make_lower_bound(totals: CountArray, k: int, **noise: Unpack[FinalNoise]) -> LowerBound:
    """The function that bounds the people in a class by its noisy count; a single region never proves more than k.

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
        log_tail = log((1 - SINGLE - PAIRED) * noise["failure_probability"]) + (1 - members) * log(2) - log_sets
        return total - slack - upper_quantile(noise["scale"], members * draws, log_tail)

    return least


def confirmed_pairs(
    matchings: Sequence[IndexArray], totals: CountArray, k: int, **noise: Unpack[FinalNoise]
) -> IndexArray:
    """Pairs of regions that are sure to hold k people between them, those of the first matching first."""
    found = [np.zeros((0, 2), dtype=np.int64)]
    for pairs in matchings if noise["draws"] else ():
        sums = totals[pairs].sum(axis=1)
        found.append(pairs[sums >= _least_count(sums, k, 2, PAIRED / len(matchings), noise)])
    return np.concatenate(found)


def required_size(k: int, **noise: Unpack[FinalNoise]) -> int:
    """People that a region should have so that its final count will prove k."""
    if not noise["draws"]:
        return k + noise["slack"]
    return _least_count(np.full(EXPECTED_SHORT, -1), k, 1, SINGLE, noise)


def _least_count(counts: CountArray, k: int, n_regions: int, part: float, noise: FinalNoise) -> int:
    """The noisy count of ``n_regions`` regions that proves k people, where all of ``counts`` are tested."""
    least, scale, draws = k + noise["slack"], noise["scale"], n_regions * noise["draws"]
    n_small = int((counts < least + upper_quantile(scale, draws, log(LAMBDA))).sum())
    log_tail = log(part * noise["failure_probability"] * (1 - LAMBDA) / (n_small + 1))
    return least + upper_quantile(scale, draws, log_tail)
