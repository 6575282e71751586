"""95 % intervals of rates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: the 97.5 % quantile of the normal distribution
Z = 1.959963984540054


def wilson(successes: float, n: float) -> tuple[float, float]:
    r"""Wilson's score interval of a proportion, (0, 1) without tries.

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
    # rounding must not put the share itself outside
    return max(0.0, min(share, (middle - reach) / scale)), min(1.0, max(share, (middle + reach) / scale))


def clustered(successes: NDArray[Any], tries: NDArray[Any]) -> tuple[float, float]:
    r"""Wilson's interval where tries hang together, as those on the people of one equivalence class do.

    The number of tries is replaced by the number of independent ones that would vary as much,

    .. math:: n^* = \frac{p(1-p)}{v}, \qquad v = \frac{C}{C-1} \frac{\sum_c (h_c - p m_c)^2}{n^2}

    with :math:`h_c` successes of the :math:`m_c` tries in cluster c of C: Kish's effective sample size by the variance
    of a ratio of cluster totals (Korn & Graubard 1998). It is never more than the tries there were; where all or none
    succeed, every cluster counts once.

    Parameters
    ----------
    successes, tries : of every cluster; successes may be fractional.
    """
    tried = tries > 0
    hits, sizes = np.asarray(successes, dtype=np.float64)[tried], np.asarray(tries, dtype=np.float64)[tried]
    n, clusters = float(sizes.sum()), len(sizes)
    if clusters < 2:
        return wilson(float(hits.sum()) / n, 1.0) if clusters else wilson(0.0, 0.0)
    share = min(max(float(hits.sum()) / n, 0.0), 1.0)
    spread = share * (1 - share)
    effective = float(clusters)
    if spread > 0:
        variance = clusters / (clusters - 1) * float(np.square(hits - share * sizes).sum()) / n**2
        effective = n if variance * n <= spread else spread / variance
    return wilson(share * effective, effective)


def by_cluster(successes: NDArray[Any], labels: NDArray[Any]) -> tuple[float, float]:
    """:func:`clustered` from the success of every try and the number of its cluster."""
    return clustered(np.bincount(labels, weights=successes), np.bincount(labels))
