"""Methods based on a linear model: columns X are drawn anew given columns S, or turned at random.

GADP, IPSO and EGADP publish Y = b0 + B S + noise with the regression of X on S, so that linear models fitted to the
release resemble those of the original; they differ in the noise. GADP draws it from the normal distribution, so moments
hold in expectation. IPSO turns and stretches what it drew, so that moments hold exactly. EGADP also makes it orthogonal
to X: then Y reveals nothing about X that S does not reveal already. Imputation draws the model's parameters as well.
ROMM needs no S: it turns X by a random orthogonal matrix that keeps means and covariances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.robust import mcd
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.sdc.methods.conditional import ConditionalPerturbation
from fedanon.sdc.methods.numeric import NumericPerturbation, Selection
from fedanon.sdc.methods.projections import (
    column_space,
    nearest_frame,
    random_frame,
    regression,
    robust_regression,
    root,
    standardized,
)
from fedanon.types import FloatArray, Rng

# ---- GADP, IPSO, EGADP ---------------------------------------------------------------------------


class LinearFit(NamedTuple):
    """What S says about standardized X: the fit, and the covariance of what it leaves, times n - 1."""

    fitted: FloatArray
    left: FloatArray


def model(scores: FloatArray, s: FloatArray, *, robust: bool = False) -> LinearFit:
    """Regress standardized columns on ``s``; robustly, outliers decide neither the fit nor the covariance."""
    if not robust:
        fitted, residuals = regression(scores, s)
        return LinearFit(fitted, residuals.T @ residuals)
    fitted, residuals = robust_regression(scores, s)
    return LinearFit(fitted, (len(scores) - 1) * mcd(residuals, np.random.default_rng(0)).covariance)


def gadp(x: FloatArray, s: FloatArray, rng: Rng, *, robust: bool = False) -> FloatArray:
    r""":math:`Y = b_0 + B S + e`, :math:`e \sim N(0, \Sigma_{xx} - \Sigma_{xs} \Sigma_{ss}^{-1} \Sigma_{sx})`."""
    columns = standardized(x)
    fitted, left = model(columns.scores, s, robust=robust)
    noise = rng.standard_normal(x.shape) @ root(left / (len(x) - 1))
    return columns.back(fitted + noise)


def exact_gadp(x: FloatArray, s: FloatArray, apart_from: FloatArray, rng: Rng, *, robust: bool = False) -> FloatArray:
    r""":math:`Y = b_0 + B S + C`, :math:`C = B \hat\Sigma_B^{-1/2} \hat\Sigma_\epsilon^{+1/2}`, exact in the sample.

    The columns of :math:`B \hat\Sigma_B^{-1/2}` are, up to their length, a random frame: residuals of normal numbers
    regressed on ``apart_from``, made orthonormal. That matrix must include the columns ``s``. Robustly, the moments
    kept are those of the robust fit.
    """
    columns = standardized(x)
    fitted, left = model(columns.scores, s, robust=robust)
    frame = random_frame(len(x), x.shape[1], column_space(apart_from), rng)
    return columns.back(fitted + frame @ root(left))


def ipso(x: FloatArray, s: FloatArray, rng: Rng, *, robust: bool = False) -> FloatArray:
    """Keep moments exactly, by noise that is orthogonal to S."""
    return exact_gadp(x, s, s, rng, robust=robust)


def egadp(x: FloatArray, s: FloatArray, rng: Rng, *, robust: bool = False) -> FloatArray:
    """Keep moments exactly, by noise that is orthogonal to S and to X."""
    return exact_gadp(x, s, np.column_stack([s, x]), rng, robust=robust)


@dataclass(frozen=True, kw_only=True)
class _LinearModel(ConditionalPerturbation):
    robust: bool = parameter(
        False, help="outliers decide neither the regression nor its covariance; moments are theirs"
    )


@ANONYMIZERS.register("gadp")
@dataclass(frozen=True, kw_only=True)
class Gadp(_LinearModel):
    r"""General additive data perturbation: the columns X are drawn anew from a linear model given the columns S.

    :math:`Y = b_0 + B S + e`, :math:`B = \Sigma_{xs} \Sigma_{ss}^{-1}`, :math:`e \sim N(0, \Sigma_{xx} - B
    \Sigma_{sx})` (Muralidhar, Parsa & Sarathy 1999; Morais 2022, eq. 4.7). Means, covariances and those with S are kept
    in expectation. Without given columns Y is a normal draw with the mean and covariance of X. Collinear S are handled
    by the pseudo-inverse.
    """

    name = "gadp"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Draw X from the model."""
        data.refuse_determined()
        return gadp(data.x, data.s, rng, robust=self.robust)


