r"""Lower bounds of counts with noise that hold for all classes at once.

**One region.** That it holds *k* people is a hypothesis to be shown, for every region at once. Were all regions short,
each could have a part :math:`1/n` of the doubt; but a region that is large needs none. At least every second short
region has a noisy count below *k*, so that there are about :math:`2 (w + 1)` of them, where *w* is the number of noisy
counts below *k*. The doubt is divided among so many: as the noises of regions are independent, some short region
passes with no more than this doubt (adaptive Bonferroni, Finner & Gontscharuk 2009, Guo 2009, with
:math:`\lambda = 1/2`). What is shown is *k*, not how many there are beyond.

**Merged regions.** Which are merged depends on the noise, so the bounds must hold for every set of regions that could
be: :math:`\binom{n}{m}` sets of *m* of the *n* regions. Sets of *m* share a part :math:`2^{1-m}` of the doubt; these
parts sum to less than all of it (union bound).
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from fedanon.federated.together.merging import LowerBound
from fedanon.federated.together.noise import reach

#: part of the doubt that is about single regions; the rest is about merged ones
SINGLE = 0.7
#: regions that will be short by their noisy counts, before there are any
EXPECTED_SHORT = 50


def lower_bound(
    totals: NDArray[np.int64], k: int, *, scale: float, draws: float, doubt: float, slack: int
) -> LowerBound:
    """People in a class at least, by its noisy count; of a single region no more than k are ever sure.

    Parameters
    ----------
    totals : noisy counts of all regions.
    k : number of people to be shown.
    scale, draws : of the noise, and how many noises are in the count of a region; 0 where counts are exact.
    doubt : probability that any of the bounds is wrong.
    slack : counted people of a class who may not be published.
    """
    if not draws:
        return lambda total, _: total - slack
    single = _single_reach(int((totals < k + slack).sum()), scale, draws, doubt)

    def least(total: int, members: int) -> int:
        if members == 1:
            return min(total - slack - single, k)
        n = len(totals)
        log_sets = lgamma(n + 1) - lgamma(members + 1) - lgamma(n - members + 1)
        log_doubt = log((1 - SINGLE) * doubt) + (1 - members) * log(2) - log_sets
        return total - slack - reach(scale, members * draws, log_doubt)

    return least


def expected_need(k: int, *, scale: float, draws: float, doubt: float, slack: int) -> int:
    """People a region should have so that a count with noise will show k."""
    return k + slack + (_single_reach(EXPECTED_SHORT, scale, draws, doubt) if draws else 0)


def _single_reach(n_short: int, scale: float, draws: float, doubt: float) -> int:
    return reach(scale, draws, log(SINGLE * doubt / (2 * (n_short + 1))))
