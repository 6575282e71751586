r"""Lower bounds of counts with noise that hold for all classes at once.

Which regions are merged depends on the noise, so the bounds must hold for every set of regions that could be merged:
:math:`\binom{n}{m}` sets of *m* of the *n* regions. Sets of *m* share a part :math:`2^{-m}` of the doubt; these parts
sum to less than all of it (union bound).
"""

from __future__ import annotations

from math import lgamma, log

from fedanon.federated.together.merging import LowerBound
from fedanon.federated.together.noise import reach


def lower_bound(n_regions: int, *, scale: float, draws: float, doubt: float, slack: int) -> LowerBound:
    """People in a class at least, by its noisy count.

    Parameters
    ----------
    n_regions : that were counted.
    scale, draws : of the noise, and how many noises are in the count of a region; 0 where counts are exact.
    doubt : probability that any of the bounds is wrong.
    slack : counted people of a class who may not be published.
    """

    def least(total: int, members: int) -> int:
        if not draws:
            return total - slack
        log_sets = lgamma(n_regions + 1) - lgamma(members + 1) - lgamma(n_regions - members + 1)
        return total - slack - reach(scale, members * draws, log(doubt) - members * log(2) - log_sets)

    return least
