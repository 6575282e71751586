"""DP microaggregation: the means of groups of k, with k times less noise than single records would need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer, ReleasePlan, refuse_few_people
from fedanon.data.cells import Cells, Numbers
from fedanon.data.groups import Groups
from fedanon.data.schema import Numeric
from fedanon.data.spans import points
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import parameter
from fedanon.privacy.accounting.accountant import gaussian_deviation
from fedanon.privacy.accounting.noise import SLACK, Randomness, noise_source
from fedanon.privacy.models.differential_privacy import DifferentialPrivacy, Distribution, Sensitivity
from fedanon.release.gate import verify
from fedanon.release.recoding import NearestGroup
from fedanon.release.release import Release, release_of
from fedanon.types import FloatArray, IndexArray, Rng

SECURE = "The noise was drawn from the system's randomness: this release cannot be reproduced."
SEEDED = "The noise follows from the seed, and whoever knows the seed can remove it: nothing is promised."
ORDER = "Rows are published group by group: their order is not that of the table."
RANGES = "The promise holds only if the declared ranges were not derived from the data."
#: how records are sorted
Order = Literal["curve", "corner"]
#: a value is a whole number of steps of its range, so that sums are exact
STEPS = 2**32


@ANONYMIZERS.register("dp_microaggregation")
@dataclass(frozen=True, kw_only=True)
class DpMicroaggregation(Anonymizer):
    r"""Insensitive microaggregation with noise on the group means (Soria-Comas et al. 2014).

    Groups of k are cut from a total order of the domain, so that one record changes a mean by at most range / k, and
    all G means of m columns together by :math:`\Delta = m G / k` ranges. With delta 0 every mean gets Laplace noise of
    scale :math:`\Delta / \varepsilon`, else normal noise for :math:`\Delta_2 = \sqrt{m G} / k` (Balle & Wang 2018). The
    results are clamped to the declared ranges. Sizes of groups follow from n and k: there is no count to protect.
    k = 1 publishes every record with noise of its own, for which nothing is sorted and Delta is m.

    Columns that are not quasi-identifiers are left empty: beside the noisy ones they would reveal who is who.
    """

    name = "dp_microaggregation"
    truthful = False
    numeric_only = True

    k: int = parameter(help="records in a group; above the square root of n noise is less than with k = 1", at_least=1)
    epsilon: float = parameter(1.0, help="privacy budget of the release", at_least=1e-6)
    delta: float = parameter(0.0, help="0 for Laplace noise, above for normal noise", at_least=0, at_most=0.5)
    order: Order = parameter(
        "curve", help="sorting of records: along a space-filling curve, or by distance from a corner"
    )
    randomness: Randomness = parameter("secure", help="'seeded' noise is for experiments: it promises nothing")

    def anonymize(self, table: Table, *, rng: Rng | int) -> Release:
        """Publish ``table``; only noise from ``randomness='seeded'`` depends on ``rng``."""
        generator = np.random.default_rng(rng)
        self._refuse_unfit(table)
        plan = self.plan(table, generator)
        provenance = self.provenance(table, generator, plan)
        secure = self.randomness == "secure"
        release = release_of(
            table,
            plan.groups,
            plan.cells,
            claim=self._promise(plan.groups, len(table.columns)) if secure else None,
            provenance=replace(provenance, seed=None) if secure else provenance,
            recoding=plan.recoding,
        )
        return verify(replace(release, passthrough=_emptied(release.passthrough), in_group_order=True), table)

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """The groups with their noisy means."""
        groups = self._groups(table)
        promise = self._promise(groups, len(table.columns))
        source = noise_source(self.randomness, rng)
        add = source.laplace if promise.noise == "laplace" else source.gaussian
        shares = add(group_shares(range_steps(table), groups), promise.scale)
        return ReleasePlan(groups, _cells(table, np.clip(shares, 0.0, 1.0)), NearestGroup(), self._notes(table))

    def _refuse_unfit(self, table: Table) -> None:
        super()._refuse_unfit(table)
        if table.schema.pseudonym is not None:
            raise ConfigError("Differential privacy is promised of single rows; it publishes no pseudonyms.")
        refuse_few_people(table, self.k)

    def _groups(self, table: Table) -> Groups:
        if self.k == 1:
            return Groups(np.arange(len(table), dtype=np.int32), len(table))
        return Groups.from_labels(insensitive_groups(range_steps(table), self.k, self.order))

    def _promise(self, groups: Groups, columns: int) -> DifferentialPrivacy:
        """The budget, and the noise that keeps it for these groups."""
        change = Sensitivity.from_groups(groups, columns)
        noise: Distribution = "gaussian" if self.delta else "laplace"
        scale = change.l2 * gaussian_deviation(self.epsilon, self.delta) if self.delta else change.l1 / self.epsilon
        return DifferentialPrivacy(epsilon=self.epsilon, delta=self.delta, noise=noise, scale=scale * (1 + SLACK))

    def _notes(self, table: Table) -> tuple[str, ...]:
        quasi = {column.name for column in table.columns}
        others = [name for name in table.frame.columns if name not in quasi]
        notes = [SECURE if self.randomness == "secure" else SEEDED, RANGES, ORDER]
        if others:
            notes.append(f"Left empty, since they would be published without noise: {', '.join(others)}.")
        if table.persons is not None:
            notes.append("The unit is a row: for a person of r rows epsilon is r times as large, and delta grows too.")
        return tuple(notes)


def _cells(table: Table, shares: FloatArray) -> dict[str, Cells]:
    """Means in the units of the columns, never beyond their ranges."""
    cells: dict[str, Cells] = {}
    for column, share in zip(table.columns, shares.T, strict=True):
        assert isinstance(column.attribute, Numeric)
        low, high = column.attribute.low, column.attribute.high
        cells[column.name] = Numbers(np.clip(low + share * (high - low), low, high))
    return cells


def _emptied(rest: pd.DataFrame) -> pd.DataFrame:
    """The columns without a value."""
    return pd.DataFrame(
        {name: pd.Series(None, index=rest.index, dtype=object) for name in rest.columns}, index=rest.index
    )


# ---- Insensitive groups --------------------------------------------------------------------------
#
# Replacing one record changes every group by at most one record (Domingo-Ferrer & Soria-Comas 2014): it leaves its
# group and enters another, and each group in between passes one record on to the next. Methods such as MDAV follow no
# such order: one record can rearrange all groups.


def range_steps(table: Table) -> IndexArray:
    """The records as steps of the declared ranges, 0 .. STEPS - 1; all columns must be numeric and known."""
    low = np.array([column.attribute.low for column in table.columns])  # type: ignore[union-attr]
    width = np.array([column.attribute.width for column in table.columns])  # type: ignore[union-attr]
    share = np.clip((points(table) - low) / width, 0.0, 1.0)
    return np.asarray(np.minimum(np.rint(share * STEPS), STEPS - 1), dtype=np.int64)


def insensitive_groups(steps: IndexArray, k: int, order: Order) -> IndexArray:
    """Group of every record: each k in a row of the order, the last up to 2k - 1; their number follows from n and k."""
    count = max(len(steps) // k, 1)
    labels = np.empty(len(steps), dtype=np.int64)
    labels[total_order(steps, order)] = np.minimum(np.arange(len(steps)) // k, count - 1)
    return labels


def total_order(steps: IndexArray, order: Order) -> IndexArray:
    """The records sorted; between records that differ, only their own values decide.

    'curve' follows the Z-order curve through the domain (Morton 1966), on which neighbors are near in all columns;
    'corner' sorts by the distance to the lower corner of the domain, as the paper has it.
    """
    if order == "curve":
        return np.argsort(_curve_keys(steps), kind="stable")
    distance = np.square(steps / STEPS).sum(axis=1)
    return np.lexsort((*steps.T[::-1], distance))


def _curve_keys(steps: IndexArray) -> NDArray[np.void]:
    """The bits of all columns, the highest of every column first, as byte strings that sort in that order."""
    digits = steps.astype(">u4").view(np.uint8).reshape(*steps.shape, 4)
    bits = np.unpackbits(digits, axis=2).transpose(0, 2, 1).reshape(len(steps), -1)
    packed = np.ascontiguousarray(np.packbits(bits, axis=1))
    return packed.view(f"S{packed.shape[1]}").ravel()


def group_shares(steps: IndexArray, groups: Groups) -> FloatArray:
    """The mean of every group in units of the ranges, 0 .. 1; the sums are exact, so the bound on one record is too."""
    return np.asarray(groups.total(steps) / groups.sizes[:, None] / STEPS)