@ANONYMIZERS.register("ipso")
@dataclass(frozen=True, kw_only=True)
class Ipso(_LinearModel):
    r"""Information preserving statistical obfuscation: GADP with exact means, cov(Y) and cov(Y, S) (Burridge 2003).

    The noise is made of residuals of normal numbers regressed on S. They may correlate with X by chance, so
    :math:`R^2_{X|S,Y} \ge R^2_{X|S}`: a reader of Y learns a little more about X than S reveals, most in small tables.
    ``egadp`` prevents that.
    """

    name = "ipso"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Draw X from the model, with exact moments."""
        data.refuse_determined()
        return ipso(data.x, data.s, rng, robust=self.robust)


@ANONYMIZERS.register("egadp")
@dataclass(frozen=True, kw_only=True)
class Egadp(_LinearModel):
    r"""Exact GADP: like ``ipso``, with noise orthogonal to X as well, so that Y adds nothing to what S reveals about X.

    Residuals B of normal numbers regressed on (S, X); :math:`C = B \hat\Sigma_B^{-1/2} \hat\Sigma_\epsilon^{+1/2}`;
    :math:`Y = b_0 + B_1 S + C` (Muralidhar & Sarathy 2008; Morais 2022, section 4.2.2, whose exponent of
    :math:`\hat\Sigma_\epsilon` has the wrong sign). Means, cov(Y) and cov(Y, S) are exact to 1e-10 of the columns'
    size, and :math:`R^2_{X|S,Y} = R^2_{X|S}`.
    """

    name = "egadp"

    def rows_needed(self, p: int, q: int) -> int:
        """The noise must be orthogonal to a constant, S and X."""
        return 1 + 2 * p + q

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Draw X from the model, with exact moments and noise orthogonal to X."""
        data.refuse_determined()
        return egadp(data.x, data.s, rng, robust=self.robust)


# ---- multiple imputation -------------------------------------------------------------------------


def synthetic_copy(x: FloatArray, s: FloatArray, rng: Rng) -> FloatArray:
    r"""One draw of X from its posterior predictive distribution given S, under a flat prior.

    .. math:: \Sigma \sim W^{-1}(E'E, n - r), \quad \Gamma \sim N(\hat\Gamma, \Sigma), \quad Y = U \Gamma + N(0, \Sigma)

    with U an orthonormal basis of S and a constant (r columns) and E the residuals. Parameters are drawn first, so that
    copies differ by what the data leave open about the model.
    """
    n, p = x.shape
    columns = standardized(x)
    basis = np.column_stack([np.full(n, n**-0.5), column_space(s)])
    slopes = basis.T @ columns.scores
    residuals = columns.scores - basis @ slopes
    spread = root(residuals.T @ residuals) @ _inverse_root_of_wishart(p, n - basis.shape[1], rng)
    drawn = slopes + rng.standard_normal(slopes.shape) @ spread.T
    return columns.back(basis @ drawn + rng.standard_normal(x.shape) @ spread.T)


def _inverse_root_of_wishart(p: int, degrees: int, rng: Rng) -> FloatArray:
    """Return M with M M' = W^-1 for a standard Wishart W, by Bartlett's decomposition."""
    lower = np.tril(rng.standard_normal((p, p)), -1)
    lower[np.diag_indices(p)] = np.sqrt(rng.chisquare(degrees - np.arange(p)))
    return np.asarray(np.linalg.inv(lower).T)


