"""The rounds of a run without messages: which nodes are asked, whose updates are accepted, and what they combine to.

Who carries the requests to the nodes is a :class:`Transport`; everything here is plain arrays and numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedanon.data.schema import Unit
from fedanon.errors import InfeasibleError, UpdateRejectedError
from fedanon.learning.aggregators import Aggregator, Listener, ReadUpdate, make_aggregator
from fedanon.learning.checkpoints import Checkpoint, Checkpoints
from fedanon.learning.dp_training import PrivateAverage, TrainingBudget, sampled
from fedanon.learning.node import NodeFacts, evaluation_scores
from fedanon.learning.participants import Participants
from fedanon.learning.private_scores import HISTOGRAM, MASKED, pooled_scores, read_histogram
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import Strategy, make_model, make_strategy
from fedanon.learning.suspicion import Suspicion
from fedanon.learning.validation import check_scores, check_weight, refuse_partial
from fedanon.models.base import LocalState, Model, Parameters, TrainingData
from fedanon.models.outcome_scores import summed_up
from fedanon.types import CountArray, Rng

log = logging.getLogger("fedanon")

#: the number of a round and its scores
RoundScores = dict[str, Any]
#: who looks on, beside the nodes
WATCHER: Listener = (-1, "watch")


@dataclass
class RunResult:
    """What a run yields."""

    parameters: Parameters
    rounds: list[RoundScores] = field(default_factory=list)
    facts: dict[int, NodeFacts] = field(default_factory=dict)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    unresponsive: list[dict[str, Any]] = field(default_factory=list)
    joint: dict[str, Any] | None = None
    dp: dict[str, Any] | None = None
    suspects: list[dict[str, Any]] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    egress: dict[int, dict[str, int]] | None = None

    @property
    def counted(self) -> Unit:
        """What the nodes count: people only where all of them do."""
        units = {facts.counted for facts in self.facts.values()}
        return "people" if units == {"people"} else "records"


@dataclass(frozen=True)
class Reply:
    """An answer of a node. Reading it raises UpdateRejectedError if it does not hold what was agreed on.

    Parameters
    ----------
    node : its identifier.
    read_update : of training: the round, the number of examples, and the arrays.
    read_scores : of an evaluation: the scores, and the number of examples.
    shared : its part of the histogram that nodes have sent behind masks, of which only the sum has a meaning.
    """

    node: int
    read_update: Callable[[], tuple[Any, Any, Parameters]]
    read_scores: Callable[[], tuple[Mapping[str, Any], Any]]
    shared: CountArray | None = None


class Transport(Protocol):
    """Carries requests to nodes; returns the replies of those that answer, in the order of the nodes' numbers.

    It notes among the participants who does not answer.
    """

    def train(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        """Ask nodes to train from the global model."""

    def evaluate(self, number: int, nodes: Sequence[int], model: Aggregator) -> list[Reply]:
        """Ask nodes to score the global model."""


# ---- rounds --------------------------------------------------------------------------------------


class Rounds:
    """The rounds of a run.

    Parameters
    ----------
    settings : of the run.
    participants : the nodes that take part.
    transport : the way to them.
    checkpoints : where every round is kept, or None.
    score : what someone who looks on adds to the scores of a round, given what a node would be sent.
    on_round : called with the scores of every evaluated round.
    before_round : called with the number of every round before it begins; it may admit more nodes.
    """

    def __init__(
        self,
        settings: RunSettings,
        participants: Participants,
        transport: Transport,
        *,
        checkpoints: Checkpoints | None = None,
        score: Callable[[Parameters], Mapping[str, float]] | None = None,
        on_round: Callable[[RoundScores], None] | None = None,
        before_round: Callable[[int], None] | None = None,
    ) -> None:
        self.settings = settings
        self._participants = participants
        self._transport = transport
        self._checkpoints = checkpoints
        self._score_more = score
        self._on_round = on_round
        self._before_round = before_round
        self._suspicion = Suspicion()
        self._rounds: list[RoundScores] = []
        self._chosen: list[int] = []
        self._budget = TrainingBudget.for_run(settings, len(participants.facts), checkpoints)
        self._model = self._make_aggregator()

    def _make_aggregator(self) -> Aggregator:
        model, width = make_model(self.settings, self._participants.outcome), self._participants.width
        if self._budget and self._budget.dp.mode == "central":
            return PrivateAverage(model, width, self._budget)
        return make_aggregator(model, width, make_strategy(self.settings), max_move=self.settings.max_move)

    def run(self) -> RunResult:
        """Train for all rounds, from the last checkpoint if there is one."""
        for number in range(self._restore() + 1, self.settings.rounds + 1):
            if self._budget and not self._budget.spend(number):
                log.warning("round %d: the privacy budget is spent; the training ends here", number)
                if not self._rounds or self._rounds[-1]["round"] < number - 1:
                    self._score(number - 1)
                break
            if self._before_round is not None:
                self._before_round(number)
            try:
                self._train(number)
            except InfeasibleError:
                self._keep(number - 1)  # with what went wrong in this round
                raise
            if number % self.settings.evaluate_every == 0 or number == self.settings.rounds:
                self._score(number)
            self._keep(number)
        participants = self._participants
        return RunResult(
            parameters=self._model.parameters,
            rounds=self._rounds,
            facts={participants.numbers[node]: facts for node, facts in participants.facts.items()},
            rejected=participants.rejected,
            unresponsive=participants.unresponsive,
            dp=self._budget.to_dict() if self._budget else None,
            suspects=self._suspicion.suspects(),
            names=participants.named,
        )

    # ---- checkpoints ----------------------------------------------------------------------------

    def _restore(self) -> int:
        """Go on from the last checkpoint, if there is one; return the number of its round."""
        last = self._checkpoints.last(self.settings) if self._checkpoints else None
        if last is None:
            return 0
        self._model.restore(last.parameters)
        self._participants.rejected = last.rejected + self._participants.rejected
        self._participants.unresponsive = last.unresponsive + self._participants.unresponsive
        self._suspicion = Suspicion.restored(last.evidence)
        self._rounds = list(last.rounds)
        return last.round_number

    def _keep(self, number: int) -> None:
        if self._checkpoints:
            participants, evidence = self._participants, self._suspicion.to_keep()
            checkpoint = Checkpoint(
                number,
                self._model.parameters,
                self._rounds,
                participants.rejected,
                participants.unresponsive,
                evidence,
                {str(number): name for number, name in participants.named.items()},
            )
            self._checkpoints.save(self.settings, checkpoint)

    # ---- training -------------------------------------------------------------------------------

    def _train(self, number: int) -> None:
        chosen = self._chosen = self._choose(number)
        replies = self._transport.train(number, chosen, self._model)
        accepted = self._accept(number, replies)
        needed = max(min(1, len(chosen)), int(np.ceil(self.settings.min_replies * len(chosen))))
        if len(accepted) < needed:
            raise InfeasibleError(
                f"Round {number}: {len(accepted)} of {len(chosen)} updates are usable; at least {needed} are needed."
            )
        weights = [self._participants.facts[node].n_train for node in accepted]
        self._model.combine(number, list(accepted.values()), weights)

    def _choose(self, number: int) -> list[int]:
        """The nodes of a round, by a stream of their own: the same with and without a restart."""
        nodes = self._participants.nodes
        if self._budget and self._budget.rate < 1:
            return sampled(self._budget, nodes, number)
        wanted = self.settings.nodes_per_round or len(nodes)
        if wanted >= len(nodes):
            return nodes
        rng = np.random.default_rng([self.settings.seed, *b"choose", number])
        return [nodes[i] for i in sorted(rng.choice(len(nodes), wanted, replace=False))]

    def _accept(self, number: int, replies: Sequence[Reply]) -> dict[int, ReadUpdate]:
        """The updates that are taken in, by node; the others are noted and left out."""
        sound: dict[int, ReadUpdate] = {}
        for reply in replies:
            try:
                if reply.node in sound:
                    raise UpdateRejectedError("it came twice")
                sound[reply.node] = self._read(number, reply)
            except UpdateRejectedError as error:
                self._participants.reject(number, reply.node, str(error))
        out = self._model.outliers(sound)
        for node in self._look(number, sound, out, {reply.node for reply in replies} - sound.keys()):
            out.setdefault(node, "it is a suspect")
        for node, reason in out.items():
            self._participants.reject(number, node, reason)
        return {node: update for node, update in sound.items() if node not in out}

    def _read(self, number: int, reply: Reply) -> ReadUpdate:
        if reply.node not in self._participants.facts:
            raise UpdateRejectedError("its sender is not part of the run")
        found, n_examples, arrays = reply.read_update()
        if found != number:
            raise UpdateRejectedError("its metrics are not those of this round")
        check_weight(n_examples, self._participants.facts[reply.node].n_train)
        return self._model.read(arrays)

    def _look(
        self, number: int, sound: dict[int, ReadUpdate], too_long: Iterable[int], refused: Iterable[int]
    ) -> list[int]:
        """Compare the updates and report new suspects; return all suspects if the run leaves them out."""
        numbers, facts = self._participants.numbers, self._participants.facts
        found = self._suspicion.look(
            self._model.directions({numbers[node]: update for node, update in sound.items()}),
            {numbers[node]: facts[node].n_train for node in sound},
            too_long=[numbers[node] for node in too_long],
            refused=sorted(numbers[node] for node in refused if node in facts),
        )
        for node in (node for node in sound if numbers[node] in found):
            who = self._participants.label(node)
            log.warning("round %d: the updates of %s are unlike those of the others", number, who)
        suspects = self._suspicion.nodes if self.settings.exclude_suspects else []
        return [node for node in sound if numbers[node] in suspects]

    # ---- evaluation -----------------------------------------------------------------------------

    def _score(self, number: int) -> None:
        """Add the scores of a round, and what is spent of the privacy budget, where there is one."""
        spent = {"epsilon_spent": self._budget.epsilon} if self._budget else {}
        scores = {"round": number, **self._evaluate(number), **spent}
        if self._score_more is not None:
            scores |= self._score_more(self._model.pending_updates(WATCHER))
        self._rounds.append(scores)
        if self._on_round is not None:
            self._on_round(scores)

    def _evaluate(self, number: int) -> dict[str, float]:
        """Means of the scores of nodes, and scores of the sum of their histograms, where they send some."""
        allowed = evaluation_scores(self._participants.outcome)
        scores: list[tuple[dict[str, float], int]] = []
        trained: list[tuple[dict[str, float], int]] = []
        histograms: list[CountArray] = []
        people = 0
        for reply in self._transport.evaluate(number, self._participants.nodes, self._model):
            try:
                found, n_examples = reply.read_scores()
                weight = check_weight(n_examples, self._participants.facts[reply.node].n_test)
                if HISTOGRAM in found:
                    histograms.append(read_histogram(found[HISTOGRAM]))
                    people += weight
                if reply.shared is not None:
                    histograms.append(reply.shared)
                    people += weight
                single = {name: value for name, value in found.items() if name not in (HISTOGRAM, MASKED)}
                refuse_partial(single, self._participants.outcome)
                scores.append((check_scores(single, allowed), weight))
                trained += scores[-1:] if reply.node in self._chosen else []
            except UpdateRejectedError as error:
                self._participants.reject(number, reply.node, str(error))
        return mean_scores(scores) | self._scores_of_trained(trained) | pooled_scores(histograms, people)

    def _scores_of_trained(self, trained: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, float]:
        """What the thesis's code plots where some nodes train: the scores of those of the round alone."""
        if self.settings.protocol != "as_published" or len(self._chosen) == len(self._participants.nodes):
            return {}
        return {f"{name}_trained": value for name, value in mean_scores(trained).items()}


