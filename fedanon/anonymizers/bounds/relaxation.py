r"""The least squared error from below where groups are large: a semidefinite relaxation with the size rule.

**Relaxation.** Of a partition let :math:`Z_{ij} = 1/|G|` if i and j share the group G, else 0. Then
:math:`SSE = \langle C, Z \rangle` with :math:`C_{ij}` half the squared distance, every row of Z adds up to 1,
:math:`0 \le Z_{ij} \le 1/k`, and Z is positive semidefinite (Peng & Wei 2007 for k-means, without the size rule).

**Any prices bound it.** For any prices y and any positive semidefinite S, with
:math:`M_{ij} = C_{ij} - S_{ij} - (y_i + y_j) / 2`,

.. math:: SSE = \sum_i y_i + \langle S, Z \rangle + \langle M, Z \rangle
    \ge \sum_i y_i + \frac{1}{k} \sum_{ij} \min(0, M_{ij}).

So the bound is computed from y and S alone, whenever the search for them is stopped.

**Search.** Alternating directions (ADMM with three blocks and a second step in y: Sun, Toh & Yang 2015). Rows and
columns are scaled by a power of :math:`t_i`, what the k-th nearest record costs: with :math:`t_i^{-1/4}` the entries of
Z and of its prices have one ratio in dense and in sparse regions, so that one step size suits all; a little more is
quicker. Short steps are quick at first and slow in the end, so they grow.

**Blocks.** Each step takes the eigenvectors of S. Where there are many records, S is zero outside blocks of near ones:
their part of Z alone has to be semidefinite. That is a weaker bound, and as valid.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fedanon.anonymizers.bounds.generation import Listener
from fedanon.types import FloatArray, IndexArray

#: power of the scale, step size, and how far the multipliers follow; chosen on tables that no result is reported of
#: (breast cancer and diabetes of scikit-learn; Student's t, log-normal)
POWER, STEP, FOLLOW = -0.3, 0.06, 1.6
#: records of one block; records per block where there are more; records for which matrices of all pairs are made at all
WHOLE, BLOCK, MOST = 1200, 600, 5000
#: steps between two looks at the bound; the search ends when so many looks have raised it by less than this share
LOOK, PATIENCE, RISE = 5, 12, 2e-4
#: after a few looks, steps grow so much where the bound rose by less than this share, to so many times the first
FIRST, GROWTH, SLOW, LONGEST = 5, 1.5, 4e-3, 20.0
#: no record's scale is below this share of the mean one, so that equal records do no harm
LEAST_SCALE = 1e-3
#: what rounding may have added to sums, as a share of the terms
ROUNDING = 1e-12


def relax(
    points: FloatArray, k: int, deadline: float, listen: Listener = lambda _: True, *, block: int | None = None
) -> float:
    """A lower bound for the squared error of any partition into groups of at least k points.

    Parameters
    ----------
    deadline : of :func:`time.perf_counter`; a step under way is finished.
    listen : is told the bound so far; returns False to stop.
    block : records per block at most; by default all of a small table.
    """
    n = len(points)
    if n > MOST or time.perf_counter() > deadline:
        return 0.0
    points = points - points.mean(axis=0)
    slices, order = cut_blocks(points, block or (n if n <= WHOLE else BLOCK))
    state = _State.begin(points[order], k, slices)
    if state is None:
        return 0.0
    bounds, longest = [state.bound()], LONGEST * state.size
    while listen(max(bounds)) and time.perf_counter() < deadline:
        for _ in range(LOOK):
            state.step()
            if time.perf_counter() > deadline:
                break
        bounds.append(state.bound())
        if len(bounds) > FIRST and max(bounds) <= (1 + SLOW) * max(bounds[:-1]):
            state.size = min(GROWTH * state.size, longest)
        if len(bounds) > PATIENCE and max(bounds) <= (1 + RISE) * max(bounds[:-PATIENCE]):
            break
    return max(bounds)


def cut_blocks(points: FloatArray, most: int) -> tuple[list[slice], IndexArray]:
    """Halve the points across their widest direction until no part is above ``most``; slices of an order of them."""
    parts, done = [np.arange(len(points))], []
    while parts:
        part = parts.pop()
        if len(part) <= most:
            done.append(part)
            continue
        centered = points[part] - points[part].mean(axis=0)
        widest = np.linalg.eigh(centered.T @ centered)[1][:, -1]
        ranked = part[np.argsort(centered @ widest, kind="stable")]
        parts += [ranked[: len(part) // 2], ranked[len(part) // 2 :]]
    ends = np.cumsum([0, *map(len, done)])
    return [slice(a, b) for a, b in pairwise(ends)], np.concatenate(done)


@dataclass
class _State:
    """Everything scaled: ``costs`` are e C e, ``shares`` e^-1 Z e^-1, ``prices`` e y.

    Parameters
    ----------
    squares : of all points, from their mean.
    size : of a step: shares per price.
    psd : S, zero outside the blocks.
    slack : the part of the costs that neither S nor the prices take; positive where no records share a group.
    """

    costs: FloatArray
    scale: FloatArray
    k: int
    blocks: list[slice]
    squares: float
    size: float
    prices: FloatArray
    shares: FloatArray
    psd: FloatArray
    slack: FloatArray
    rounding: float = 0.0

    @classmethod
    def begin(cls, points: FloatArray, k: int, blocks: list[slice]) -> _State | None:
        """Prices of the k-th nearest, no S; None if all records are equal."""
        squares = np.square(points).sum(axis=1)
        costs = points @ -points.T
        costs += 0.5 * squares
        costs += 0.5 * squares[:, None]
        np.maximum(costs, 0.0, out=costs)
        np.fill_diagonal(costs, 0.0)
        reach = np.partition(costs, k - 1, axis=1)[:, k - 1]
        if not reach.any():
            return None
        reach = np.maximum(reach, LEAST_SCALE * reach.mean())
        middle = float(np.median(reach))
        scale = (reach / middle) ** POWER / np.sqrt(middle)
        costs *= np.outer(scale, scale)
        costs = 0.5 * (costs + costs.T)  # to the last digit, or nearly equal records start apart
        prices = reach * scale
        half = np.outer(0.5 * prices, scale)
        slack = costs - half - half.T
        shares = np.where(slack <= 0, np.outer(1 / scale, 1 / (k * scale)), 0.0)
        size = STEP * middle / k
        return cls(costs, scale, k, blocks, float(squares.sum()), size, prices, shares, np.zeros_like(costs), slack)

    def step(self) -> None:
        """Prices, S, prices again, slack; then the shares follow."""
        from fedanon.anonymizers.bounds._relaxation import leave, settle

        self._reprice()
        self.rounding = 0.0
        for block in self.blocks:
            rest = leave(
                self.costs, self.prices, self.slack, self.shares, self.scale, self.size, block.start, block.stop
            )
            self.psd[block, block], error = project(rest)
            self.rounding += error * float((self.scale[block] ** -2).sum()) / self.k
        self._reprice()
        settle(self.costs, self.psd, self.prices, self.slack, self.shares, self.scale, self.size, self.k, FOLLOW)

    def _reprice(self) -> None:
        """The best prices for the other variables, so that the rows of Z add up to 1."""
        from fedanon.anonymizers.bounds._relaxation import sum_rows

        rows = sum_rows(self.costs, self.psd, self.slack, self.shares, self.scale, self.size)
        square = self.scale @ self.scale
        self.prices = (2 * rows - self.scale * (self.scale @ rows / square)) / square

    def bound(self) -> float:
        """What the prices and S prove, less what rounding may have added."""
        from fedanon.anonymizers.bounds._relaxation import sum_negative

        priced = self.prices / self.scale
        short = float(sum_negative(self.costs, self.psd, self.prices, self.scale, self.k))
        rounding = self.rounding + ROUNDING * (self.squares + float(np.abs(priced).sum()) - short)
        return max(0.0, float(priced.sum()) + short - float(rounding))


def project(matrix: FloatArray) -> tuple[FloatArray, float]:
    """The nearest positive semidefinite matrix, and how far below zero rounding may leave its least eigenvalue."""
    matrix = 0.5 * (matrix + matrix.T)
    values, vectors = _negative_part(matrix)
    nearest = matrix - (vectors * values) @ vectors.T
    nearest = 0.5 * (nearest + nearest.T)
    return nearest, len(matrix) * np.finfo(np.float64).eps * float(np.linalg.norm(matrix))


def _negative_part(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues below zero and their vectors; scipy, where it is installed, computes no others."""
    try:
        from scipy.linalg import eigh
    except ImportError:
        values, vectors = np.linalg.eigh(matrix)
        return values[values < 0], vectors[:, values < 0]
    values, vectors = eigh(matrix, subset_by_value=(-np.inf, 0.0), driver="evr", check_finite=False)
    return values, vectors
