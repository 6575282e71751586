"""GFKMC: generalize first, then weighted k-member clustering (Algorithms 4.2-4.6 of the thesis); and WKMCA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import KAnonymizer, ReleasePlan, publish_smallest_cells
from fedanon.anonymizers.enforcement import merge_short_groups
from fedanon.anonymizers.gfkmc.preparation import CoarseColumn, coarse_cells, coarse_columns, record_weights
from fedanon.data.cells import Cells
from fedanon.data.groups import Groups
from fedanon.data.spans import SpanTable, span_table
from fedanon.data.table import CodedColumn, Table
from fedanon.fields import parameter
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.recoding import NearestGroup
from fedanon.types import AnyArray, BoolArray, IndexArray, Rng

Columns = Sequence[CodedColumn]
Publish = Literal["lca", "centroid", "most_common_record", "most_common_value"]


@dataclass(frozen=True, kw_only=True)
class WeightedClustering(KAnonymizer):
    """Base of GFKMC and its ancestor WKMCA."""

    outlier_share: float = parameter(
        0.05, help="share of the records set aside as outliers (beta) until clusters have formed", at_least=0, at_most=1
    )
    farthest: Literal["max_min", "max_max"] | None = parameter(
        None, help="next seed: farthest from its nearest cluster (default), or from any (the thesis's code)"
    )

    @property
    def follows_thesis_code(self) -> bool:
        """Whether to do as the thesis's code does: raw numbers, ordinal ranks, candidates ordered once, truncation."""
        return False

    @property
    def follows_thesis_text(self) -> bool:
        """Whether to do as algorithms 4.3, 4.4 and 4.6 are printed: beta of the table, ordered once, random order."""
        return False

    def cluster(
        self, columns: Columns, coarse: list[CoarseColumn], values: AnyArray, rows: Groups, table_size: int, rng: Rng
    ) -> tuple[AnyArray, AnyArray]:
        """Cluster rows, given by their coarse ``values`` and their groups of equal rows.

        Returns the label of every row, and the row that represents each cluster.
        """
        from fedanon.anonymizers.gfkmc._kernel import weighted_clusters

        values = values[rows.first_rows]
        weights = record_weights(columns, coarse, values, rows.sizes, ordinal=self.follows_thesis_code)
        outlier = self._outliers(weights, rows.sizes, table_size)
        inliers, outliers = np.flatnonzero(~outlier), np.flatnonzero(outlier)
        if rows.sizes[inliers].sum() < self.k:
            return rows.labels.copy(), rows.first_rows  # too few to form a cluster: the repair merges them
        if self.follows_thesis_text:
            inliers = rng.permutation(inliers)  # what is left of them then joins in random order
        if self.follows_thesis_code or self.follows_thesis_text:
            outliers = rng.permutation(outliers)
        moves, seeds = weighted_clusters(
            span_table(columns),
            self._loss(columns),
            coarse_cells(coarse, values),
            rows.sizes.copy(),
            weights,
            inliers,
            outliers,
            self.k,
            int(rng.integers(len(inliers))),
            (self.farthest or ("max_max" if self.follows_thesis_code else "max_min")) == "max_max",
            self.follows_thesis_code or self.follows_thesis_text,
            self.follows_thesis_code,
        )
        moves = moves[np.argsort(moves[:, 0], kind="stable")]
        labels = np.empty(len(rows.labels), dtype=np.int64)
        labels[rows.order] = np.repeat(moves[:, 1], moves[:, 2])
        return labels, rows.first_rows[seeds]

    def _loss(self, columns: Columns) -> SpanTable:
        spans = span_table(columns, "heights")
        if not self.follows_thesis_code:
            return spans
        numeric = spans.scale > 0
        return spans._replace(scale=np.where(numeric, 1.0 / max(int(numeric.sum()), 1), 0.0), cap=np.inf)

    def _outliers(self, weights: AnyArray, sizes: AnyArray, table_size: int) -> BoolArray:
        """The groups of highest weight that together hold at most the outlier share of the records to be clustered.

        The thesis sets aside every group that reaches the weight of the beta-th record: beta is the share of all
        records of the table in its text, of the groups to be clustered in its code.
        """
        if self.follows_thesis_code or self.follows_thesis_text:
            of = len(weights) if self.follows_thesis_code else table_size
            beta = min(int(self.outlier_share * of), int(sizes.sum()))
            return weights >= -np.sort(-np.repeat(weights, sizes))[beta - 1] if beta else np.zeros(len(weights), bool)
        heavy_first = np.argsort(-weights, kind="stable")
        outlier = np.zeros(len(weights), dtype=bool)
        outlier[heavy_first] = np.cumsum(sizes[heavy_first]) <= self.outlier_share * sizes.sum()
        return outlier


