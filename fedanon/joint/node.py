"""A node of a run that anonymises together: a hospital that counts its training rows, then trains on its release."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from fedanon.data.table import Table
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.fields import build
from fedanon.joint import TOGETHER
from fedanon.joint.axes import Axis, axes_of
from fedanon.joint.hospital import Hospital, check_countable
from fedanon.joint.method import FederatedAnonymizer
from fedanon.joint.plan import Plan
from fedanon.learning.node import Node, NodeFacts
from fedanon.learning.settings import RunSettings
from fedanon.learning.thesis_node import PublishedNode
from fedanon.release.release import Release


def make_method(settings: RunSettings) -> FederatedAnonymizer:
    """The federated anonymizer of a run."""
    method: FederatedAnonymizer = build(TOGETHER[settings.method], settings.nested("method"))
    return method


def make_node(table: Table, settings: RunSettings, number: int) -> Node:
    """A node of the run's protocol."""
    if settings.method in TOGETHER:
        return TogetherNode(table, settings, number)
    if settings.protocol == "as_published":
        return PublishedNode(table, settings, number)
    return Node(table, settings, number)


class TogetherNode(Node):
    """One hospital in a run that anonymises together."""

    def __init__(self, table: Table, settings: RunSettings, number: int) -> None:
        super().__init__(table, settings, number)
        if settings.protocol != "corrected":
            raise ConfigError(f"The method {settings.method!r} needs the protocol 'corrected'.")
        self.method = make_method(settings)
        check_countable(table, self.method)
        self.axes: list[Axis] = axes_of(table.schema)
        self.schema_sha256 = table.schema.sha256
        self.has_persons = table.persons is not None
        self._plan: Plan | None = None

    @cached_property
    def hospital(self) -> Hospital:
        """What counts the training rows."""
        return Hospital(self._split[0], self.method, self.number, self.settings.seed)

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
        return self.hospital.release(self._plan)

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
        """A prepared node without raw rows: the hospital that counts has them."""
        return {name: value for name, value in super().__getstate__().items() if name != "hospital"}
