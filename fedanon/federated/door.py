"""The open door of a simulation's nodes: what a node is asked before and after it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flwr.app import Array, Context, Message
from numpy.typing import NDArray

from fedanon.errors import FedanonError, PrivacyViolationError, RefusedError
from fedanon.federated import joint_state, wire
from fedanon.io.audit import AuditLog, audit
from fedanon.joint.disclosure import read_rules
from fedanon.joint.masks import Keys
from fedanon.joint.method import JointMethod
from fedanon.learning.dp_ledger import NodeLedger, former
from fedanon.learning.node import Node, NodeFacts
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters


class Door:
    """Lets everything pass that the node's config does not forbid: for simulations, on the researcher's own tables."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.config = context.node_config
        self.budget = NodeLedger.from_config(self.config)

    @property
    def rules(self) -> NodeRules | None:
        """What the node decides about its rows."""
        return None

    # ---- before anything is computed ------------------------------------------------------------

    def admit(self, settings: RunSettings, plan: Sequence[NDArray[Any]] = ()) -> None:
        """Refuse a run that the node does not take part in; ``plan`` are the arrays of an agreed recoding."""
        if self.budget:
            self.budget.check(settings)

    def admit_counts(self, settings: RunSettings, method: JointMethod) -> None:
        """Refuse to count for a run: nothing is given away for one that will be refused."""
        rules = read_rules(str(self.config.get("counts", "")))
        if method.counts not in rules:
            raise PrivacyViolationError(
                f"This node counts jointly only by {' or '.join(rules)}, not by {method.counts}."
            )
        if self.budget:
            self.budget.check(settings)
            self.budget.check_counts(method)

    def check_made(self, node: Node) -> None:
        """Refuse a node whose release, made just now, does not keep what is asked for; note one that does."""
        if AuditLog.wanted() is not None:  # facts are not worked out else
            self._note_release(node)

    def _note_release(self, node: Node, **more: Any) -> None:
        settings = node.settings
        made = {"method": settings.method, "settings": dict(settings.method_settings)}
        self.note("release", node=node.number, **made, facts=node.facts.to_dict(), **more)

    def check_node(self, node: Node) -> None:
        """Refuse a node, made now or kept from before, whose release reaches too small a k."""
        check_floor(node, int(former(self.config, "min-k", "least-k", 1)))

    # ---- answers --------------------------------------------------------------------------------

    def facts(self, node: Node) -> NodeFacts:
        """What the node reports about itself; metrics have no noise: where a budget is kept, they stay here."""
        return node.facts if node.settings.dp is None else replace(node.facts, measures={})

    def score_key(self, node: Node) -> tuple[bytes, ...]:
        """A signed key for masks, with which the node offers to share the noise of its scores; or nothing."""
        return ()

    def scores(
        self, node: Node, parameters: Parameters, number: int, keys: wire.SignedKeys | None = None
    ) -> dict[str, Any]:
        """What the node reports about a model; ``keys`` are those of nodes that share noise."""
        return dict(node.evaluate(parameters))

    def begin_count(self, method: JointMethod, step: int) -> None:
        """Note a question for counts before it is answered, or refuse it."""
        # paid before anything is noted: who could not pay is not taken for one who has
        if joint_state.nothing_answered(self.context) and self.budget:
            self.budget.spend_counts(method)
        joint_state.answer_once(self.context, step)

    def check_peers(self, method: JointMethod, keys: Keys) -> None:
        """Refuse to sum counts with these nodes."""

    def keep_peers(self, method: JointMethod, keys: Keys) -> None:
        """Note with whom counts are summed, or refuse them."""
        joint_state.keep_peers(self.context, keys, all_stay=method.noisy)

    def begin_app_reply(self, most: int) -> None:
        """Note that somebody else's app is asked, or refuse it: it answers at most so many messages of a run."""

    def end_app_reply(self, size: int, most: int) -> None:
        """Note the bytes of its answer, or refuse it: all of a run have at most so many."""

    def egress(self) -> dict[str, int]:
        """What has left the node in this run, as it was noted."""
        raise RefusedError("log", "Nobody notes what leaves a node of a simulation.")

    # ---- the log --------------------------------------------------------------------------------

    def note(self, event: str, **facts: Any) -> None:
        """Add a line to the audit log, if there is one."""
        audit(event, **facts)

    def send(self, kind: str, reply: Message, **facts: Any) -> Message:
        """Let an answer pass; updates stand in the audit log, if there is one."""
        if kind == "update":
            self.note(kind, **facts)
        return reply

    def refuse(self, kind: str, error: FedanonError) -> FedanonError:
        """What the server is told of an error."""
        return error


def check_floor(node: Node, min_k: int) -> None:
    """The node's own condition, whatever method the server asked for."""
    if min_k > 1 and not node.facts.measures["k_reached"] >= min_k:
        raise PrivacyViolationError(f"The release of this node does not reach the k of {min_k} it asks for.")


def content_bytes(message: Message) -> int:
    """How much a message says: the bytes of its arrays, eight per number, and those of its texts."""
    total = 0
    for record in message.content.values():
        for value in record.values():
            total += len(value.data) if isinstance(value, Array) else _size(value)
    return total


def _size(value: Any) -> int:
    if isinstance(value, list):
        return sum(_size(entry) for entry in value)
    return len(value) if isinstance(value, (str, bytes)) else 8
