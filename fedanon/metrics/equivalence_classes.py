"""Equivalence classes: how large the sets of records are that look the same to an attacker."""

from __future__ import annotations

import numpy as np

from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.privacy.k_anonymity import people


@metric("k_reached", title="Smallest class", better="higher")
def k_reached(table: Table, release: Release) -> float:
    """Number of people in the smallest equivalence class: the k the release really has (Sweeney 2002)."""
    counts = people(table, release.classes)
    return float(counts.min()) if counts.size else np.nan


@metric("classes", title="Equivalence classes", better="neither")
def classes(table: Table, release: Release) -> float:  # noqa: ARG001  all metrics have one signature
    """Number of equivalence classes."""
    return float(release.classes.count)


@metric("average_class_size", title="Average class", better="neither")
def average_class_size(table: Table, release: Release) -> float:
    """Mean number of people in an equivalence class."""
    counts = people(table, release.classes)
    return float(counts.mean()) if counts.size else np.nan


@metric("normalized_average_class_size", title="Average class / k", better="lower")
def normalized_average_class_size(table: Table, release: Release) -> float:
    r"""Average class size over the claimed k; 1 is the least a method can reach, NaN if no k is claimed.

    .. math:: C_{AVG} = \frac{n / \text{classes}}{k}

    (LeFevre, DeWitt & Ramakrishnan 2006).
    """
    k = release.claim.to_dict().get("k") if release.claim is not None else None
    return average_class_size(table, release) / k if k else np.nan


@metric("discernibility", title="Discernibility", better="lower")
def discernibility(table: Table, release: Release) -> float:
    r"""Every record is charged the number of records it cannot be told from, a suppressed one that of all.

    .. math:: DM = \sum_e |e|^2 + s \, n

    with s suppressed of n records (Bayardo & Agrawal 2005). Records are counted, not people.
    """
    sizes = release.classes.sizes.astype(np.float64)
    return float(np.square(sizes).sum() + release.suppressed.sum() * len(table))
