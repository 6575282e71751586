"""Frequency counts of key combinations, in the sample and in the population, and the records that are too few."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedanon.data.groups import Groups
from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import MetricFunction, metric

IndexArray = NDArray[np.int64]

#: the k for which violations are counted, as sdcMicro prints them
THRESHOLDS = (2, 3, 5)


class Frequencies(NamedTuple):
    """How often the key combination of every record occurs.

    Parameters
    ----------
    sample : f_k, among the records.
    population : F_k, among the people the records stand for; never below f_k, since the sample is part of it.
    """

    sample: IndexArray
    population: FloatArray


def frequencies(
    labels: NDArray[Any], weights: FloatArray | None = None, persons: NDArray[Any] | None = None
) -> Frequencies:
    r"""Frequency counts of records (Morais 2022, section 3.1).

    .. math:: f_k = |\{i : k_i = k\}|, \qquad F_k = \sum_{i : k_i = k} w_i

    Parameters
    ----------
    labels : number of the key combination of every record, none below 0.
    weights : sampling weight of every record; 1 if None.
    persons : number of the person of every record, where f_k shall count people.
    """
    groups = Groups.of(labels)
    counts = groups.sizes if persons is None else groups.distinct(persons)
    sample = counts[groups.labels]
    if weights is None:
        return Frequencies(sample, sample.astype(np.float64))
    return Frequencies(sample, np.maximum(groups.total(weights)[groups.labels], sample))


def released_frequencies(table: Table, release: Release) -> Frequencies:
    """:func:`frequencies` of the published records, by their equivalence classes."""
    kept = ~release.suppressed
    weights = None if table.weights is None else table.weights[kept]
    persons = None if table.persons is None else table.persons[kept]
    return frequencies(release.classes.labels[kept], weights, persons)


def violations(counts: NDArray[Any], k: int) -> int:
    r"""Number of records that violate k-anonymity, :math:`\sum_i [F_{k_i} < k]` (Morais 2022, eq. 3.2)."""
    return int((counts < k).sum())


def _sample_violations(k: int) -> MetricFunction:
    def count(table: Table, release: Release) -> float:
        return float(violations(released_frequencies(table, release).sample, k))

    count.__doc__ = f"Number of published records whose quasi-identifiers fewer than {k} people in the data share."
    return count


def _population_violations(k: int) -> MetricFunction:
    def count(table: Table, release: Release) -> float:
        if table.weights is None:
            return np.nan
        return float(violations(released_frequencies(table, release).population, k))

    count.__doc__ = f"Number of published records whose quasi-identifiers fewer than {k} of the population share."
    return count


for _k in THRESHOLDS:
    metric(f"violations_{_k}", title=f"Violations of {_k}-anonymity", better="lower")(_sample_violations(_k))
    metric(f"violations_{_k}_population", title=f"Violations of {_k}-anonymity, population", better="lower")(
        _population_violations(_k)
    )
