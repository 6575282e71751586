"""Group means that follow as records come and go, and what a move costs in SSE.

Taking x out of a group of m records saves m / (m - 1) |x - mean|^2, putting it into one of m adds m / (m + 1)
|x - mean|^2.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def group_means(points, labels, count):
    """Mean and size of every group; records labelled -1 are in none, and empty groups have mean 0."""
    means, sizes = np.zeros((count, points.shape[1])), np.zeros(count, dtype=np.int64)
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            means[labels[i]] += points[i]
            sizes[labels[i]] += 1
    for group in range(count):
        means[group] /= max(sizes[group], 1)
    return means, sizes


@njit(cache=True)
def to_mean(points, i, means, group):
    """Squared distance of a record to the mean of a group."""
    total = 0.0
    for c in range(points.shape[1]):
        difference = points[i, c] - means[group, c]
        total += difference * difference
    return total


@njit(cache=True)
def join(points, i, means, sizes, group):
    """Put a record into a group."""
    sizes[group] += 1
    for c in range(points.shape[1]):
        means[group, c] += (points[i, c] - means[group, c]) / sizes[group]


@njit(cache=True)
def leave(points, i, means, sizes, group):
    """Take a record out of its group."""
    sizes[group] -= 1
    for c in range(points.shape[1]):
        means[group, c] -= (points[i, c] - means[group, c]) / max(sizes[group], 1)


@njit(cache=True)
def cost(points, i, means, sizes, group):
    """What putting record i into a group adds to the SSE; nothing if the group is empty."""
    return to_mean(points, i, means, group) * sizes[group] / (sizes[group] + 1)


@njit(cache=True)
def saving(points, i, means, sizes, group):
    """What taking record i out of its group takes off the SSE; nothing if it is alone."""
    if sizes[group] < 2:
        return 0.0
    return to_mean(points, i, means, group) * sizes[group] / (sizes[group] - 1)


@njit(cache=True)
def nearest_group(points, i, means, sizes, barred):
    """The group with the nearest mean, leaving out empty ones and those where ``barred`` holds; -1 if there is none."""
    best, nearest = np.inf, -1
    for group in range(sizes.shape[0]):
        if sizes[group] > 0 and not barred[group]:
            d = to_mean(points, i, means, group)
            if d < best:
                best, nearest = d, group
    return nearest


@njit(cache=True)
def sse(points, labels, count):
    """Sum of squared distances to the group means."""
    return np.sum(group_sse(points, labels, count))


@njit(cache=True)
def group_sse(points, labels, count):
    """Sum of squared distances to the mean, group by group."""
    means = group_means(points, labels, count)[0]
    own = np.zeros(count)
    for i in range(labels.shape[0]):
        own[labels[i]] += to_mean(points, i, means, labels[i])
    return own
