"""Risk of re-identification by the size of the equivalence classes, in ARX's three attacker models.

The *prosecutor* knows that the person is in the data, the *journalist* only that the person is in a population the data
were drawn from, the *marketer* wants to re-identify as many records as possible. Without a population table the
release is its own population, the most cautious assumption, and the journalist's risk equals the prosecutor's.
A class of people |e| has the risk 1/|e|; people are counted, not rows, where the table names persons.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedanon.metrics.base import view_metric
from fedanon.release.release import Release
from fedanon.release.view import PublishedView
from fedanon.types import FloatArray, IndexArray

#: ARX's default threshold: a record is at risk if an attacker is right more often than one time in five
RISK_THRESHOLD = 0.2


@view_metric("prosecutor_risk", title="Prosecutor risk, highest", better="lower")
def prosecutor_risk(view: PublishedView) -> float:
    r"""Highest risk of any published record, :math:`\max_e 1/|e|` (El Emam & Dankar 2008)."""
    return summarize_risks(record_risks(view)).highest


@view_metric("prosecutor_risk_average", title="Prosecutor risk, average", better="lower")
def prosecutor_risk_average(view: PublishedView) -> float:
    r"""Mean of 1/|e| over the published records; classes / records where every row is a person."""
    return summarize_risks(record_risks(view)).average


@view_metric("journalist_risk", title="Journalist risk, highest", better="lower")
def journalist_risk(view: PublishedView) -> float:
    """Highest risk with the release as its own population: equal to the prosecutor's (El Emam & Dankar 2008)."""
    return prosecutor_risk(view)


@view_metric("marketer_risk", title="Marketer risk", better="lower")
def marketer_risk(view: PublishedView) -> float:
    r"""Expected share of the published records re-identified by matching all of them, :math:`\frac1n \sum_e 1`.

    With the release as its own population this equals the prosecutor's average risk (Dankar & El Emam 2010).
    """
    return prosecutor_risk_average(view)


@view_metric("records_at_risk", title="Records at risk", better="lower")
def records_at_risk(view: PublishedView) -> float:
    """Share of the published records whose risk 1/|e| exceeds 0.2, those in classes of fewer than five people."""
    return summarize_risks(record_risks(view)).at_risk


def record_risks(view: PublishedView, people: IndexArray | None = None) -> FloatArray:
    """Risk 1/|e| of every published record.

    ``people`` is how many people an attacker finds for every class, at least the one who is there; those of the release
    if None, the people of a population for a journalist who has one.
    """
    by_class = view.people if people is None else np.maximum(people, 1)
    return 1.0 / by_class[view.classes.labels[~view.suppressed]]


class RiskSummary(NamedTuple):
    """The risks of all published records in three numbers, NaN if nothing is published.

    Parameters
    ----------
    highest : of any record.
    average : over the records: the expected share that an attacker who names all of them gets right.
    at_risk : share of the records whose risk exceeds :data:`RISK_THRESHOLD`.
    """

    highest: float
    average: float
    at_risk: float


def summarize_risks(risks: FloatArray) -> RiskSummary:
    """The summary of the risks of records, as :func:`record_risks` gives them."""
    if not risks.size:
        return RiskSummary(np.nan, np.nan, np.nan)
    return RiskSummary(float(risks.max()), float(risks.mean()), float((risks > RISK_THRESHOLD).mean()))


# ---- Equivalence classes -------------------------------------------------------------------------


@view_metric("k_reached", title="Smallest class", better="higher")
def k_reached(view: PublishedView) -> float:
    """Number of people in the smallest equivalence class: the k the release really has (Sweeney 2002)."""
    return float(view.smallest_class) if view.people.size else np.nan


@view_metric("classes", title="Equivalence classes", better="neither")
def classes(view: PublishedView) -> float:
    """Number of equivalence classes."""
    return float(view.classes.count)


@view_metric("average_class_size", title="Average class", better="neither")
def average_class_size(view: PublishedView) -> float:
    """Mean number of people in an equivalence class."""
    return float(view.people.mean()) if view.people.size else np.nan


@view_metric("normalized_average_class_size", title="Average class / k", better="lower")
def normalized_average_class_size(view: PublishedView) -> float:
    r"""Average class size over the claimed k; 1 is the least a method can reach, NaN if no k is claimed.

    .. math:: C_{AVG} = \frac{n / \text{classes}}{k}

    (LeFevre, DeWitt & Ramakrishnan 2006).
    """
    claim = view.claim if isinstance(view, Release) else None
    k = claim.to_dict().get("k") if claim is not None else None
    return average_class_size(view) / k if k else np.nan


@view_metric("discernibility", title="Discernibility", better="lower")
def discernibility(view: PublishedView) -> float:
    r"""Every record is charged the number of records it cannot be told from, a suppressed one that of all.

    .. math:: DM = \sum_e |e|^2 + s \, n

    with s suppressed of n records (Bayardo & Agrawal 2005). Records are counted, not people.
    """
    sizes = view.classes.sizes.astype(np.float64)
    return float(np.square(sizes).sum() + view.suppressed.sum() * len(view))
