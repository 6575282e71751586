"""Risk of re-identification by the size of the equivalence classes, in ARX's three attacker models.

The *prosecutor* knows that the person is in the data, the *journalist* only that the person is in a population the data
were drawn from, the *marketer* wants to re-identify as many records as possible. Without a population table the
release is its own population, the most cautious assumption, and the journalist's risk equals the prosecutor's.
A class of people |e| has the risk 1/|e|; people are counted, not rows, where the table names persons.
"""

from __future__ import annotations

import numpy as np

from fedanon.data.hierarchy import FloatArray
from fedanon.data.release import Release
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.privacy.k_anonymity import people

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
