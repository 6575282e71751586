"""Noise: additive, in the six forms of the literature, and multiplicative, with and without logarithms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.robust import chi2_quantile, mcd, squared_mahalanobis
from fedanon.errors import InfeasibleError
from fedanon.fields import parameter
from fedanon.sdc.methods.numeric import NumericPerturbation, Selection
from fedanon.sdc.methods.projections import root, standardized
from fedanon.types import BoolArray, FloatArray, Rng

#: shares of records that are not outliers, by a single column and by their robust distance
COLUMN_SHARE, DISTANCE_SHARE = 0.99, 0.975
#: samples with fewer records have a shrink factor of their own
SMALL = 500
#: records the robust covariance is estimated from
ROBUST_SAMPLE = 10_000


# ---- additive noise: the math --------------------------------------------------------------------


def independent_noise(x: FloatArray, c: float, rng: Rng) -> FloatArray:
    r"""Draw noise of variance :math:`c \sigma_p^2`, independently for every column."""
    return np.asarray(np.sqrt(c) * x.std(axis=0, ddof=1) * rng.standard_normal(x.shape))


def correlated_noise(x: FloatArray, c: float, rng: Rng) -> FloatArray:
    r"""Draw noise of covariance :math:`c \Sigma`."""
    scores, _, scale = standardized(x)
    correlation = scores.T @ scores / (len(x) - 1)
    return np.asarray(scale * (rng.standard_normal(x.shape) @ (np.sqrt(c) * root(correlation))))


def shrunk(x: FloatArray, noise: FloatArray, c: float) -> FloatArray:
    """Add noise and shrink the sum towards the mean, so that the covariance is that of ``x`` again."""
    mean = x.mean(axis=0)
    return np.asarray(mean + (x - mean + noise) / np.sqrt(1 + c))


def mixed_with_noise(x: FloatArray, d: float, rng: Rng) -> FloatArray:
    r"""Columnwise :math:`\sqrt{1-d^2}\, x + d\, N(\bar x (1 - \sqrt{1-d^2}) / d, \sigma^2)`."""
    kept = np.sqrt(1 - d**2)
    noise = x.std(axis=0, ddof=1) * rng.standard_normal(x.shape)
    return np.asarray(kept * x + (1 - kept) * x.mean(axis=0) + d * noise)


def outliers(x: FloatArray, rng: Rng) -> BoolArray:
    """Mark records above the 99 % quantile of any column, or far from the bulk by a robust Mahalanobis distance."""
    high = (x > np.quantile(x, COLUMN_SHARE, axis=0)).any(axis=1)
    scores = standardized(x).scores
    sample = scores if len(x) <= ROBUST_SAMPLE else scores[rng.choice(len(x), ROBUST_SAMPLE, replace=False)]
    distances = squared_mahalanobis(scores, mcd(sample, rng))
    return np.asarray(high | (distances > chi2_quantile(DISTANCE_SHARE, x.shape[1])))


# ---- additive noise: the methods -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Noise(NumericPerturbation):
    c: float = parameter(0.1, help="variance of the noise as a share of the column's", at_least=0)


@ANONYMIZERS.register("additive_noise")
@dataclass(frozen=True, kw_only=True)
class AdditiveNoise(_Noise):
    r"""Adds independent normal noise; means are kept, variances grow.

    :math:`Y = X + e`, :math:`e_p \sim N(0, c \sigma_p^2)`: in expectation variances grow by the factor 1 + c and
    correlations shrink by it (Morais 2022, eq. 4.3, whose claim that variances are kept is wrong). sdcMicro's
    ``noise=q`` is c = (q / 100)^2.
    """

    name = "additive_noise"
    columnwise = True

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Add noise to the values."""
        return data.x + independent_noise(data.x, self.c, rng)


@ANONYMIZERS.register("correlated_noise")
@dataclass(frozen=True, kw_only=True)
class CorrelatedNoise(_Noise):
    r"""Adds noise correlated like the data; means and correlations are kept, variances grow.

    :math:`Y = X + e`, :math:`e \sim N(0, c \Sigma)`: covariances grow by the factor 1 + c in expectation. sdcMicro's
    'correlated' with ``noise=q`` has c = q / 100.
    """

    name = "correlated_noise"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Add noise to the values."""
        return data.x + correlated_noise(data.x, self.c, rng)


@ANONYMIZERS.register("kim_noise")
@dataclass(frozen=True, kw_only=True)
class KimNoise(_Noise):
    r"""Adds noise correlated like the data and shrinks the sum; means and covariances are kept.

    :math:`Y = \bar X + (X - \bar X + e) / \sqrt{1 + c}`, :math:`e \sim N(0, c \Sigma)`; both are kept in expectation
    (Kim 1986; Tendick & Matloff 1994). In Morais 2022, eq. 4.5, the mean is divided too and shrinks; here it is not.
    """

    name = "kim_noise"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Add noise to the values and shrink the sum."""
        return shrunk(data.x, correlated_noise(data.x, self.c, rng), self.c)


def shrink_factor(n: int, c: float) -> float:
    """What the sum of values and noise is shrunk by so that variances are kept in a sample of ``n`` (sdcMicro)."""
    return float(np.sqrt((n - 1 - c) / ((n + 1) * (1 + c)) if n < SMALL else (n - 1) / (n + n * c - 1)))


