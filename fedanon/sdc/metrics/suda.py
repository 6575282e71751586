"""SUDA: minimal sample uniques, the scores they give a record, and DIS-SUDA, the probability made of them.

A minimal sample unique (MSU) of a record is a set of keys whose combined values no other record has, although the
record shares those of every proper subset. Small and numerous MSUs make a record special, and likely unique in the
population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.data.groups import Groups
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.metrics.base import metric
from fedanon.release.release import Release
from fedanon.release.view import PublishedView
from fedanon.sdc.metrics.categories import says_nothing
from fedanon.types import AnyArray, BoolArray, CountArray, FloatArray, IndexArray, IntArray

Score = Literal["original", "normalized", "ihsn"]

#: largest MSU the metrics look for: there are too many larger sets, and they say little
MAX_SIZE = 8
#: bits of a mask
_MOST_KEYS = 62
#: upper ends of the intervals in which sdcMicro counts records by their DIS-SUDA risk, those at risk 0 apart
DIS_INTERVALS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
#: sdcMicro's default share of the population that is in the sample
SAMPLING_FRACTION = 0.01
#: sdcMicro adds constant keys to fewer than these; no unique contains one, but scores count them
LEAST_KEYS = 3


@dataclass(frozen=True, eq=False)
class SampleUniques:
    """All minimal sample uniques of a table.

    Parameters
    ----------
    n_keys : number of keys.
    max_size : largest number of keys of a unique that was looked for.
    rows : row of every MSU.
    members : which keys every MSU consists of; one row per MSU, one column per key.
    row_counts : how often the key combination of every row occurs.
    """

    n_keys: int
    max_size: int
    rows: IndexArray
    members: BoolArray
    row_counts: CountArray

    def scores(self, kind: Score = "original") -> FloatArray:
        """Return the SUDA score of every row: the sum over its MSUs (:func:`unique_scores`)."""
        return np.bincount(self.rows, self._points(kind), minlength=len(self.row_counts)).astype(np.float64)

    def contributions(self, kind: Score = "original") -> FloatArray:
        """Return, for every key, the share of all scores that comes from MSUs it is part of; 0 without any MSU."""
        points = self._points(kind)
        total = points.sum()
        return np.asarray(points @ self.members / total) if total else np.zeros(self.n_keys)

    def dis_scores(self, kind: Score = "original", fraction: float = SAMPLING_FRACTION) -> FloatArray:
        """Return the :func:`dis_suda` of every row."""
        return dis_suda(self.scores(kind), int((self.row_counts == 2).sum()), self._scored_keys, fraction)

    @property
    def _scored_keys(self) -> int:
        return max(self.n_keys, LEAST_KEYS)

    def _points(self, kind: Score) -> FloatArray:
        """Return the score of every MSU."""
        keys = self.n_keys if kind == "normalized" else self._scored_keys
        return np.asarray(unique_scores(keys, self.max_size, kind)[self.members.sum(axis=1)])


def minimal_sample_uniques(keys: AnyArray, max_size: int | None = None) -> SampleUniques:
    """Find the minimal sample uniques of a table (Elliot, Manning & Ford 2002).

    Parameters
    ----------
    keys : one row per record, one column per key, as codes; codes below 0 are missing and part of no MSU, as in
        sdcMicro.
    max_size : M, the largest MSU to look for; any size if None.
    """
    n_keys = keys.shape[1]
    if n_keys > _MOST_KEYS:
        raise ConfigError(f"SUDA takes at most {_MOST_KEYS} keys. Got {n_keys} instead.")
    if max_size is not None and max_size < 1:
        raise ConfigError(f"The 'max_size' parameter of SUDA must be an int >= 1. Got {max_size} instead.")
    limit = n_keys if max_size is None else min(max_size, n_keys)
    groups = Groups.equal_rows(keys)
    owners, masks, order = _search(keys[groups.first_rows], groups.sizes == 1, limit)
    members = np.empty((len(masks), n_keys), dtype=bool)
    octets = masks.astype("<i8").view(np.uint8).reshape(-1, 8)
    members[:, order] = np.unpackbits(octets, axis=1, bitorder="little", count=n_keys)
    return SampleUniques(n_keys, limit, groups.first_rows[owners], members, groups.sizes[groups.labels])


def _search(rows: AnyArray, single: BoolArray, max_size: int) -> tuple[IntArray, IndexArray, IndexArray]:
    """Run the kernel; return its result, and which key every bit of its masks stands for."""
    from fedanon.sdc.metrics._suda import minimal_uniques

    coded = [_dense(column) for column in rows.T]
    sizes = np.array([int(codes.max(initial=-1)) + 1 for codes in coded], dtype=np.int64)
    # the key with the most values comes first on half of all paths, where it leaves the fewest records to look at
    order = np.argsort(sizes, kind="stable")
    if not max_size or not single.any():
        return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), order
    codes = np.ascontiguousarray(np.column_stack([coded[i] for i in order]))
    owners, masks = minimal_uniques(codes, single, int(sizes.max()), max_size)
    return owners, masks, order


def _dense(column: AnyArray) -> IntArray:
    codes = np.full(len(column), -1, dtype=np.int32)
    present = column >= 0
    codes[present] = np.unique(column[present], return_inverse=True)[1]
    return codes


def unique_scores(n_keys: int, max_size: int, kind: Score) -> FloatArray:
    r"""Return the score of an MSU by its size q = 0..Q, given Q keys.

    .. math::
        s_q = \prod_{d=q}^{\min(M, Q-1)} (Q - d) \;\text{(original)}, \qquad
        s_q / Q^q \;\text{(normalized)}, \qquad
        (2^{Q-q} - 1) \Big/ \binom{Q}{q} \;\text{(ihsn)}

    'original' is the score of Elliot et al. (2005) and of sdcMicro's ``original_scores=TRUE``, 'normalized' eq. 3.4 of
    Morais 2022, 'ihsn' sdcMicro's ``original_scores=FALSE``. As printed, the product with M = Q contains the factor 0;
    here it ends at Q - 1, as in sdcMicro. The scores of sdcMicro, and DIS-SUDA, take one or two keys for three.
    """
    scores = np.zeros(n_keys + 1)
    for q in range(1, max_size + 1):
        original = float(math.prod(n_keys - d for d in range(q, min(max_size, n_keys - 1) + 1)))
        scores[q] = {
            "original": original,
            "normalized": original / float(n_keys) ** q,
            "ihsn": (2.0 ** (n_keys - q) - 1) / math.comb(n_keys, q),
        }[kind]
    return scores


def dis_suda(scores: FloatArray, paired: int, n_keys: int, fraction: float = SAMPLING_FRACTION) -> FloatArray:
    r"""Return the probability that a match with each record is correct, as sdcMicro computes it.

    .. math::
        DIS = \frac{U \pi}{U \pi + P (1 - \pi)}, \qquad
        r_i = \Big(1 + \frac{U / DIS - U}{s_i^e \sum_j s_j^{-e}}\Big)^{-1}, \qquad e = 1 + \frac{8 - Q}{20}

    with U unique records, P = ``paired`` records in pairs and the sampling ``fraction`` :math:`\pi` (DIS: Skinner &
    Elliot 2002), so that U cancels; the sum is over records with a score, and the others have risk 0.
    """
    risk = np.zeros(len(scores))
    scored = scores > 0
    power = scores[scored] ** (1 + (8 - n_keys) / 20)
    wrong = paired * (1 - fraction) / fraction  # U / DIS - U
    risk[scored] = 1 / (1 + wrong / (power * (1 / power).sum()))
    return risk


def dis_intervals(risks: FloatArray) -> CountArray:
    """Count the records with a DIS-SUDA risk of 0, in (0, 0.1], (0.1, 0.2] .. (0.6, 0.7], and above 0.7."""
    places = np.searchsorted([0.0, *DIS_INTERVALS], risks, side="left")
    return np.bincount(places, minlength=len(DIS_INTERVALS) + 2)


def released_keys(view: PublishedView) -> IntArray:
    """Return codes of the published quasi-identifiers of the kept records, -1 where a cell says nothing."""
    labels = view.groups.labels[~view.suppressed]
    keys = np.empty((len(labels), len(view.schema.quasi_identifiers)), dtype=np.int32)
    for i, attribute in enumerate(view.schema.quasi_identifiers):
        cells = view.cells[attribute.name]
        codes = np.where(says_nothing(cells, attribute), np.int32(-1), Groups.equal_rows(cells.keys()).labels)
        keys[:, i] = codes[labels]
    return keys


# ---- metrics -------------------------------------------------------------------------------------


@metric("suda_records", title="Special uniques", better="lower")
def suda_records(table: Table, release: Release) -> float:  # noqa: ARG001  all metrics have one signature
    """Number of published records that are unique by at most eight of their quasi-identifiers."""
    return float(len(np.unique(_uniques(release).rows)))


@metric("suda_max", title="SUDA score, highest", better="lower")
def suda_max(table: Table, release: Release) -> float:  # noqa: ARG001
    """Highest SUDA score of a published record, unnormalized (Elliot et al. 2005)."""
    return _highest(_uniques(release).scores())


@metric("suda_mean", title="SUDA score, mean", better="lower")
def suda_mean(table: Table, release: Release) -> float:  # noqa: ARG001
    """Mean SUDA score of the published records, unnormalized (Elliot et al. 2005)."""
    return _mean(_uniques(release).scores())


@metric("suda_mean_normalized", title="SUDA score, mean, normalized", better="lower")
def suda_mean_normalized(table: Table, release: Release) -> float:  # noqa: ARG001
    """Mean SUDA score of the published records, each MSU's divided by the number of keys to the power of its size.

    Morais 2022, eq. 3.4.
    """
    return _mean(_uniques(release).scores("normalized"))


@metric("suda_mean_ihsn", title="SUDA score, mean, IHSN", better="lower")
def suda_mean_ihsn(table: Table, release: Release) -> float:  # noqa: ARG001
    """Mean SUDA score of the published records, with the scores of sdcMicro's original_scores=FALSE."""
    return _mean(_uniques(release).scores("ihsn"))


@metric("dis_suda_max", title="DIS-SUDA, highest", better="lower")
def dis_suda_max(table: Table, release: Release) -> float:  # noqa: ARG001
    """Highest DIS-SUDA risk of a published record, if the table is one percent of the population."""
    return _highest(_uniques(release).dis_scores())


@metric("dis_suda_mean", title="DIS-SUDA, mean", better="lower")
def dis_suda_mean(table: Table, release: Release) -> float:  # noqa: ARG001
    """Mean DIS-SUDA risk of the published records, if the table is one percent of the population."""
    return _mean(_uniques(release).dis_scores())


@metric("dis_suda_mean_ihsn", title="DIS-SUDA, mean, IHSN", better="lower")
def dis_suda_mean_ihsn(table: Table, release: Release) -> float:  # noqa: ARG001
    """Mean DIS-SUDA risk of the published records with the scores of sdcMicro's original_scores=FALSE."""
    return _mean(_uniques(release).dis_scores("ihsn"))


def _uniques(release: Release) -> SampleUniques:
    return minimal_sample_uniques(released_keys(release), MAX_SIZE)


def _highest(values: FloatArray) -> float:
    return float(values.max()) if len(values) else np.nan


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else np.nan
