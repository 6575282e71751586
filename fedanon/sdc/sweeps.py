"""The parameter values at which each method is compared by default, in one place for all methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.sdc.masking import RESTRICTED, Masking
from fedanon.sdc.methods.numeric import NumericPerturbation

Variant = Literal["plain", "reverse mapped", "restricted", "restricted, reverse mapped"]
Family = Literal["noise", "model", "permutation", "rank-keeping", "microaggregation", "categories"]

VARIANTS: tuple[Variant, ...] = get_args(Variant)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """How a method is swept.

    Parameters
    ----------
    family : the kind of method, for the colors of a figure.
    values : of its parameters; a list is swept.
    spread : parameter given in standard deviations of the narrowest column, where the method takes units.
    reversible : whether reverse mapping makes sense: it does not change permutations, and undoes what keeps ranks.
    restrictable : whether keeping zeros and signs makes a difference.
    """

    family: Family
    values: Mapping[str, Any] = field(default_factory=dict)
    spread: str = ""
    reversible: bool = True
    restrictable: bool = True

    def variants(self, method: str) -> list[Variant]:
        """Return the variants the method has."""
        restrictable = self.restrictable and issubclass(ANONYMIZERS[method], NumericPerturbation)
        return [
            variant
            for variant in VARIANTS
            if (self.reversible or "reverse" not in variant) and (restrictable or "restricted" not in variant)
        ]


_SHARES = [0.01, 0.05, 0.2, 0.5, 1.0]
_FACTORS = [0.05, 0.1, 0.2, 0.5]
_KS = [3, 5, 10, 25, 50]

SWEEPS: dict[str, Sweep] = {
    "additive_noise": Sweep(family="noise", values={"c": _SHARES}),
    "correlated_noise": Sweep(family="noise", values={"c": _SHARES}),
    "kim_noise": Sweep(family="noise", values={"c": _SHARES}),
    "restricted_noise": Sweep(family="noise", values={"c": _SHARES}),
    "correlated2_noise": Sweep(family="noise", values={"d": [0.1, 0.2, 0.4, 0.6, 0.8]}),
    "outlier_noise": Sweep(family="noise", values={"c": [0.1, 0.5, 1.0]}),
    "multiplicative_noise": Sweep(family="noise", values={"sd": _FACTORS}),
    # a logarithm has no zero, and its exponential no sign
    "log_multiplicative_noise": Sweep(family="noise", values={"sd": _FACTORS, "keep_zeros": True}, restrictable=False),
    "romm": Sweep(family="model", values={"magnitude": [0.05, 0.1, 0.3, 1.0, 10.0]}),
    "gadp": Sweep(family="model"),
    "ipso": Sweep(family="model"),
    "egadp": Sweep(family="model"),
    "imputation": Sweep(family="model"),
    "data_shuffling": Sweep(family="permutation", reversible=False),
    "regression_shuffling": Sweep(family="permutation", reversible=False),
    "rank_swapping": Sweep(family="permutation", values={"percent": [1.0, 2.0, 5.0, 10.0, 20.0]}, reversible=False),
    "resampling": Sweep(family="rank-keeping", values={"samples": [1, 10, 100]}, reversible=False),
    "distortion": Sweep(family="rank-keeping", values={"significance": 0.0}, reversible=False),
    "area_centers": Sweep(family="microaggregation", values={"k": _KS}),
    "spatial_smoothing": Sweep(family="microaggregation", values={"bandwidth": [0.1, 0.5]}),
    "rounding": Sweep(family="rank-keeping", values={"base": [0.1, 0.5, 1.0]}, spread="base"),
    "mdav": Sweep(family="microaggregation", values={"k": _KS}),
    "rmd": Sweep(family="microaggregation", values={"k": _KS}),
    "pca": Sweep(family="microaggregation", values={"k": _KS}),
    "individual_ranking": Sweep(family="microaggregation", values={"k": _KS}),
}


#: methods for categories, for a table whose quasi-identifiers are categorical
CATEGORY_SWEEPS: dict[str, Sweep] = {
    "pram": Sweep(family="categories", values={"keep": [0.5, 0.7, 0.9, 0.95]}, reversible=False),
    "invariant_pram": Sweep(family="categories", values={"pd": [0.2, 0.5, 0.8], "alpha": 0.5}, reversible=False),
    "local_suppression": Sweep(
        family="categories", values={"k": [2, 3, 5], "matching": ["wildcard", "equal", "sdcmicro"]}, reversible=False
    ),
    "threshold_suppression": Sweep(family="categories", values={"threshold": [0.1, 0.4, 0.7]}, reversible=False),
    "category_swapping": Sweep(family="categories", values={"percent": [2.0, 10.0]}, reversible=False),
    "category_microaggregation": Sweep(family="categories", values={"k": [3, 10]}, reversible=False),
    "semantic_recoding": Sweep(family="categories", values={"k": [2, 3, 5]}, reversible=False),
    "global_recoding": Sweep(family="categories", values={"level": 1}, reversible=False),
}


def maskings(
    table: Table, given: Mapping[str, Mapping[str, Any]], variants: Sequence[Variant] = ("plain",)
) -> list[Masking]:
    """Return every method of ``given`` with every combination of its values; the sweep's values are the default."""
    found = []
    for method, values in given.items():
        sweep = SWEEPS.get(method) or CATEGORY_SWEEPS.get(method) or Sweep(family="model")
        chosen = {**_in_units(sweep, table), **values}
        for variant in (one for one in sweep.variants(method) if one in variants):
            extra = RESTRICTED if "restricted" in variant else {}
            found += [Masking(method, {**one, **extra}, "reverse" in variant) for one in combinations(chosen)]
    return found


def combinations(values: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Yield every combination of the values that are lists; the others stay as they are."""
    axes = [value if isinstance(value, list) else [value] for value in values.values()]
    return (dict(zip(values, chosen, strict=True)) for chosen in product(*axes))


def _in_units(sweep: Sweep, table: Table) -> dict[str, Any]:
    """Return the values of a sweep in the units of a table."""
    if not sweep.spread:
        return dict(sweep.values)
    spreads = [
        float(np.nanstd(c.values[table.codes[:, i]])) for i, c in enumerate(table.columns) if c.values is not None
    ]
    narrowest = min((spread for spread in spreads if spread > 0), default=1.0)
    return {**sweep.values, sweep.spread: [float(f"{share * narrowest:.1g}") for share in sweep.values[sweep.spread]]}


def grid_entries(variants: Sequence[Variant], adjusted: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the sweeps as methods of a grid whose task can map back; ``adjusted`` are entries with their own values.

    A method whose values depend on the table is skipped unless it is adjusted.
    """
    unknown = sorted(set(variants) - set(VARIANTS))
    if unknown:
        raise ConfigError(f"Unknown variants: {', '.join(unknown)}. Known: {'; '.join(VARIANTS)}.")
    entries: list[dict[str, Any]] = []
    for method, sweep in SWEEPS.items():
        if sweep.spread and method not in adjusted:
            continue
        own = dict(adjusted.get(method, {}).get("set", sweep.values))
        k = {"k": own.pop("k")} if "k" in own else {}
        for variant in (one for one in sweep.variants(method) if one in variants):
            settings = own | (RESTRICTED if "restricted" in variant else {})
            label = method if variant == "plain" else f"{method}, {variant}"
            mapped = {"reverse_map": True} if "reverse" in variant else {}
            entries.append({"name": method, "label": label, "set": settings} | mapped | k)
    return entries
