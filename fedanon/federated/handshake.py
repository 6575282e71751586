"""How nodes come into a run: asked who they are, again if need be, and let in between rounds if they come late."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid

from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.federated import wire
from fedanon.joint.plan import Plan
from fedanon.learning.participants import Participants

log = logging.getLogger("fedanon")

#: a node that fails may have been interrupted; so often it is asked, and so long is waited in between
TRIES, PAUSE = 3, 1.0

#: asks nodes (round, kind, nodes, content), and returns the good replies
Ask = Callable[[int, str, Sequence[int], RecordDict | None], list[Message]]


class Visitor(NamedTuple):
    """A node that is online: the name it was registered under, and when it came."""

    name: str
    since: str


@dataclass(frozen=True, kw_only=True)
class Attendance:
    """Who is waited for, and who may come later.

    Parameters
    ----------
    nodes : how many are wanted before the first round.
    seconds : how long to ask again, where some of these do not answer.
    look : who is online, by identifier; without it, nobody is let in after the first round.
    """

    nodes: int = 0
    seconds: float = 0.0
    look: Callable[[], Mapping[int, Visitor]] | None = None


class Handshake:
    """Fills the participants of a run.

    Parameters
    ----------
    grid : the way to the nodes.
    participants : to be filled.
    ask : see :data:`Ask`.
    attendance : see :class:`Attendance`.
    """

    def __init__(self, grid: Grid, participants: Participants, ask: Ask, attendance: Attendance) -> None:
        self._grid = grid
        self._participants = participants
        self._ask = ask
        self._door = attendance
        self._plan: Plan | None = None
        #: when a node had come that was asked
        self._asked: dict[int, str] = {}
        self._left_out: set[int] = set()
        #: signed keys of the nodes that share the noise of private scores
        self.score_keys: dict[int, tuple[bytes, bytes]] = {}

    def look(self) -> Mapping[int, Visitor]:
        """Who is online, as far as that is known; their names are noted."""
        here = self._door.look() if self._door.look else {}
        self._participants.names |= {node: who.name for node, who in here.items() if who.name}
        return here

    def meet(self, plan: Plan | None = None) -> None:
        """Ask nodes, or those a plan counts, who they are; leave out who means something else by the same columns.

        Raises
        ------
        InfeasibleError
            If none can take part.
        """
        self._plan = plan
        wanted = max(min(self._door.nodes, len(plan.nodes)) if plan else self._door.nodes, 1)
        end, tries = time.monotonic() + self._door.seconds, Counter[int]()
        while True:
            nodes = [node for node in self._online() if tries[node] < TRIES and not self._is_settled(node)]
            self._greet(0, nodes)
            tries.update(nodes)
            settled = sum(self._is_settled(node) or tries[node] == TRIES for node in tries)
            if settled >= wanted or time.monotonic() >= end:
                break
            time.sleep(PAUSE)
        missing = sorted(node for node in tries if not self._is_settled(node))
        self._participants.note_unresponsive(0, missing, MessageType.QUERY)
        if not self._participants.facts:
            raise InfeasibleError(
                f"None of {len(tries)} nodes could prepare its data; the first reasons are in the log."
            )
        self._participants.check_agreement()

    def welcome(self, number: int) -> None:
        """Before a round: let in who has come since, or come back, and was not part of the run."""
        if self._door.look is None:
            return
        here = self._door.look()
        new = [n for n, who in here.items() if n not in self._participants.facts and self._asked.get(n) != who.since]
        if new:
            self._greet(number, sorted(new))
        for node in set(new) & set(self._participants.facts):
            log.warning("round %d: %s joins", number, self._participants.label(node))

    def _online(self) -> list[int]:
        """The nodes that may take part."""
        nodes, numbers = sorted(self._grid.get_node_ids()), self._participants.numbers
        return nodes if self._plan is None else [n for n in nodes if numbers.get(n) in self._plan.nodes]

    def _is_settled(self, node: int) -> bool:
        """Whether a node takes part, or is left out for what it said."""
        return node in self._participants.facts or node in self._left_out

    def _greet(self, number: int, nodes: Sequence[int]) -> None:
        """Ask nodes who they are, and admit those that answer."""
        here = self.look()
        self._asked |= {node: here[node].since if node in here else "" for node in nodes}
        content = None
        if self._plan is not None:
            content = wire.request_content(0, wire.pack_arrays(self._plan.to_arrays()))
        replies = self._ask(number, MessageType.QUERY, nodes, content) if nodes else []
        for reply in sorted(replies, key=lambda reply: self._participants.label(reply.metadata.src_node_id)):
            node = reply.metadata.src_node_id
            try:
                number_of, facts = wire.read_facts(reply)
                key = wire.read_score_key(reply)
                if key and key[0] in (known for other, (known, _) in self.score_keys.items() if other != node):
                    raise UpdateRejectedError("it sends no key of its own")
                self._participants.admit(node, number_of, facts)
                self._left_out.discard(node)
                if key:
                    self.score_keys[node] = key
            except UpdateRejectedError as error:
                self._left_out.add(node)
                self._participants.reject(number, node, str(error))