class Pooled(NamedTuple):
    """The estimate over all copies, its variance, and the degrees of freedom of its t distribution."""

    estimate: float
    variance: float
    degrees: float


def pooled(estimates: ArrayLike, variances: ArrayLike, rule: Literal["rubin", "reiter"] = "rubin") -> Pooled:
    r"""Combine the estimates :math:`q_m` of M copies and their variances :math:`u_m`.

    .. math:: \bar q = \frac1M \sum q_m, \quad \bar u = \frac1M \sum u_m, \quad b = \frac1{M-1} \sum (q_m - \bar q)^2

    Rubin's rule (1987) for imputed data has the variance :math:`T = \bar u + (1 + 1/M) b`. For copies in which X is
    synthetic for every record and S is real, that is too cautious; Reiter's (2003) is :math:`T = \bar u + b / M`. The
    degrees of freedom are :math:`(M - 1)(1 + \bar u / (T - \bar u))^2` in both.
    """
    q, u = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    count = len(q)
    if count < 2 or len(u) != count:
        raise ConfigError(f"Pooling needs at least 2 estimates with a variance each. Got {count} and {len(u)}.")
    within, between = float(u.mean()), float(q.var(ddof=1))
    extra = between * (1 + 1 / count if rule == "rubin" else 1 / count)
    degrees = (count - 1) * (1 + within / extra) ** 2 if extra > 0 else float("inf")
    return Pooled(float(q.mean()), within + extra, degrees)


@ANONYMIZERS.register("imputation")
@dataclass(frozen=True, kw_only=True)
class Imputation(ConditionalPerturbation):
    """Multiple imputation: M synthetic copies of X from a Bayesian linear model given S, of which one is released.

    Rubin 1993; Reiter 2003. Release the copies 1 .. M one by one with the same seed, analyze each and combine the
    results with :func:`pooled`. A copy does not depend on how many there are. Collinear S are handled by the
    pseudo-inverse; without given columns X is drawn from a normal distribution of its own.
    """

    name = "imputation"

    copies: int = parameter(5, help="number M of synthetic copies", at_least=1)
    copy: int = parameter(1, help="the copy that is released, 1 to M", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.copy > self.copies:
            raise ConfigError(
                f"The 'copy' parameter of Imputation must be an int >= 1 and <= {self.copies}, the number of copies. "
                f"Got {self.copy} instead."
            )

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Draw the copy that is released."""
        data.refuse_determined()
        # every copy has its own random stream, so that each can be drawn by itself
        own = rng.spawn(self.copies)[self.copy - 1]
        return synthetic_copy(data.x, data.s, own)


# ---- random orthogonal matrix masking ------------------------------------------------------------


def romm(x: FloatArray, magnitude: float, rng: Rng) -> FloatArray:
    r"""Y = T X for a random orthogonal T with T 1 = 1.

    Let the columns of U be an orthonormal basis of the centered columns, so that :math:`X = 1 \bar x' + U R`. Any
    orthogonal T with T 1 = 1 takes U to a frame V = T U of orthonormal columns with mean 0, and every such V comes from
    such a T. So V is drawn instead of T, N P numbers instead of N^2:

    .. math:: V = \mathrm{polar}(U + \lambda G / \sqrt N), \qquad Y = 1 \bar x' + V R

    with G standard normal, centered. With magnitude :math:`\lambda \to \infty`, V is uniform: T has Haar's
    distribution.
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

    Ting, Fienberg & Trottini 2008. Both hold to 1e-10 of a column's size; sdcMicro's version shifts the means. Time and
    memory are linear in the number of records, also for T from the whole orthogonal group.
    """

    name = "romm"

    magnitude: float = parameter(
        1.0, help="0 keeps the data, 1 is half data and half chance, large values are all chance", at_least=0
    )

    def rows_needed(self, p: int, q: int) -> int:
        """With no more rows than columns there would be nothing to turn."""
        return 1 + p

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Turn the columns."""
        return romm(data.x, self.magnitude, rng)
