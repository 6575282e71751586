"""Risk of re-identification by the size of the equivalence classes, in ARX's three attacker models.

The *prosecutor* knows that the person is in the data, the *journalist* only that the person is in a population the data
were drawn from, the *marketer* wants to re-identify as many records as possible. Without a population table the
release is its own population, the most cautious assumption, and the journalist's risk equals the prosecutor's.
A class of people |e| has the risk 1/|e|; people are counted, not rows, where the table names persons.
"""

from __future__ import annotations

import numpy as np

from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.privacy.models.k_anonymity import people
from fedanon.release.release import Release
from fedanon.types import FloatArray

#: ARX's default threshold: a record is at risk if an attacker is right more often than one time in five
RISK_THRESHOLD = 0.2


@metric("prosecutor_risk", title="Prosecutor risk, highest", better="lower")
def prosecutor_risk(table: Table, release: Release) -> float:
    r"""Highest risk of any published record, :math:`\max_e 1/|e|` (El Emam & Dankar 2008)."""
    return float(record_risks(table, release).max(initial=-1.0)) if release.classes.count else np.nan


@metric("prosecutor_risk_average", title="Prosecutor risk, average", better="lower")
def prosecutor_risk_average(table: Table, release: Release) -> float:
    r"""Mean of 1/|e| over the published records; classes / records where every row is a person."""
    return float(record_risks(table, release).mean()) if release.classes.count else np.nan


@metric("journalist_risk", title="Journalist risk, highest", better="lower")
def journalist_risk(table: Table, release: Release) -> float:
    """Highest risk with the release as its own population: equal to the prosecutor's (El Emam & Dankar 2008)."""
    return prosecutor_risk(table, release)


@metric("marketer_risk", title="Marketer risk", better="lower")
def marketer_risk(table: Table, release: Release) -> float:
    r"""Expected share of the published records re-identified by matching all of them, :math:`\frac1n \sum_e 1`.

    With the release as its own population this equals the prosecutor's average risk (Dankar & El Emam 2010).
    """
    return prosecutor_risk_average(table, release)


@metric("records_at_risk", title="Records at risk", better="lower")
def records_at_risk(table: Table, release: Release) -> float:
    """Share of the published records whose risk 1/|e| exceeds 0.2, those in classes of fewer than five people."""
    return float((record_risks(table, release) > RISK_THRESHOLD).mean()) if release.classes.count else np.nan


def record_risks(table: Table, release: Release) -> FloatArray:
    """Risk 1/|e| of every published record."""
    counts = people(table, release.classes)
    return 1.0 / counts[release.classes.labels[~release.suppressed]]


# ---- Equivalence classes -------------------------------------------------------------------------


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
