"""The server side of the Flower app: the rounds of a run over messages."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from flwr.app import Message, MessageType, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.federated import wire
from fedanon.federated.handshake import Attendance, Handshake
from fedanon.federated.joint_server import JointSession, record_protocol
from fedanon.federated.shared_scores import add_up_shares, pack_score_keys
from fedanon.joint import JOINT_METHODS
from fedanon.joint.protocol import Agreement
from fedanon.learning.aggregators import Aggregator, Listener
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.participants import Participants
from fedanon.learning.rounds import Reply, Rounds, RoundScores, RunResult
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters

log = logging.getLogger("fedanon")

Packed = tuple[Parameters, RecordDict]


class FederatedRun:
    """A run of the server over a Flower grid.

    Parameters
    ----------
    grid : Flower's way to the nodes; in-process, Ray or deployed.
    settings : of the run.
    checkpoints : where every round is kept, or None.
    score : what someone who looks on adds to the scores of a round, given what a node would be sent.
    on_round : called with the scores of every evaluated round.
    timeout : seconds to wait for replies, or None.
    forgetful : nodes keep nothing between messages, so each message brings the whole model.
    attendance : how nodes come into the run; by default, all that are there are asked once.
    ask_egress : whether nodes are asked at the end what has left them; those of a simulation do not note it.
    """

    def __init__(
        self,
        grid: Grid,
        settings: RunSettings,
        *,
        checkpoints: Checkpoints | None = None,
        score: Callable[[Parameters], Mapping[str, float]] | None = None,
        on_round: Callable[[RoundScores], None] | None = None,
        timeout: float | None = None,
        forgetful: bool = False,
        attendance: Attendance | None = None,
        ask_egress: bool = False,
    ) -> None:
        self.grid = grid
        self.settings = settings
        self._checkpoints = checkpoints
        self._score = score
        self._on_round = on_round
        self._timeout = timeout
        self._forgetful = forgetful
        self._ask_egress = ask_egress
        self._participants = Participants()
        ask = partial(self._ask, note=False)
        self._handshake = Handshake(grid, self._participants, ask, attendance or Attendance())

    def run(self) -> RunResult:
        """Agree on a recoding if the method is a joint one, learn who is there, and train for all rounds."""
        agreement, asked = None, 0
        if self.settings.method in JOINT_METHODS:
            asked = record_protocol(self._checkpoints, self.settings)
            self._handshake.look()
            agreement = self._agree()
        self._handshake.meet(agreement.plan if agreement else None)
        if agreement:
            agreement.check_confirmed({self._participants.numbers[node] for node in self._participants.facts})
        rounds = Rounds(
            self.settings,
            self._participants,
            self,
            checkpoints=self._checkpoints,
            score=self._score,
            on_round=self._on_round,
            # noise and recodings are computed for the nodes of the first round
            before_round=None if self.settings.dp or agreement else self._handshake.welcome,
        )
        outcome = replace(rounds.run(), joint=agreement.to_dict(asked) if agreement else None)
        return replace(outcome, egress=self._egress()) if self._ask_egress else outcome

    # ---- before the first round -----------------------------------------------------------------

    def _agree(self) -> Agreement:
        """The recoding on which the nodes agree."""

        def send(step: int, kind: str, nodes: Sequence[int], content: RecordDict) -> list[Message]:
            return self._ask(step, kind, nodes, content=content)

        session = JointSession(self.settings, send, self._participants.reject)
        return session.agree(sorted(self.grid.get_node_ids()), self._participants.numbers)

    # ---- rounds (see fedanon.learning.rounds.Transport) -----------------------------------------

    def train(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        """Ask nodes to train from the global model."""
        return [_plain(reply) for reply in self._ask(number, MessageType.TRAIN, nodes, model=model)]

    def evaluate(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        """Ask nodes to score the global model."""
        asked = [node for node in nodes if node in self._handshake.score_keys]
        keys = pack_score_keys(self._handshake.score_keys, self._participants.numbers, asked)
        replies = [_plain(r) for r in self._ask(number, MessageType.EVALUATE, nodes, model=model, keys=keys)]
        summed, missing = add_up_shares(replies, asked if keys else [])
        for node in missing:  # it may have lost its key
            del self._handshake.score_keys[node]
        return summed

    # ---- after the last round -------------------------------------------------------------------

    def _egress(self) -> dict[int, dict[str, int]]:
        """What nodes say has left them in this run, by number; those that do not say it are missing."""
        told: dict[int, dict[str, int]] = {}
        content = wire.request_content(self.settings.rounds, wire.pack_arrays([]))
        for reply in self._ask(self.settings.rounds, wire.TELL_EGRESS, self._participants.nodes, content, note=False):
            with contextlib.suppress(UpdateRejectedError):
                told[self._participants.numbers[reply.metadata.src_node_id]] = wire.read_egress(reply)
        return told

    # ---- messages -------------------------------------------------------------------------------

    def _ask(
        self,
        number: int,
        kind: str,
        nodes: Sequence[int],
        content: RecordDict | None = None,
        *,
        model: Aggregator | None = None,
        keys: Sequence[NDArray[Any]] = (),
        note: bool = True,
    ) -> list[Message]:
        """Send, and return the good replies in the order of the nodes' numbers; failures are logged.

        What is sent is ``content``, or the model in the form each node needs, with ``keys``; ``note`` notes who does
        not answer.
        """
        if model is not None and self._forgetful:
            for node in nodes:
                model.forget(node)
        packed: list[Packed] = []
        messages = [
            wire.request(n, kind, number, content or self._packed(number, model, (n, kind), packed, keys))
            for n in nodes
        ]
        replies = list(self.grid.send_and_receive(messages, timeout=self._timeout))
        good = [reply for reply in replies if not reply.has_error()]
        for reply in replies:
            if reply.has_error():
                log.warning("%s failed: %s", self._participants.label(reply.metadata.src_node_id), reply.error.reason)
        answered = {reply.metadata.src_node_id for reply in good}
        missing = [node for node in nodes if node not in answered]
        if note:
            self._participants.note_unresponsive(number, missing, kind)
        if model is not None:
            for node in missing:
                model.forget(node)  # it may have lost what it held
        numbers = self._participants.numbers
        return sorted(good, key=lambda r: (numbers.get(r.metadata.src_node_id, 0), r.metadata.src_node_id))

    @staticmethod
    def _packed(
        number: int,
        model: Aggregator | None,
        listener: Listener,
        packed: list[Packed],
        keys: Sequence[NDArray[Any]],
    ) -> RecordDict:
        """What a listener is sent; what is the same for the next node is packed once."""
        arrays = model.pending_updates(listener) if model else []
        if not packed or packed[-1][0] is not arrays:
            packed.append((arrays, wire.request_content(number, wire.pack_arrays(arrays), keys)))
        return packed[-1][1]


def _plain(message: Message) -> Reply:
    return Reply(
        message.metadata.src_node_id,
        read_update=partial(wire.read_update, message),
        read_scores=partial(wire.read_scores, message),
    )


def wait_for_nodes(grid: Grid, count: int, seconds: float) -> None:
    """Wait until ``count`` nodes are there; raise InfeasibleError if they do not come in time."""
    end = time.monotonic() + seconds
    while (found := len(list(grid.get_node_ids()))) < count:
        if time.monotonic() > end:
            raise InfeasibleError(f"{found} of {count} nodes came within {seconds:g} seconds.")
        time.sleep(0.1)