@ANONYMIZERS.register("gfkmc")
@dataclass(frozen=True, kw_only=True)
class Gfkmc(WeightedClustering):
    """Generalize first (DAS and parent nodes), then cluster the rows that are still rarer than k.

    Profiles: ``default`` publishes intervals and lowest common ancestors, so every cell is true; ``paper`` follows
    algorithms 4.2 to 4.6 as the thesis prints them and publishes the seed record (the line of 4.5 that chooses the next
    seed is missing there: it is the one farthest from its nearest cluster); ``thesis`` follows the thesis's code (raw
    numbers, ordinal ranks, max-max seeds). All rules but ``lca`` publish some values that are not true: see
    `truthfulness`.
    """

    name = "gfkmc"
    # which rows of a coarse group go to which cluster follows their order, and so do the cells of their true values
    row_order_matters = True

    profile: Literal["default", "paper", "thesis"] = parameter("default", help="which description to follow")
    publish: Publish | None = parameter(
        None, help="what represents a cluster: lca in the default profile, centroid in the others"
    )

    das: bool | None = parameter(None, help="numbers go through DAS first; the default in all profiles but 'thesis'")

    @property
    def truthful(self) -> bool:  # type: ignore[override]
        """Only the lca rule publishes nothing false."""
        return self._rule == "lca"

    @property
    def follows_thesis_code(self) -> bool:
        """The thesis profile."""
        return self.profile == "thesis"

    @property
    def follows_thesis_text(self) -> bool:
        """The paper profile."""
        return self.profile == "paper"

    @property
    def _rule(self) -> Publish:
        return self.publish or ("lca" if self.profile == "default" else "centroid")

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """Group equal coarse rows; groups of at least k are final, the rest is clustered."""
        coarse = coarse_columns(table, das=not self.follows_thesis_code if self.das is None else self.das, parents=True)
        values = np.column_stack([c.of_code[table.codes[:, i]] for i, c in enumerate(coarse)])
        equal = Groups.equal_rows(values)
        final = equal.count_people(table.persons) >= self.k
        rest = np.flatnonzero(~final[equal.labels])
        labels, shown = np.full(len(table), -1, dtype=np.int64), np.empty(0, dtype=np.int64)
        if rest.size:
            ordered = self._largest_first(equal, rest)
            labels[rest], seeds = self.cluster(table.columns, coarse, values[rest], ordered, len(table), rng)
            shown = rest[seeds]
        labels = np.where(labels < 0, (np.cumsum(final) - 1 + len(shown))[equal.labels], labels)
        shown = np.concatenate([shown, equal.first_rows[final]])
        groups = merge_short_groups(table, Groups.from_labels(labels), KAnonymity(k=self.k))
        # a merged group is represented by the first of those it was made from
        representative = shown[groups.minimum(labels)]
        return ReleasePlan(groups, self._publish(table, groups, coarse, values, representative), NearestGroup())

    def republish(self, table: Table, groups: Groups, plan: ReleasePlan) -> Mapping[str, Cells]:
        """A merged group is represented by the first of those it was made from."""
        if self._rule == "lca":
            return super().republish(table, groups, plan)
        first = groups.minimum(plan.groups.labels)
        return {name: cells.select(first) for name, cells in plan.cells.items()}

    def _largest_first(self, equal: Groups, rest: AnyArray) -> Groups:
        """The groups of equal rows among ``rest``; largest first where the thesis's code is followed."""
        groups = Groups.from_labels(equal.labels[rest])
        if not self.follows_thesis_code:
            return groups
        rank = np.empty(groups.count, dtype=np.int64)
        rank[np.argsort(-groups.sizes, kind="stable")] = np.arange(groups.count)
        return Groups.from_labels(rank[groups.labels])

    def _publish(
        self, table: Table, groups: Groups, coarse: list[CoarseColumn], values: AnyArray, rows: AnyArray
    ) -> dict[str, Cells]:
        if self._rule == "lca":
            return publish_smallest_cells(table, groups)
        if self._rule == "centroid":
            shown = values[rows]
        elif self._rule == "most_common_record":
            shown = values[_most_common(groups, Groups.equal_rows(values).labels, rows)]
        else:
            shown = np.column_stack([column[_most_common(groups, column, rows)] for column in values.T])
        return {c.name: coarse[i].publish(shown[:, i]) for i, c in enumerate(table.columns)}


@ANONYMIZERS.register("wkmca")
@dataclass(frozen=True, kw_only=True)
class Wkmca(WeightedClustering):
    """Weighted k-member clustering (Yan et al. 2021), GFKMC's ancestor: single records, no early generalization."""

    name = "wkmca"

    def partition(self, table: Table, rng: Rng) -> IndexArray:
        """Cluster of every row."""
        single = np.empty(len(table), dtype=np.int32)
        single[table.distinct.order] = np.arange(len(table))
        coarse = coarse_columns(table, das=False, parents=False)
        values = np.column_stack([c.of_code[table.codes[:, i]] for i, c in enumerate(coarse)])
        labels, _ = self.cluster(table.columns, coarse, values, Groups(single, len(table)), len(table), rng)
        return labels


def _most_common(groups: Groups, values: AnyArray, centroids: AnyArray) -> IndexArray:
    """For every group a row that holds its most frequent value; ties go to the centroid's, then to the smallest."""
    pairs = Groups.equal_rows(np.column_stack([groups.labels, values]))
    rows = pairs.first_rows
    owner = groups.labels[rows]
    score = 2 * pairs.sizes + (values[rows] == values[centroids][owner])
    best = np.lexsort((-score, owner))
    first = np.flatnonzero(np.r_[True, np.diff(owner[best]) > 0] & (owner[best] >= 0))
    return np.asarray(rows[best[first]])