@ANONYMIZERS.register("restricted_noise")
@dataclass(frozen=True, kw_only=True)
class RestrictedNoise(_Noise):
    r"""Adds independent noise and shrinks the sum by a factor that takes the sample size into account.

    :math:`Y = \bar X + \gamma (X - \bar X + e)`, :math:`e_p \sim N(0, c \sigma_p^2)`, :math:`\gamma^2 = (N - 1) / (N +
    c N - 1)`, for N below 500 :math:`(N - 1 - c) / ((N + 1)(1 + c))`: means and variances are kept in expectation,
    correlations shrink. This is what sdcMicro's 'restr' is meant to be; its program (5.8.1) adds no noise at all, and
    the shifts of the means in turn down the rows. ``as_sdcmicro`` does the same, for comparison only: it protects
    nothing. sdcMicro's ``noise=q`` is c = q / 100.
    """

    name = "restricted_noise"

    as_sdcmicro: bool = parameter(False, help="shrink only, and shift rows in turn, as sdcMicro's program does")

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Add noise and shrink the sum."""
        mean = data.x.mean(axis=0)
        noise = independent_noise(data.x, self.c, rng)
        return np.asarray(mean + shrink_factor(len(data.x), self.c) * (data.x - mean + noise))

    def _jointly(self, data: Selection, rng: Rng) -> FloatArray:
        if not self.as_sdcmicro:
            return super()._jointly(data, rng)
        # which shift a row gets depends on its number, so that rows without a value count too
        x, factor = data.x, shrink_factor(len(data.x), self.c)
        shifts = (1 - factor) * np.nanmean(x, axis=0)
        return np.asarray(factor * x + np.resize(shifts, x.size).reshape(x.shape[::-1]).T)


@ANONYMIZERS.register("correlated2_noise")
@dataclass(frozen=True, kw_only=True)
class Correlated2Noise(NumericPerturbation):
    r"""Mixes each column with noise like itself; means and variances are kept, correlations are not.

    :math:`\sqrt{1-d^2}\, x + d\, N(\bar x (1-\sqrt{1-d^2})/d, \sigma^2)`; correlations between columns shrink by the
    factor 1 - d^2 in expectation (sdcMicro's 'correlated2').
    """

    name = "correlated2_noise"
    columnwise = True

    d: float = parameter(0.3, help="weight of the noise, from 0 (none) to 1 (nothing but noise)", at_least=0, at_most=1)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Mix values and noise."""
        return mixed_with_noise(data.x, self.d, rng)


@ANONYMIZERS.register("outlier_noise")
@dataclass(frozen=True, kw_only=True)
class OutlierNoise(_Noise):
    r"""Adds independent noise to outliers only; the other records stay as they are.

    Outliers are the records above the 99 % quantile of any column, or whose robust Mahalanobis distance (minimum
    covariance determinant) is above the 97.5 % quantile of :math:`\chi^2_P` (sdcMicro's 'outdect').
    """

    name = "outlier_noise"

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Add noise to the outliers."""
        noise = independent_noise(data.x, self.c, rng)
        return np.where(outliers(data.x, rng)[:, None], data.x + noise, data.x)


# ---- multiplicative noise ------------------------------------------------------------------------


def multiplied(x: FloatArray, sd: float, rng: Rng) -> FloatArray:
    """Multiply every value by a normal factor with mean 1."""
    return np.asarray(x * (1 + sd * rng.standard_normal(x.shape)))


def log_multiplied(x: FloatArray, sd: float, rng: Rng) -> FloatArray:
    r""":math:`\exp(\ln x + e) = x e^{e}`; written this way, a zero stays zero."""
    return np.asarray(x * np.exp(sd * rng.standard_normal(x.shape)))


@ANONYMIZERS.register("multiplicative_noise")
@dataclass(frozen=True, kw_only=True)
class MultiplicativeNoise(NumericPerturbation):
    r"""Multiplies every value by a normal factor of its own with mean 1; zeros stay zero.

    :math:`Y = X \bullet Z`, E Z = 1 (Kim & Winkler 2003). Means are kept in expectation, zeros exactly; the variance
    becomes :math:`\sigma^2 + sd^2 E X^2`. A factor may be negative where ``sd`` is large: see ``non_negative``.
    """

    name = "multiplicative_noise"
    columnwise = True

    sd: float = parameter(0.1, help="standard deviation of the factor", at_least=0)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Multiply the values by random factors."""
        return multiplied(data.x, self.sd, rng)


@ANONYMIZERS.register("log_multiplicative_noise")
@dataclass(frozen=True, kw_only=True)
class LogMultiplicativeNoise(NumericPerturbation):
    r"""Adds normal noise to the logarithms of positive values; they stay positive.

    :math:`Y = \exp(\ln X + e)`, :math:`e \sim N(0, sd^2)`. Positive values stay positive, medians are kept in
    expectation, means grow by :math:`e^{sd^2/2}`. (Morais 2022, eq. 4.11, names exponential noise, which could only
    enlarge values.) Zeros need ``keep_zeros``; negative values are rejected.
    """

    name = "log_multiplicative_noise"
    columnwise = True

    sd: float = parameter(0.1, help="standard deviation of the noise on the logarithms; 0.1 is about 10 %", at_least=0)

    def perturb(self, data: Selection, rng: Rng) -> FloatArray:
        """Multiply the values by random factors."""
        self._refuse_no_logarithm(data)
        with np.errstate(over="ignore"):  # overflow is reported afterwards, with the name of the column
            return log_multiplied(data.x, self.sd, rng)

    def _refuse_no_logarithm(self, data: Selection) -> None:
        for name, column in zip(data.names, data.x.T, strict=True):
            negative, zero = int((column < 0).sum()), int((column == 0).sum())
            if negative or (zero and not self.keep_zeros):
                hint = "" if negative else " Set keep_zeros to leave zeros as they are."
                raise InfeasibleError(
                    f"The method {self.name!r} takes logarithms. The column {name!r} has {negative} negative values "
                    f"and {zero} zeros.{hint}"
                )
