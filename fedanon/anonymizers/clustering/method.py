"""Clustering: records are gathered into classes of at least k that lose little when published together.

Classes grow around seeds: the nearest neighbors of a random one (CB, as in the thesis), k-member (Byun et al. 2007)
and one-pass k-means (OKA, Lin & Wei 2008). Top-down greedy (TDG, Xu et al. 2006) splits them instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import ReleasePlan
from fedanon.anonymizers.guide import GuidedAnonymizer
from fedanon.data.spans import code_table, span_table
from fedanon.data.table import Table
from fedanon.fields import parameter
from fedanon.types import IntArray, Rng


@dataclass(frozen=True, kw_only=True)
class RecordClustering(GuidedAnonymizer):
    """Base of the methods that compare records by the loss of publishing them together."""

    profile: Literal["default", "thesis"] = parameter(
        "default", help="'thesis' treats numeric attributes with a hierarchy as categorical"
    )

    def plan(self, table: Table, rng: Rng) -> ReleasePlan:
        """In the thesis profile, on the taxonomies alone."""
        return super().plan(table.with_taxonomies() if self.profile == "thesis" else table, rng)

    def enforce_requirements(self, table: Table, plan: ReleasePlan) -> ReleasePlan:
        """In the thesis profile, on the taxonomies alone."""
        return super().enforce_requirements(table.with_taxonomies() if self.profile == "thesis" else table, plan)

    def partition(self, table: Table, rng: Rng) -> IntArray:
        """Cluster the rows in a canonical order, so that the input's order does not matter.

        The order decides between equally near records; the thesis profile keeps the file's, as its runs did.
        """
        table = self.view(table)
        canonical = np.arange(len(table)) if self.profile == "thesis" else table.distinct.order
        codes = code_table(table)
        codes = codes._replace(flat=codes.flat[canonical])
        labels = np.empty(len(table), dtype=np.int32)
        labels[canonical] = self.gather(span_table(table.columns), codes, rng)
        return labels

    def gather(self, spans: Any, codes: Any, rng: Rng) -> IntArray:
        """Cluster number of every record."""
        raise TypeError(f"{type(self).__name__} must define gather().")


@ANONYMIZERS.register("cb")
@dataclass(frozen=True, kw_only=True)
class NearestNeighborClustering(RecordClustering):
    """Clustering-based (CB): a random seed record and its k - 1 nearest; the last records join the nearest class."""

    name = "cb"

    def gather(self, spans: Any, codes: Any, rng: Rng) -> IntArray:
        """Cluster number of every record."""
        from fedanon.anonymizers.clustering._kernel import nearest_neighbor_clusters

        draws = rng.random(len(codes.flat) // self.k)
        return np.asarray(nearest_neighbor_clusters(spans, codes, self.k, draws))


@ANONYMIZERS.register("k_member")
@dataclass(frozen=True, kw_only=True)
class KMember(RecordClustering):
    """k-member: each class starts at the record farthest from the last and grows by least information loss."""

    name = "k_member"

    def gather(self, spans: Any, codes: Any, rng: Rng) -> IntArray:
        """Cluster number of every record."""
        from fedanon.anonymizers.clustering._kernel import k_member_clusters

        return np.asarray(k_member_clusters(spans, codes, self.k, int(rng.integers(len(codes.flat)))))


@ANONYMIZERS.register("oka")
@dataclass(frozen=True, kw_only=True)
class OnePassKMeans(RecordClustering):
    """OKA: every record joins the nearest of n / k random seeds; classes above k then give to those below."""

    name = "oka"

    def gather(self, spans: Any, codes: Any, rng: Rng) -> IntArray:
        """Cluster number of every record."""
        from fedanon.anonymizers.clustering._kernel import one_pass_clusters

        return np.asarray(one_pass_clusters(spans, codes, self.k, rng.permutation(len(codes.flat))))


@ANONYMIZERS.register("tdg")
@dataclass(frozen=True, kw_only=True)
class TopDownGreedy(RecordClustering):
    """Top-down greedy (TDG), utility-based local recoding.

    The farthest pair is approached in three rounds; every record goes to the nearer of the two. A side with fewer
    than k takes the nearest records of the other, or the class stays whole, whichever loses less.
    """

    name = "tdg"

    def gather(self, spans: Any, codes: Any, rng: Rng) -> IntArray:
        """Class number of every record."""
        from fedanon.anonymizers.clustering._kernel import top_down_greedy

        return np.asarray(top_down_greedy(spans, codes, self.k, rng.random(len(codes.flat))))
