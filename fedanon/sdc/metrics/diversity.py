"""Diversity of a sensitive column among the records that share their keys: l-diversity and t-closeness."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.table import Table
from fedanon.metrics.base import metric
from fedanon.privacy.base import Rows
from fedanon.privacy.models.t_closeness import equal_distance, ordered_distance
from fedanon.privacy.sensitive import Sensitive, sensitive_values
from fedanon.release.release import Release
from fedanon.release.view import PublishedView
from fedanon.sdc.metrics.suda import released_keys
from fedanon.types import AnyArray, FloatArray, IndexArray, IntArray

#: sdcMicro's constant of recursive (c, l)-diversity
RECURSION = 2.0
#: cells of distributions held in memory at once
_CHUNK = 4_000_000


class Diversity(NamedTuple):
    """The l of every record, by three definitions (Machanavajjhala et al. 2007).

    Parameters
    ----------
    distinct : number of different sensitive values in the class.
    entropy : exp of the entropy of the values in the class.
    recursive : largest l for which the class is recursively (c, l)-diverse.
    """

    distinct: FloatArray
    entropy: FloatArray
    recursive: FloatArray


def diversity(labels: AnyArray, sensitive: AnyArray, c: float = RECURSION, *, missing: int | None = None) -> Diversity:
    r"""Return the diversity of every record's class.

    .. math::
        l_{entropy} = \exp\Big(-\sum_s p_s \ln p_s\Big), \qquad
        l_{recursive} = \max \{l : r_1 < c (r_l + \dots + r_m)\}

    with the counts :math:`r_1 \ge \dots \ge r_m` of the values in a class. ``labels`` and ``sensitive`` are the class
    and the sensitive value of every record, as numbers from 0. The code ``missing`` is a value like any other, but, as
    in sdcMicro, not one of the r.
    """
    classes = Groups.from_labels(labels)
    values = Groups.equal_rows(np.column_stack([classes.labels, sensitive]))
    owner = classes.labels[values.first_rows]
    share = values.sizes / classes.sizes[owner]
    by_owner = Groups.from_labels(owner)
    entropy = np.exp(-by_owner.total(share * np.log(share)))
    counted = values.sizes.astype(np.float64)
    if missing is not None:
        counted[np.asarray(sensitive)[values.first_rows] == missing] = 0.0
    found = (by_owner.sizes, entropy, _recursive(counted, owner, c))
    return Diversity(*(of_class[classes.labels].astype(np.float64) for of_class in found))


def _recursive(counts: FloatArray, owner: IntArray, c: float) -> IndexArray:
    """Return the largest l of recursive (c, l)-diversity of every class; 1 if nothing in it counts."""
    order = np.lexsort((-counts, owner))
    counts, by_class = counts[order], Groups.from_labels(owner[order])
    of_class = by_class.total(counts)
    total = of_class[by_class.labels]
    before = np.cumsum(counts) - counts
    before -= before[by_class.starts][by_class.labels]  # records of the class with a more common value
    passed = (counts > 0) & (counts[by_class.starts][by_class.labels] < c * (total - before))
    return np.where(of_class > 0, by_class.total(passed.astype(np.int64)), 1)


def closeness(labels: AnyArray, sensitive: AnyArray, *, ordered: bool) -> FloatArray:
    r"""Distance of the sensitive distribution of every record's class from that of all records (Li et al. 2007).

    .. math:: \tfrac12 \sum_s |p_s - q_s| \quad\text{or, ordered,}\quad \frac{1}{m-1} \sum_s |P_s - Q_s|

    the earth mover's distance if all values are equally far apart, or if m values are ordered; P and Q are cumulative.
    """
    classes = Groups.from_labels(labels)
    whole = np.bincount(sensitive) / len(sensitive)
    distance = np.empty(classes.count)
    step = max(1, _CHUNK // len(whole))
    for start in range(0, classes.count, step):
        rows = np.flatnonzero((classes.labels >= start) & (classes.labels < start + step))
        n_here = min(step, classes.count - start)
        cells = (classes.labels[rows] - start) * len(whole) + sensitive[rows]
        counts = np.bincount(cells, minlength=n_here * len(whole)).reshape(n_here, -1)
        shares = np.asarray(counts / classes.sizes[start : start + n_here, None])
        distance[start : start + n_here] = (ordered_distance if ordered else equal_distance)(shares, whole)
    return distance[classes.labels]


# ---- metrics -------------------------------------------------------------------------------------

_KINDS = {
    "distinct": "number of different sensitive values",
    "entropy": "exponential of the entropy of the sensitive values",
    "recursive": "largest l of recursive (2, l)-diversity",
}


def _register(kind: str) -> None:
    def lowest(table: Table, release: Release) -> float:  # noqa: ARG001  all metrics have one signature
        found = _of_records(release, kind)
        return np.nan if found is None else float(found.min())

    def average(table: Table, release: Release) -> float:  # noqa: ARG001
        found = _of_records(release, kind)
        return np.nan if found is None else float(found.mean())

    lowest.__doc__ = f"Lowest {_KINDS[kind]} of any class; NaN without a sensitive column."
    average.__doc__ = f"Mean over published records: {_KINDS[kind]} of the class; NaN without a sensitive column."
    metric(f"l_{kind}_min", title=f"l-diversity, {kind}, lowest", better="higher")(lowest)
    metric(f"l_{kind}_mean", title=f"l-diversity, {kind}, mean", better="higher")(average)


for _kind in _KINDS:
    _register(_kind)


@metric("t_closeness", title="t-closeness, highest", better="lower")
def t_closeness(table: Table, release: Release) -> float:
    """Largest distance of a class's sensitive values from those of all published records; NaN without such a column.

    Values of a numeric column are ordered, those of any other are equally far apart; see :func:`closeness`.
    """
    kept = ~release.suppressed
    worst = [
        closeness(release.classes.labels[kept], codes, ordered=isinstance(table.schema[name], Numeric)).max()
        for name, codes in sensitive_codes(release).items()
    ]
    return float(max(worst)) if worst else np.nan


def sensitive_codes(view: PublishedView) -> dict[str, IndexArray]:
    """Return the sensitive columns of the published rows as ordered codes; missing has a code of its own, the last."""
    return {name: column.codes.astype(np.int64) for name, column in _sensitive(view).items()}


def record_diversity(view: PublishedView, *, as_sdcmicro: bool = False) -> dict[str, Diversity]:
    """Return the diversity of every published record's class, by sensitive column.

    Up to its version 5.8.1 sdcMicro takes every record that lacks a key, or whose key is '*', for a class of its own,
    and every missing sensitive value for one that nobody else has (``as_sdcmicro``).
    """
    labels: AnyArray = view.classes.labels[~view.suppressed]
    found = {}
    if as_sdcmicro:
        labels = _apart(labels, np.flatnonzero((released_keys(view) < 0).any(axis=1)))
    for name, column in _sensitive(view).items():
        missing = column.size - 1 if column.has_missing else None
        if as_sdcmicro and missing is not None:
            found[name] = diversity(labels, _apart(column.codes, np.flatnonzero(column.codes == missing)))
        else:
            found[name] = diversity(labels, column.codes, missing=missing)
    return found


def _apart(codes: AnyArray, rows: IndexArray) -> IndexArray:
    """Return the codes with one of its own for each of some rows."""
    found = np.array(codes, dtype=np.int64)
    found[rows] = found.max(initial=0) + 1 + np.arange(len(rows))
    return found


def _sensitive(view: PublishedView) -> dict[str, Sensitive]:
    kept = ~view.suppressed
    if not kept.any():
        return {}
    rows = Rows(view.passthrough[kept], view.schema, None)
    return {name: sensitive_values(rows, name) for name in view.schema.sensitive}


def _of_records(release: Release, kind: str) -> FloatArray | None:
    """Return the l of every published record by its least diverse sensitive column; None without such a column."""
    found = [getattr(one, kind) for one in record_diversity(release).values()]
    return np.minimum.reduce(found) if found else None
