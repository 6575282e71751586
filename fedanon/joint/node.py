"""The node's side: it answers queries with counts, recodes its rows by the plan, and trains on its release.

A :class:`Participant` has the rows that are counted and knows nothing of models; a :class:`JointNode` is the node of a
run, whose training rows a participant counts and releases.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon._version import __version__
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError, UpdateRejectedError
from fedanon.fields import build
from fedanon.joint import JOINT_METHODS
from fedanon.joint.axes import Axis, bin_rows, list_codes, make_axes
from fedanon.joint.masks import KEY_ARRAYS, Keys, mask_counts, read_keys
from fedanon.joint.method import JointMethod
from fedanon.joint.noise import RandomWords, seeded_words
from fedanon.joint.plan import Plan, PlannedRegions, group_rows
from fedanon.joint.queries import FINAL, PairQuery, Query, RegionQuery
from fedanon.learning.node import Node, NodeFacts
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.settings import RunSettings
from fedanon.learning.thesis_node import PublishedNode
from fedanon.privacy.federation_count import WARNING
from fedanon.release.gate import verify
from fedanon.release.release import Provenance, Release, release_of
from fedanon.types import CountArray, IntArray


class Participant:
    """The rows of one node in the protocol.

    Parameters
    ----------
    table : the rows that are counted and released.
    method : the joint method, with its parameters.
    number : of the node.
    seed : of the noise, for a method that derives it from a seed.
    """

    def __init__(self, table: Table, method: JointMethod, number: int, seed: int = 0) -> None:
        check_countable(table, method)
        self.table = list_codes(table)
        self.method = method
        self.number = number
        self.axes: list[Axis] = make_axes(table.schema)
        self._seed = seed

    @cached_property
    def _bins(self) -> IntArray:
        return bin_rows(self.table)

    # ---- queries --------------------------------------------------------------------------------

    def answer(self, arrays: list[NDArray[Any]], step: int, secret: bytes = b"") -> CountArray:
        """The counts for a query: all that the server ever learns of this node's rows.

        ``secret`` is the node's private key for the run, where counts are masked.
        """
        keys = self.read_keys(arrays)
        query = self._read_query(arrays[: len(arrays) - KEY_ARRAYS * bool(keys)])
        layout = query.layout(self.axes)
        counts = layout.count(self._bins, self.table.persons)
        if step >= FINAL and not self.method.noisy:
            counts = self._without_suppressed(counts, layout.total)
        scale = self.method.scale(step, query.n_counted)
        reported = self.method.disclosure.disclose(counts, scale, len(keys), self._words(step))
        return mask_counts(reported, secret, self.number, keys, step) if keys else reported

    def read_keys(self, arrays: list[NDArray[Any]]) -> Keys:
        """The keys that a query brings; none unless counts are masked."""
        if not self.method.disclosure.secure:
            return {}
        if len(arrays) < KEY_ARRAYS:
            raise UpdateRejectedError("the query brings no keys")
        return read_keys(arrays[-KEY_ARRAYS:])

    def _read_query(self, arrays: list[NDArray[Any]]) -> Query:
        kind = PairQuery if len(arrays) == 2 else RegionQuery
        return kind.from_arrays(arrays, self.axes)

    def _words(self, step: int) -> RandomWords | None:
        """The source of noise, where it is derived from a seed."""
        seeded = self.method.randomness == "seeded"
        return seeded_words(self._seed, self.number, *b"noise", step) if seeded else None

    def _without_suppressed(self, counts: CountArray, n_regions: int) -> CountArray:
        """Final counts without the rows that will be suppressed for lack of k_local people."""
        short = counts[-n_regions:] < self.method.k_local  # people come last
        return np.where(np.tile(short, len(counts) // n_regions), 0, counts)

    # ---- the release ----------------------------------------------------------------------------

    def release(self, plan: Plan) -> Release:
        """The verified release of the rows by the plan."""
        if self.number not in plan.nodes:
            raise InfeasibleError("This node was not counted, so the claim of the federation does not cover its rows.")
        cells = plan.cells(self.table.schema.quasi_identifiers)
        groups, classes = group_rows(plan, self.table, self.method.k_local)
        if groups.count == 0:
            raise InfeasibleError(
                f"No class holds k_local={self.method.k_local} people of this node; it has no release."
            )
        release = release_of(
            self.table,
            groups,
            {name: column.select(classes) for name, column in cells.items()},
            claim=self.method.claim(plan, cells),
            provenance=self._provenance(plan),
            recoding=PlannedRegions(plan),
        )
        return verify(release, self.table)

    def _provenance(self, plan: Plan) -> Provenance:
        return Provenance(
            method=self.method.name,
            parameters=self.method.to_dict(),
            seed=None,
            version=__version__,
            data_sha256=self.table.sha256,
            schema_sha256=self.table.schema.sha256,
            notes=(f"recoding {plan.sha256[:16]} agreed on by {len(plan.nodes)} nodes", WARNING),
        )


def check_countable(table: Table, method: JointMethod) -> None:
    """Raise ConfigError for a table that the noise of a method does not cover."""
    if table.persons is not None and method.noisy:
        raise ConfigError("Counts with noise take tables with one row per person; this one has a person_id column.")


def make_method(settings: RunSettings) -> JointMethod:
    """The joint method of a run."""
    method: JointMethod = build(JOINT_METHODS[settings.method], settings.method_settings)
    return method


class JointNode(Node):
    """A node of a run with a joint method."""

    def __init__(self, table: Table, settings: RunSettings, number: int, rules: NodeRules | None = None) -> None:
        table = list_codes(table)
        super().__init__(table, settings, number, rules)
        if settings.protocol != "corrected":
            raise ConfigError(f"The method {settings.method!r} needs the protocol 'corrected'.")
        self.method = make_method(settings)
        check_countable(table, self.method)
        self.axes: list[Axis] = make_axes(table.schema)
        self.schema_sha256 = table.schema.sha256
        self.has_persons = table.persons is not None
        self._plan: Plan | None = None

    @cached_property
    def participant(self) -> Participant:
        """Counts and releases the training rows."""
        return Participant(self._split[0], self.method, self.number, self.settings.seed)

    def adopt(self, plan: Plan) -> None:
        """Take the plan; what was made by another plan is forgotten."""
        if self._plan is not None and self._plan.sha256 != plan.sha256:
            for name in ("release", "data", "recoded_test", "facts"):
                self.__dict__.pop(name, None)
        self._plan = plan

    @cached_property
    def release(self) -> Release:
        """The verified release of the training rows by the plan."""
        if self._plan is None:
            raise InfeasibleError("The federation has not agreed on a recoding.")
        return self.participant.release(self._plan)

    @cached_property
    def facts(self) -> NodeFacts:
        """What the node may report about itself.

        A joint class holds rows of all nodes, of which this one knows only the cells, so its ncp is that of the cells.
        Computed from its own rows, few in each class, it would look too small.
        """
        facts = super().facts
        facts.measures["ncp"] = facts.measures["ncp_published"]
        return facts

    def __getstate__(self) -> dict[str, Any]:
        """A prepared node without raw rows: the participant has them."""
        return {name: value for name, value in super().__getstate__().items() if name != "participant"}


def make_node(table: Table, settings: RunSettings, number: int, rules: NodeRules | None = None) -> Node:
    """A node of the protocol and method of a run."""
    if settings.method in JOINT_METHODS:
        return JointNode(table, settings, number, rules)
    if settings.protocol == "as_published":
        return PublishedNode(table, settings, number, rules)
    return Node(table, settings, number, rules)