def mean_scores(scores: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, float]:
    """Means over nodes, weighted by their test rows; the AUC of nodes is a plain mean, under its own name.

    A node whose test rows are all of one class has no AUC and is left out of that mean. Of a number, the errors of all
    rows together follow from what nodes report (:func:`fedanon.models.outcome_scores.summed_up`).
    """
    areas = sorted({name for found, _ in scores for name in found if name.startswith("auc")})
    means = {
        name.replace("auc", "auc_client_mean"): float(np.mean([found[name] for found, _ in scores if name in found]))
        for name in areas
    }
    others = [({name: value for name, value in found.items() if name not in areas}, rows) for found, rows in scores]
    return dict(sorted((means | summed_up(others)).items()))


#: what scores are computed from, by the end of their names
SCORED_ON = {
    "_released": "k-anonymous releases of the test people of every node; worse than on raw rows as a rule",
    "_private": "raw test rows, by noisy histograms of all nodes together",
    "_recoded": "raw test rows, generalized like the training rows",
    "": "raw test rows",
}


def scored_on(rounds: Sequence[RoundScores]) -> dict[str, str]:
    """What the scores of a run were computed from; a kind of scores is named by its accuracy, or its mean error."""
    names = {name for scores in rounds for name in scores}
    pairs = [(f"{lead}{end}", rows) for end, rows in SCORED_ON.items() for lead in ("accuracy", "mae")]
    return {name: rows for name, rows in pairs if name in names}


# ---- without a server ----------------------------------------------------------------------------


def train_in_process(
    model: Model,
    rows: Sequence[TrainingData],
    width: int,
    strategy: Strategy,
    *,
    rounds: int,
    rng: Rng,
    states: Sequence[LocalState] | None = None,
) -> Parameters:
    """The global parameters after some rounds in which every node trains; nothing is scored, compared or kept.

    Parameters
    ----------
    model : what is trained.
    rows : those of each node.
    width : number of features.
    strategy : how updates combine.
    rounds : how many.
    rng : of all training.
    states : what each node keeps between rounds, for those who look at it afterwards.
    """
    aggregator, kept = make_aggregator(model, width, strategy), states or [LocalState() for _ in rows]
    for number in range(1, rounds + 1):
        sent = aggregator.pending_updates(WATCHER)
        updates = [
            model.train(sent, data, round_number=number, rng=rng, state=state)
            for data, state in zip(rows, kept, strict=True)
        ]
        read = [aggregator.read(update.parameters) for update in updates]
        aggregator.combine(number, read, [update.n_examples for update in updates])
    return aggregator.parameters
