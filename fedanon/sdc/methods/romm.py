"""ROMM: random orthogonal matrix masking, without ever forming the matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.fields import parameter
from fedanon.sdc.methods.numeric import NumericPerturbation, Selection
from fedanon.sdc.methods.projections import column_space, nearest_frame, standardized
from fedanon.types import FloatArray, Rng


def romm(x: FloatArray, magnitude: float, rng: Rng) -> FloatArray:
    r"""Y = T X for a random orthogonal T with T 1 = 1.

    Let the columns of U be an orthonormal basis of the centred columns, so that :math:`X = 1 \bar x' + U R`. Any
    orthogonal T with T 1 = 1 takes U to a frame V = T U of orthonormal columns with mean 0, and every such V comes from
    such a T. So V is drawn instead of T, in N P numbers instead of N^2:

    .. math:: V = \mathrm{polar}(U + \lambda G / \sqrt N), \qquad Y = 1 \bar x' + V R

    with G standard normal, centred. With magnitude :math:`\lambda \to \infty`, V is uniform: T has Haar's distribution.
    """
    n = len(x)
    columns = standardized(x)
    basis = column_space(x)
    noise = rng.standard_normal(basis.shape)
    frame = nearest_frame(basis + magnitude / np.sqrt(n) * (noise - noise.mean(axis=0)))
    return columns.back(frame @ (basis.T @ columns.scores))


@ANONYMIZERS.register("romm")
@dataclass(frozen=True, kw_only=True)
class Romm(NumericPerturbation):
    """Random orthogonal matrix masking: Y = T X with T random orthogonal and T 1 = 1; means and covariances are exact.

    Ting, Fienberg & Trottini 2008. They hold to 1e-10 of a column's size; sdcMicro's version moves the means. Time and
    memory are linear in the number of records, also for T from the whole orthogonal group.
    """

    name = "romm"

    magnitude: float = parameter(
        1.0, help="0 leaves the data, 1 is half data half chance, large values all chance", at_least=0
    )

    def rows_needed(self, p: int, q: int) -> int:
        """With no more rows than columns there is nothing to turn."""
        return 1 + p

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """The turned columns."""
        return romm(data.x, self.magnitude, rng)
