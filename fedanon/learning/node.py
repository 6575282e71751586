"""A node: its table is split, the training part anonymized once, verified and encoded. Knows nothing of Flower.

Nothing raw leaves this file but the scalars of :class:`NodeFacts`, those of :meth:`Node.evaluate` where the node's
rules are to score raw rows, and the counts of :meth:`Node.count_predictions`, which get noise before they are sent.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon._version import __version__
from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.schema import Schema, Unit
from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.fields import build
from fedanon.learning.dp_training import train_privately, with_own_budget
from fedanon.learning.node_rules import NodeRules, ScoreRule
from fedanon.learning.private_scores import EDGES, count_predictions
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.metrics import evaluate as measure
from fedanon.models.base import LocalState, Parameters, TrainingData, Update
from fedanon.models.encoding import Encoding
from fedanon.models.outcome import BINARY, Outcome
from fedanon.models.outcome_scores import NODE_SCORES, ROWS, node_scores
from fedanon.models.target import outcome_of, target, unit_of
from fedanon.release.gate import verify
from fedanon.release.release import Release
from fedanon.types import CountArray, FloatArray, IndexArray, TargetArray

#: what a node measures of its own release and may report
REPORTED_METRICS = ("k_reached", "ncp", "ncp_published", "linkage_expected_share", "truthfulness", "suppressed_share")

#: those of them that follow from the release alone
RELEASE_METRICS = ("k_reached", "ncp_published", "suppressed_share")

#: the risk by which a node may choose its privacy budget
AVERAGE_RISK = "prosecutor_risk_average"


def evaluation_scores(outcome: Outcome) -> frozenset[str]:
    """What a node reports of an evaluation, on raw test rows, recoded ones, and on a release of the test people."""
    return frozenset(f"{name}{rows}" for name in NODE_SCORES[outcome.kind] for rows in ROWS)


#: what a node works out of its table once, by what it scores
PREPARED: dict[ScoreRule, tuple[str, ...]] = {
    "raw": ("release", "data", "test", "recoded_test", "facts"),
    "release": ("release", "data", "released_test", "facts"),
    "private": ("release", "data", "test_people", "facts"),
    "none": ("release", "data", "facts"),
}


@dataclass(frozen=True)
class NodeFacts:
    """What a node reports before the first round: sizes, hashes and metrics, no rows.

    ``counted`` is what its k counts; nodes with the same schema count the same, so it is said once of all of them.
    """

    schema_sha256: str
    version: str
    width: int
    n_train: int
    n_test: int
    measures: dict[str, float]
    counted: Unit = "records"
    #: of the target; 0 for a number
    classes: int = 2

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return {name: value for name, value in asdict(self).items() if name != "counted"}


class Node:
    """One participant in a run.

    Parameters
    ----------
    table : its rows.
    settings : of the run.
    number : its number among the nodes; seeds its split, its anonymization and its training.
    rules : its own; those of a simulation leave everything to the run.
    """

    def __init__(self, table: Table, settings: RunSettings, number: int, rules: NodeRules | None = None) -> None:
        self._table = table
        self._begin(table.schema, settings, number, rules)

    def _begin(self, schema: Schema, settings: RunSettings, number: int, rules: NodeRules | None) -> None:
        """Set up what does not depend on rows."""
        self.settings = settings
        self.number = number
        self.rules = rules or NodeRules()
        #: what is predicted, and what the length 1 of it is in units of the column
        known = schema.target is not None  # those that only count rows need no target
        self.outcome, self.unit_length = (outcome_of(schema), unit_of(schema)) if known else (BINARY, 1.0)
        if self.outcome != BINARY and self.rules.scores == "private":
            raise ConfigError(f"Private scores need a target of two classes; this one is {self.outcome}.")
        self.model = make_model(settings, self.outcome)
        #: a malicious node of a simulation adds no noise for anybody's sake
        self.malicious = False
        self.encoding = Encoding.from_schema(schema, features=settings.features)
        #: what its release counts: people where the schema says who is who, else records
        self.unit = schema.unit
        self.schema = schema
        self.state = LocalState()
        self._test_states = LocalState(), LocalState()

    @property
    def width(self) -> int:
        """Number of features."""
        return self.encoding.width

    @cached_property
    def reference(self) -> Parameters:
        """Arrays of the shapes and types the model's parameters have."""
        return self.model.initial(self.width)

    # ---- data -----------------------------------------------------------------------------------

    @cached_property
    def _split(self) -> tuple[Table, Table]:
        """Training and test rows; all rows of a person fall into one of them."""
        people = _people(self._table)
        count = self._table.n_units
        n_test = self.rules.n_test(count, self.settings.test_share)
        tested = np.zeros(count, dtype=bool)
        tested[self._rng("split").permutation(count)[:n_test]] = True
        return self._table.select_rows(np.flatnonzero(~tested[people])), self._table.select_rows(
            np.flatnonzero(tested[people])
        )

    @property
    def training_table(self) -> Table:
        """The raw training rows, which a node from a store has no more."""
        return self._split[0]

    @cached_property
    def release(self) -> Release:
        """The verified release of the training rows."""
        anonymizer = build(ANONYMIZERS[self.settings.method], self.settings.method_settings)
        train, _ = self._split
        return verify(anonymizer.anonymize(train, rng=self._rng("anonymize")), train)

    @cached_property
    def data(self) -> TrainingData:
        """The released rows as the model sees them; raw training rows are never encoded."""
        return self.model.training_data(self.release, self.encoding, self._seed("draws"))

    @property
    def test_table(self) -> Table:
        """The raw test rows, which a node from a store has no more."""
        return self._split[1]

    @cached_property
    def test(self) -> tuple[NDArray[np.float32], TargetArray]:
        """Raw test rows and their target."""
        _, test = self._split
        return self.encoding.encode_table(test), target(test, test.schema)

    @cached_property
    def recoded_test(self) -> NDArray[np.float32]:
        """Test rows generalized like the training rows."""
        _, test = self._split
        return self.encoding.encode_release(self.release.recode(test))

    @cached_property
    def test_release(self) -> Release:
        """A k-anonymous release of the test people: whatever is computed from it tells no more than it does.

        The method is the node's choice, not the run's, so that all runs see the same release.
        """
        _, test = self._split
        anonymizer = build(ANONYMIZERS["mondrian"], {"k": self.rules.test_k, "require": self.rules.require})
        return verify(anonymizer.anonymize(test, rng=self._rng("anonymize test")), test)

    @cached_property
    def released_test(self) -> tuple[NDArray[np.float32], TargetArray]:
        """The released test rows as features, and their target."""
        release = self.test_release
        return self.encoding.encode_release(release), target(release, release.schema)

    @cached_property
    def test_people(self) -> tuple[NDArray[np.float32], TargetArray]:
        """One raw row of every test person, and its target."""
        _, test = self._split
        _, first = np.unique(_people(test), return_index=True)
        chosen = test.select_rows(first)
        return self.encoding.encode_table(chosen), target(chosen, chosen.schema)

    @property
    def n_scored(self) -> int:
        """Number of rows that an evaluation counts."""
        if self.rules.scores == "release":
            return len(self.released_test[1])
        return len(self.test_people[1]) if self.rules.scores == "private" else len(self._split[1])

    @cached_property
    def facts(self) -> NodeFacts:
        """What the node may report about itself."""
        train, _ = self._split
        measures = measure(train, self.release, REPORTED_METRICS)
        return NodeFacts(
            schema_sha256=self.schema.sha256,
            version=__version__,
            width=self.width,
            n_train=len(self.data.target),
            n_test=self.n_scored,
            measures=measures,
            counted=self.unit,
            classes=self.outcome.classes,
        )

    # ---- learning -------------------------------------------------------------------------------

    def train(self, parameters_: Parameters, round_number: int) -> Update:
        """One round of local training."""
        rng = self._rng("train", round_number)
        if self.settings.dp is not None and not self.malicious:
            return train_privately(
                self.model,
                self._private_settings,
                parameters_,
                self.data,
                round_number=round_number,
                rng=rng,
                state=self.state,
            )
        return self.model.train(parameters_, self.data, round_number=round_number, rng=rng, state=self.state)

    @cached_property
    def _private_settings(self) -> RunSettings:
        """The settings with the privacy budget of this node."""
        if self.settings.dp is None or not self.settings.dp.by_risk:
            return self.settings
        train, _ = self._split
        return with_own_budget(self.settings, measure(train, self.release, [AVERAGE_RISK])[AVERAGE_RISK])

    def evaluate(self, parameters_: Parameters) -> dict[str, float]:
        """Scores on raw and on recoded test rows, or on the release of the test people; all are named apart."""
        if self.rules.scores == "release":
            features, truth = self.released_test
            released = self._scores(truth, self.model.predict_proba(parameters_, features, state=self._test_states[0]))
            return {f"{name}_released": value for name, value in released.items()}
        features, truth = self.test
        states = self._test_states
        raw = self._scores(truth, self.model.predict_proba(parameters_, features, state=states[0]))
        if self.recoded_test is features:
            recoded = raw
        else:
            recoded = self._scores(truth, self.model.predict_proba(parameters_, self.recoded_test, state=states[1]))
        return raw | {f"{name}_recoded": value for name, value in recoded.items()}

    def _scores(self, truth: TargetArray, predicted: FloatArray) -> dict[str, float]:
        return node_scores(self.outcome, truth, predicted, self.unit_length)

    def count_predictions(self, parameters_: Parameters, edges: FloatArray = EDGES) -> CountArray:
        """Test people by class and predicted probability: exact, so not to be sent as they are."""
        features, truth = self.test_people
        return count_predictions(truth, self.model.predict_proba(parameters_, features), edges)

    def draw_order(self, purpose: str, n_rows: int) -> IndexArray:
        """An order of rows that says nothing about that of the table, the same every time."""
        return self._rng(purpose).permutation(n_rows)

    def __getstate__(self) -> dict[str, Any]:
        """A prepared node without its raw table and its training state: what a store keeps between processes."""
        for name in PREPARED[self.rules.scores]:
            getattr(self, name)
        kept = {name: value for name, value in vars(self).items() if name not in ("_table", "_split")}
        return kept | {"state": LocalState(), "_test_states": (LocalState(), LocalState())}

    def _seed(self, purpose: str, *more: int) -> int:
        return int(self._rng(purpose, *more).integers(2**63))

    def _rng(self, purpose: str, *more: int) -> np.random.Generator:
        """A stream of its own for every purpose, node and round, so that nothing depends on the order of calls.

        Training draws from the run's seed also where the node has a secret: it sees the release alone.
        """
        own = self.rules.rng(purpose) if purpose != "train" else None
        if own is not None:
            return own
        return np.random.default_rng([self.settings.seed, self.number, *purpose.encode(), *more])


def _people(table: Table) -> NDArray[np.int64]:
    """The person of every row, numbered as they appear."""
    if table.persons is None:
        return np.arange(len(table))
    _, first, person = np.unique(table.persons, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[person]
