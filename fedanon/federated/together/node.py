"""A hospital that anonymises together with others: it answers with counts, and recodes its rows by the plan."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon import parameters
from fedanon._version import __version__
from fedanon.data.hierarchy import IntArray
from fedanon.data.release import Provenance, Release, release_of
from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated.node import Node, NodeFacts
from fedanon.federated.settings import RunSettings
from fedanon.federated.together import TOGETHER
from fedanon.federated.together.axes import Axis, axes_of, bins_of
from fedanon.federated.together.mondrian import FederatedMondrian
from fedanon.federated.together.plan import Plan, PlannedRegions, planned_groups
from fedanon.federated.together.questions import FINAL, Counts, Layout, Question, count
from fedanon.privacy.federation_count import WARNING
from fedanon.privacy.verification import verify


def make_method(settings: RunSettings) -> FederatedMondrian:
    """The federated anonymizer of a run."""
    method: FederatedMondrian = parameters.build(TOGETHER[settings.method], settings.nested("method"))
    return method


class TogetherNode(Node):
    """One hospital in a run that anonymises together."""

    def __init__(self, table: Table, settings: RunSettings, number: int) -> None:
        super().__init__(table, settings, number)
        if settings.protocol != "corrected":
            raise ConfigError(f"The method {settings.method!r} needs the protocol 'corrected'.")
        self.method = make_method(settings)
        self.axes: list[Axis] = axes_of(table.schema)
        self.schema_sha256 = table.schema.sha256
        self.has_persons = table.persons is not None
        self._plan: Plan | None = None
        if self.has_persons and self.method.counts == "dp":
            raise ConfigError("counts='dp' takes tables with one row a person; this one has a person_id column.")

    # ---- before the release ---------------------------------------------------------------------

    @cached_property
    def _bins(self) -> IntArray:
        return bins_of(self._split[0])

    def answer(self, arrays: list[NDArray[Any]], step: int) -> Counts:
        """Counts for a question: all of this hospital's training rows the server ever learns of."""
        question = Question.from_arrays(arrays, self.axes)
        layout = Layout(question, self.axes)
        counts = count(layout, self._bins, self._split[0].persons)
        if step == FINAL and self.method.counts != "dp":
            counts = self._published(counts, layout.total)
        return self.method.disclosure.disclose(counts, self.method.scale(step, question.n_axes))

    def _published(self, counts: Counts, n_regions: int) -> Counts:
        """Final counts without the rows that will be suppressed for want of k_local people."""
        short = counts[-n_regions:] < self.method.k_local  # people come last
        return np.where(np.tile(short, len(counts) // n_regions), 0, counts)

    # ---- the release ----------------------------------------------------------------------------

    def adopt(self, plan: Plan) -> None:
        """Take the plan; what was made by another is forgotten."""
        if self._plan is not None and self._plan.sha256 != plan.sha256:
            for name in ("release", "data", "recoded_test", "facts"):
                self.__dict__.pop(name, None)
        self._plan = plan

    @cached_property
    def release(self) -> Release:
        """The verified release of the training rows by the plan."""
        if self._plan is None:
            raise InfeasibleError("The federation has not agreed on a recoding.")
        train, plan = self._split[0], self._plan
        if self.number not in plan.clients:
            raise InfeasibleError("This node was not counted, so the claim of the federation is not about its rows.")
        cells = plan.cells(train.schema.quasi_identifiers)
        groups, classes = planned_groups(plan, train, self.method.k_local)
        if groups.count == 0:
            raise InfeasibleError(
                f"No class holds k_local={self.method.k_local} people of this node; it has no release."
            )
        release = release_of(
            train,
            groups,
            {name: column.take(classes) for name, column in cells.items()},
            claim=self.method.claim(plan, cells),
            provenance=self._provenance(train, plan),
            recoding=PlannedRegions(plan),
        )
        return verify(release, train)

    def _provenance(self, train: Table, plan: Plan) -> Provenance:
        return Provenance(
            method=self.method.name,
            parameters=self.method.to_dict(),
            seed=None,
            version=__version__,
            data_sha256=train.sha256,
            schema_sha256=train.schema.sha256,
            notes=(f"recoding {plan.sha256[:16]} agreed on by {len(plan.clients)} hospitals", WARNING),
        )

    @cached_property
    def facts(self) -> NodeFacts:
        """What the node may tell about itself.

        Rows published together are those of all hospitals, of which this one knows only the cells: its ncp is that of
        the cells. Over its own rows alone, few in a class, it would flatter.
        """
        facts = super().facts
        facts.measures["ncp"] = facts.measures["ncp_published"]
        return facts

    def __getstate__(self) -> dict[str, Any]:
        """A prepared node without raw rows: their bins are as good as the rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "_bins"}
