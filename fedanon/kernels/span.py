"""Span of a cell and enlargement of a group, the inner loops of everything that measures loss."""

from __future__ import annotations

from numba import njit


@njit(cache=True, inline="always")
def span(spans, column, low, high):
    """Loss of the smallest cell of ``column`` that covers the positions low..high."""
    scale = spans.scale[column]
    if scale > 0.0:
        return min((high - low) * scale, spans.cap)
    first = int(low)
    length = int(high) - first
    if length == 0:
        return 0.0
    level = 0
    while (2 << level) <= length:
        level += 1
    row = spans.offset[column] + level * spans.width[column]
    return max(spans.maxima[row + first], spans.maxima[row + first + length - (1 << level)])


@njit(cache=True)
def extent_loss(spans, low, high):
    """Sum of the spans of all columns of the cell low..high."""
    total = 0.0
    for c in range(low.shape[0]):
        total += span(spans, c, low[c], high[c])
    return total
