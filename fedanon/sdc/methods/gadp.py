"""GADP, IPSO and EGADP: the columns X drawn anew given the columns S, so that linear models come out alike.

All three publish Y = b0 + B S + noise with the regression of X on S; they differ in the noise. GADP draws it from the
normal distribution, so moments hold in expectation. IPSO turns and stretches what it drew, so that moments hold
exactly. EGADP also makes it orthogonal to X: then Y tells nothing about X that S does not tell already.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.sdc.methods.numeric import ConditionalPerturbation, Selection
from fedanon.sdc.methods.projections import column_space, random_frame, regression, root, standardized
from fedanon.types import FloatArray, Rng


def gadp(x: FloatArray, s: FloatArray, rng: Rng) -> FloatArray:
    r""":math:`Y = b_0 + B S + e`, :math:`e \sim N(0, \Sigma_{xx} - \Sigma_{xs} \Sigma_{ss}^{-1} \Sigma_{sx})`."""
    columns = standardized(x)
    fitted, residuals = regression(columns.scores, s)
    noise = rng.standard_normal(x.shape) @ root(residuals.T @ residuals / (len(x) - 1))
    return columns.back(fitted + noise)


def exact_gadp(x: FloatArray, s: FloatArray, apart_from: FloatArray, rng: Rng) -> FloatArray:
    r""":math:`Y = b_0 + B S + C`, :math:`C = B \hat\Sigma_B^{-1/2} \hat\Sigma_\epsilon^{+1/2}`, exact in the sample.

    The columns of :math:`B \hat\Sigma_B^{-1/2}` are, up to their length, a random frame: residuals of normal numbers
    regressed on ``apart_from``, made orthonormal. That matrix must hold the columns ``s``.
    """
    columns = standardized(x)
    fitted, residuals = regression(columns.scores, s)
    frame = random_frame(len(x), x.shape[1], column_space(apart_from), rng)
    return columns.back(fitted + frame @ root(residuals.T @ residuals))


def ipso(x: FloatArray, s: FloatArray, rng: Rng) -> FloatArray:
    """Exact moments by noise that is orthogonal to S."""
    return exact_gadp(x, s, s, rng)


def egadp(x: FloatArray, s: FloatArray, rng: Rng) -> FloatArray:
    """Exact moments by noise that is orthogonal to S and to X."""
    return exact_gadp(x, s, np.column_stack([s, x]), rng)


@ANONYMIZERS.register("gadp")
@dataclass(frozen=True, kw_only=True)
class Gadp(ConditionalPerturbation):
    r"""General additive data perturbation: the columns X are drawn anew from a linear model given the columns S.

    :math:`Y = b_0 + B S + e`, :math:`B = \Sigma_{xs} \Sigma_{ss}^{-1}`, :math:`e \sim N(0, \Sigma_{xx} - B
    \Sigma_{sx})` (Muralidhar, Parsa & Sarathy 1999; Morais 2022, eq. 4.7). Means, covariances and those with S are kept
    in expectation. Without given columns Y is a normal draw with the mean and covariance of X. Collinear S are taken by
    the pseudo-inverse.
    """

    name = "gadp"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """The draw."""
        data.refuse_determined()
        return gadp(data.x, data.s, rng)


@ANONYMIZERS.register("ipso")
@dataclass(frozen=True, kw_only=True)
class Ipso(ConditionalPerturbation):
    r"""Information preserving statistical obfuscation: GADP with exact means, cov(Y) and cov(Y, S) (Burridge 2003).

    The noise is made of residuals of normal numbers regressed on S. They may by chance correlate with X, so
    :math:`R^2_{X|S,Y} \ge R^2_{X|S}`: a reader of Y learns a little about X beyond what S tells, most in small tables.
    ``egadp`` takes that away.
    """

    name = "ipso"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """The draw, with exact moments."""
        data.refuse_determined()
        return ipso(data.x, data.s, rng)


@ANONYMIZERS.register("egadp")
@dataclass(frozen=True, kw_only=True)
class Egadp(ConditionalPerturbation):
    r"""Exact GADP: as ``ipso``, with noise orthogonal to X as well, so that Y adds nothing to what S tells about X.

    Residuals B of normal numbers regressed on (S, X); :math:`C = B \hat\Sigma_B^{-1/2} \hat\Sigma_\epsilon^{+1/2}`;
    :math:`Y = b_0 + B_1 S + C` (Muralidhar & Sarathy 2008; Morais 2022, section 4.2.2, whose exponent of
    :math:`\hat\Sigma_\epsilon` has the wrong sign). Means, cov(Y) and cov(Y, S) are exact to 1e-10 of the columns'
    size, and :math:`R^2_{X|S,Y} = R^2_{X|S}`.
    """

    name = "egadp"

    def rows_needed(self, p: int, q: int) -> int:
        """Room for noise orthogonal to a constant, S and X."""
        return 1 + 2 * p + q

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """The draw, with exact moments and orthogonal to X."""
        data.refuse_determined()
        return egadp(data.x, data.s, rng)
