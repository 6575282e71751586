"""Multiple imputation: several synthetic copies of the same columns, and estimates pooled over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.release.release import Release
from fedanon.sdc.methods.linear_models import Pooled, pooled
from fedanon.sdc.methods.pipeline import Pipeline
from fedanon.sdc.methods.step import Step
from fedanon.types import FloatArray


class Estimate(NamedTuple):
    """An estimate from one copy, and its variance."""

    value: float
    variance: float


#: from a copy to its estimates, by name
Analysis = Callable[[pd.DataFrame], dict[str, Estimate]]


def copy_chain(columns: Sequence[str], given: str, copies: int, copy: int) -> Pipeline:
    """Return the chain that releases one of the copies."""
    settings = {"copies": copies, "copy": copy, **({"given": given} if given else {})}
    return Pipeline((Step("imputation", tuple(columns), settings),))


def synthetic_copies(
    table: Table, columns: Sequence[str], *, given: str = "", copies: int = 5, seed: int = 0
) -> list[Release]:
    """Return M releases in which ``columns`` are drawn anew from a model given other columns (Rubin 1993).

    The copies belong together: analyze each and pool the results (:func:`pooled_estimates`). Every copy is as risky as
    a release of its own, and all of them together more so.
    """
    if copies < 2:
        raise ConfigError(f"Multiple imputation needs at least 2 copies. Got {copies} instead.")
    return [copy_chain(columns, given, copies, i).anonymize(table, rng=seed) for i in range(1, copies + 1)]


def means_and_slopes(columns: Sequence[str]) -> Analysis:
    """Return an analysis: the mean of every column and, of every two, the slope of the first on the second."""

    def analyze(frame: pd.DataFrame) -> dict[str, Estimate]:
        numbers = {name: pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64) for name in columns}
        found = {f"mean of {name}": _mean(values) for name, values in numbers.items()}
        for name in columns:
            for other in columns:
                if name != other:
                    found[f"slope of {name} on {other}"] = _slope(numbers[name], numbers[other])
        return found

    return analyze


def _mean(values: FloatArray) -> Estimate:
    known = values[~np.isnan(values)]
    return Estimate(float(known.mean()), float(known.var(ddof=1) / len(known)))


def _slope(y: FloatArray, x: FloatArray) -> Estimate:
    known = ~np.isnan(y + x)
    x, y = x[known] - x[known].mean(), y[known] - y[known].mean()
    spread = float((x**2).sum())
    if spread == 0 or len(x) < 3:
        return Estimate(np.nan, np.nan)
    slope = float((x * y).sum()) / spread
    return Estimate(slope, float(((y - slope * x) ** 2).sum()) / (len(x) - 2) / spread)


def pooled_estimates(
    copies: Sequence[pd.DataFrame], analysis: Analysis, rule: Literal["rubin", "reiter"] = "reiter"
) -> dict[str, Pooled]:
    """Analyze every copy and combine the estimates by Rubin's rule, or Reiter's for columns that are all synthetic."""
    found = [analysis(copy) for copy in copies]
    return {
        name: pooled([one[name].value for one in found], [one[name].variance for one in found], rule)
        for name in found[0]
        if all(one[name].value == one[name].value for one in found)
    }


def summarize_copies(
    copies: Sequence[pd.DataFrame], columns: Sequence[str], original: pd.DataFrame | None = None
) -> dict[str, dict[str, float | None]]:
    """Return means and slopes over all copies by name, with standard errors by both rules, beside the original's."""
    analysis = means_and_slopes(columns)
    before = {} if original is None else analysis(original)
    wider = pooled_estimates(copies, analysis, "rubin")
    return {
        name: {
            "pooled": one.estimate,
            "deviation": one.variance**0.5,
            "deviation_rubin": wider[name].variance ** 0.5,
            "degrees": one.degrees,
            "original": before[name].value if name in before else None,
        }
        for name, one in pooled_estimates(copies, analysis).items()
    }
