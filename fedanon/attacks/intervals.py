"""95 % intervals of rates."""

from __future__ import annotations

import math

#: the 97.5 % quantile of the normal distribution
Z = 1.959963984540054


def wilson(successes: float, n: int) -> tuple[float, float]:
    r"""Wilson's score interval of a proportion, (0, 1) without tries.

    .. math:: \frac{1}{1 + z^2/n}\left(p + \frac{z^2}{2n} \pm z\sqrt{\frac{p(1-p)}{n} + \frac{z^2}{4n^2}}\right)

    with :math:`p` the share of successes (Wilson 1927). ``successes`` may be fractional, as expected hits among ties
    are; the interval is then too wide, never too narrow.
    """
    if n == 0:
        return 0.0, 1.0
    share = successes / n
    middle = share + Z * Z / (2 * n)
    reach = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)
