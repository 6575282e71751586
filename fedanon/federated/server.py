"""The server side: facts first, then rounds of training, validation, aggregation, checkpoint and evaluation."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

from fedanon.errors import InfeasibleError, SchemaError, UpdateRejectedError
from fedanon.federated import wire
from fedanon.federated.joint_server import Together, note_asking
from fedanon.joint import TOGETHER
from fedanon.joint.plan import Plan
from fedanon.joint.protocol import Agreement
from fedanon.learning.aggregators import Aggregator, Listener, ReadUpdate, make_aggregator
from fedanon.learning.checkpoints import Checkpoint, Checkpoints
from fedanon.learning.dp_training import PrivateAverage, TrainingBudget, sampled
from fedanon.learning.node import NodeFacts
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model, make_strategy
from fedanon.learning.suspicion import Suspicion
from fedanon.learning.validation import check_scores, check_weight
from fedanon.models.base import Parameters

log = logging.getLogger("fedanon")

Round = dict[str, Any]
OnRound = Callable[[Round, Parameters], None]
#: who looks on, beside the nodes
WATCHER: Listener = (-1, "watch")
Packed = tuple[Parameters, RecordDict]
Accepted = tuple[Message, ReadUpdate]


@dataclass
class Outcome:
    """What a run yields."""

    parameters: Parameters
    rounds: list[Round] = field(default_factory=list)
    facts: dict[int, NodeFacts] = field(default_factory=dict)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    silent: list[dict[str, Any]] = field(default_factory=list)
    together: dict[str, Any] | None = None
    dp: dict[str, Any] | None = None
    suspects: list[dict[str, Any]] = field(default_factory=list)


class Federation:
    """A run of the server over a Flower grid.

    Parameters
    ----------
    grid : Flower's way to the nodes; in-process, Ray or deployed.
    settings : of the run.
    checkpoints : where every round is kept, or None.
    on_round : called after every evaluated round with its scores, and with what a node would be sent.
    timeout : seconds to wait for replies, or None.
    forgetful : nodes keep nothing between messages, so each message brings the whole model.
    """

    def __init__(
        self,
        grid: Grid,
        settings: RunSettings,
        *,
        checkpoints: Checkpoints | None = None,
        on_round: OnRound | None = None,
        timeout: float | None = None,
        forgetful: bool = False,
    ) -> None:
        self.grid = grid
        self.settings = settings
        self._checkpoints = checkpoints
        self._on_round = on_round or (lambda _round, _parameters: None)
        self._timeout = timeout
        self._forgetful = forgetful
        self._numbers: dict[int, int] = {}  # node id -> number
        self._facts: dict[int, NodeFacts] = {}
        self._rejected: list[dict[str, Any]] = []
        self._silent: list[dict[str, Any]] = []
        self._suspicion = Suspicion()
        self._budget: TrainingBudget | None = None
        self._asked = 0  # protocols for a common recoding, with those of a run that is resumed

    def run(self) -> Outcome:
        """Train for all rounds, from the last checkpoint if there is one."""
        agreement = self._agree()
        self._meet(agreement.plan if agreement else None)
        if agreement:
            agreement.check_confirmed(self._known_numbers)
        self._budget = TrainingBudget.for_run(self.settings, len(self._facts), self._checkpoints)
        model = self._aggregator()
        last = self._checkpoints.last(self.settings) if self._checkpoints else None
        if last:
            model.restore(last.parameters)
            self._rejected, self._silent = last.rejected + self._rejected, last.silent + self._silent
            self._suspicion = Suspicion.restored(last.evidence)
        rounds = list(last.rounds) if last else []
        for number in range(last.round_number + 1 if last else 1, self.settings.rounds + 1):
            if self._budget and not self._budget.spend(number):
                log.warning("round %d: the privacy budget is spent; the training ends here", number)
                if not rounds or rounds[-1]["round"] < number - 1:
                    self._score(number - 1, model, rounds)
                break
            try:
                self._train(number, model)
            except InfeasibleError:
                self._keep(number - 1, model, rounds)  # with what went wrong in this round
                raise
            if number % self.settings.evaluate_every == 0 or number == self.settings.rounds:
                self._score(number, model, rounds)
            self._keep(number, model, rounds)
        facts = {self._numbers[node]: facts for node, facts in self._facts.items()}
        together = agreement.to_dict(self._asked) if agreement else None
        dp = self._budget.to_dict() if self._budget else None
        suspects = self._suspicion.suspects()
        return Outcome(model.parameters, rounds, facts, self._rejected, self._silent, together, dp, suspects)

    def _aggregator(self) -> Aggregator:
        model = make_model(self.settings)
        if self._budget and self._budget.dp.mode == "central":
            return PrivateAverage(model, self._width, self._budget)
        strategy = make_strategy(self.settings)
        return make_aggregator(model, self._width, strategy, max_move=self.settings.max_move)

    def _score(self, number: int, model: Aggregator, rounds: list[Round]) -> None:
        """Add the scores of a round, and what is spent of the privacy budget, where there is one."""
        spent = {"epsilon_spent": self._budget.epsilon} if self._budget else {}
        rounds.append({"round": number, **self._evaluate(number, model), **spent})
        self._on_round(rounds[-1], model.pending_updates(WATCHER))

    def _keep(self, number: int, model: Aggregator, rounds: list[Round]) -> None:
        if self._checkpoints:
            evidence = self._suspicion.to_keep()
            checkpoint = Checkpoint(number, model.parameters, rounds, self._rejected, self._silent, evidence)
            self._checkpoints.save(self.settings, checkpoint)

    # ---- before the first round -----------------------------------------------------------------

    def _agree(self) -> Agreement | None:
        """Where nodes anonymise together: the recoding they agree on."""
        if self.settings.method not in TOGETHER:
            return None

        def send(step: int, kind: str, nodes: Sequence[int], content: RecordDict) -> list[Message]:
            return self._ask(step, kind, nodes, content=content)

        self._asked = note_asking(self._checkpoints, self.settings)
        return Together(self.settings, send, self._reject).agree(sorted(self.grid.get_node_ids()), self._numbers)

    @property
    def _known_numbers(self) -> set[int]:
        return {self._numbers[node] for node in self._facts}

    def _meet(self, plan: Plan | None = None) -> None:
        """Ask nodes, or those a plan counts, who they are; refuse any that mean something else by the same columns."""
        nodes = sorted(self.grid.get_node_ids())
        content = None
        if plan is not None:
            nodes = [node for node in nodes if self._numbers.get(node) in plan.clients]
            content = wire.request_content(0, wire.pack_arrays(plan.to_arrays()))
        for reply in self._ask(0, MessageType.QUERY, nodes, content=content):
            self._numbers[reply.metadata.src_node_id], self._facts[reply.metadata.src_node_id] = wire.read_facts(reply)
        if not self._facts:
            raise InfeasibleError(
                f"None of {len(nodes)} nodes could prepare its data; the first reasons are in the log."
            )
        for what in ("schema_sha256", "version", "width"):
            kinds = {getattr(facts, what) for facts in self._facts.values()}
            if len(kinds) > 1:
                raise SchemaError(
                    f"The nodes do not agree: {len(kinds)} different values of {what} among {len(self._facts)}."
                )

    # ---- rounds ---------------------------------------------------------------------------------

    def _train(self, number: int, model: Aggregator) -> None:
        chosen = self._choose(number)
        replies = self._ask(number, MessageType.TRAIN, chosen, model)
        accepted = self._without_suspects(number, self._accept(number, model, replies), model, replies)
        needed = max(min(1, len(chosen)), int(np.ceil(self.settings.min_replies * len(chosen))))
        if len(accepted) < needed:
            raise InfeasibleError(
                f"Round {number}: {len(accepted)} of {len(chosen)} updates are usable; at least {needed} are needed."
            )
        weights = [self._facts[reply.metadata.src_node_id].n_train for reply, _ in accepted]
        model.combine(number, [update for _, update in accepted], weights)

    def _without_suspects(
        self, number: int, accepted: list[Accepted], model: Aggregator, replies: Sequence[Message]
    ) -> list[Accepted]:
        """Compare the updates, tell of new suspects and, if the run says so, leave all suspects out."""
        updates = {self._numbers[reply.metadata.src_node_id]: read for reply, read in accepted}
        senders = {self._numbers[node] for reply in replies if (node := reply.metadata.src_node_id) in self._facts}
        for client in self._suspicion.look(model.directions(updates), sorted(senders - set(updates))):
            log.warning("round %d: the updates of client %s are unlike those of the others", number, client)
        if not self.settings.exclude_suspects:
            return accepted
        suspects = set(self._suspicion.clients) & set(updates)
        for reply, _ in accepted:
            if self._numbers[reply.metadata.src_node_id] in suspects:
                self._reject(number, reply.metadata.src_node_id, "it is a suspect")
        return [each for each in accepted if self._numbers[each[0].metadata.src_node_id] not in suspects]

    @property
    def _width(self) -> int:
        return next(iter(self._facts.values())).width

    def _in_order(self) -> list[int]:
        return sorted(self._facts, key=lambda node: self._numbers[node])

    def _choose(self, number: int) -> list[int]:
        """The nodes of a round, by a stream of their own: the same with and without a restart."""
        nodes = self._in_order()
        if self._budget and self._budget.rate < 1:
            return sampled(self._budget, nodes, number)
        wanted = self.settings.clients_per_round or len(nodes)
        if wanted >= len(nodes):
            return nodes
        picks = np.random.default_rng([self.settings.seed, *b"choose", number]).choice(
            len(nodes), wanted, replace=False
        )
        return [nodes[i] for i in sorted(picks)]

    def _accept(self, number: int, model: Aggregator, replies: Sequence[Message]) -> list[Accepted]:
        """The replies that pass validation, and what they say; the others are logged and left out."""
        accepted: dict[int, Accepted] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            try:
                if node in accepted:
                    raise UpdateRejectedError("it came twice")
                accepted[node] = reply, self._checked(number, model, reply)
            except UpdateRejectedError as error:
                self._reject(number, node, str(error))
        for node, reason in model.outliers({node: read for node, (_, read) in accepted.items()}).items():
            self._reject(number, node, reason)
            del accepted[node]
        return list(accepted.values())

    def _checked(self, number: int, model: Aggregator, reply: Message) -> ReadUpdate:
        node = reply.metadata.src_node_id
        if node not in self._facts:
            raise UpdateRejectedError("its sender is not part of the run")
        metrics, arrays = wire.read_update(reply)
        if set(metrics) != {wire.WEIGHT, wire.ROUND} or metrics[wire.ROUND] != number:
            raise UpdateRejectedError("its metrics are not those of this round")
        check_weight(metrics[wire.WEIGHT], self._facts[node].n_train)
        return model.read(arrays)

    def _evaluate(self, number: int, model: Aggregator) -> dict[str, float]:
        replies = self._ask(number, MessageType.EVALUATE, self._in_order(), model)
        scores: list[dict[str, float]] = []
        for reply in replies:
            node = reply.metadata.src_node_id
            try:
                found = check_scores(wire.read_metrics(reply), wire.EVALUATION)
                check_weight(found.pop(wire.WEIGHT, None), self._facts[node].n_test)
                scores.append({**found, "_n": float(self._facts[node].n_test)})
            except UpdateRejectedError as error:
                self._reject(number, node, str(error))
        return _client_means(scores)

    # ---- messages -------------------------------------------------------------------------------

    def _ask(
        self,
        number: int,
        kind: str,
        nodes: Sequence[int],
        model: Aggregator | None = None,
        *,
        content: RecordDict | None = None,
    ) -> list[Message]:
        """Send, and return the good replies in the order of the nodes' numbers; failures are logged.

        What is sent is ``content``, or the model in the form each node needs.
        """
        if model is not None and self._forgetful:
            for node in nodes:
                model.forget(node)
        packed: list[Packed] = []
        messages = [
            wire.request(n, kind, number, content or self._packed(number, model, (n, kind), packed)) for n in nodes
        ]
        replies = list(self.grid.send_and_receive(messages, timeout=self._timeout))
        good = [reply for reply in replies if not reply.has_error()]
        for reply in replies:
            if reply.has_error():
                log.warning("node %s failed: %s", reply.metadata.src_node_id, reply.error.reason)
        answered = {reply.metadata.src_node_id for reply in good}
        for node in nodes:
            if node not in answered:
                self._silent.append({"round": number, "client": self._numbers.get(node, node), "during": kind})
                if model is not None:
                    model.forget(node)  # it may have lost what it held
        return sorted(good, key=lambda r: (self._numbers.get(r.metadata.src_node_id, 0), r.metadata.src_node_id))

    @staticmethod
    def _packed(number: int, model: Aggregator | None, listener: Listener, packed: list[Packed]) -> RecordDict:
        """What a listener is sent; what is the same for the next node is packed once."""
        arrays = model.pending_updates(listener) if model else []
        if not packed or packed[-1][0] is not arrays:
            packed.append((arrays, wire.request_content(number, wire.pack_arrays(arrays))))
        return packed[-1][1]

    def _reject(self, number: int, node: int, reason: str) -> None:
        client = self._numbers.get(node, node)
        self._rejected.append({"round": number, "client": client, "reason": reason})
        log.warning("round %d: client %s is left out: %s", number, client, reason)


def wait_for_nodes(grid: Grid, count: int, seconds: float) -> None:
    """Wait until ``count`` nodes are there; raise InfeasibleError if they do not come in time."""
    end = time.monotonic() + seconds
    while (found := len(list(grid.get_node_ids()))) < count:
        if time.monotonic() > end:
            raise InfeasibleError(f"{found} of {count} nodes came within {seconds:g} seconds.")
        time.sleep(0.1)


def _client_means(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Means over clients, weighted by their test rows; the AUC of clients is a plain mean, under its own name.

    A client whose test rows are all of one class has no AUC and is left out of that mean.
    """
    means: dict[str, float] = {}
    for name in sorted({name for score in scores for name in score} - {"_n"}):
        having = [score for score in scores if name in score]
        values = [score[name] for score in having]
        if name.startswith("auc"):
            means[name.replace("auc", "auc_client_mean")] = float(np.mean(values))
        else:
            means[name] = float(np.average(values, weights=[score["_n"] for score in having]))
    return means


def server_app(run: Callable[[Grid, Context], None] | None = None) -> ServerApp:
    """A ServerApp that runs a federation with the run config's settings and keeps its result."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        if run is not None:
            run(grid, context)
            return
        settings = RunSettings.from_config(context.run_config)
        checkpoints = Checkpoints.at(str(context.run_config.get("checkpoint-folder", "")))
        outcome = Federation(grid, settings, checkpoints=checkpoints).run()
        last = outcome.rounds[-1] if outcome.rounds else {}
        log.info("finished after round %s: %s", last.get("round"), last)

    return app
