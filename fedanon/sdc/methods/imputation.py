"""Multiple imputation: synthetic copies of X drawn from a Bayesian linear model given S, and pooled estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fedanon.anonymizers import ANONYMIZERS
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.sdc.methods.numeric import ConditionalPerturbation, Selection
from fedanon.sdc.methods.projections import column_space, root, standardized
from fedanon.types import FloatArray, Rng


def synthetic_copy(x: FloatArray, s: FloatArray, rng: Rng) -> FloatArray:
    r"""One draw of X from its posterior predictive distribution given S, under a flat prior.

    .. math:: \Sigma \sim W^{-1}(E'E, n - r), \quad \Gamma \sim N(\hat\Gamma, \Sigma), \quad Y = U \Gamma + N(0, \Sigma)

    with U an orthonormal basis of S and a constant (r columns) and E the residuals: parameters are drawn first, so that
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
    """M with M M' = W^-1 for W from Wishart's distribution of the identity, by Bartlett's decomposition."""
    lower = np.tril(rng.standard_normal((p, p)), -1)
    lower[np.diag_indices(p)] = np.sqrt(rng.chisquare(degrees - np.arange(p)))
    return np.asarray(np.linalg.inv(lower).T)


class Pooled(NamedTuple):
    """An estimate over all copies, its variance, and the degrees of freedom of its t distribution."""

    estimate: float
    variance: float
    degrees: float


def pooled(estimates: ArrayLike, variances: ArrayLike, rule: Literal["rubin", "reiter"] = "rubin") -> Pooled:
    r"""Combine the estimates :math:`q_m` of M copies and their variances :math:`u_m`.

    .. math:: \bar q = \frac1M \sum q_m, \quad \bar u = \frac1M \sum u_m, \quad b = \frac1{M-1} \sum (q_m - \bar q)^2

    Rubin's rule (1987) for imputed data has the variance :math:`T = \bar u + (1 + 1/M) b`. For copies in which X is
    synthetic for every record and S is real, that is too careful; Reiter's (2003) is :math:`T = \bar u + b / M`. The
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

    Rubin 1993; Reiter 2003. Release the copies 1 .. M one by one with the same seed, analyse each and combine the
    results with :func:`pooled`. A copy does not depend on how many there are. Collinear S are taken by the
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
        """The copy that is released."""
        data.refuse_determined()
        # a stream of its own for every copy, so that each can be drawn alone
        own = rng.spawn(self.copies)[self.copy - 1]
        return synthetic_copy(data.x, data.s, own)
