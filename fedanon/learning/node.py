"""A node: its table is split, the training part anonymized once, verified and encoded. Knows nothing of Flower.

Nothing raw leaves this file but the scalars of :class:`NodeFacts` and of :meth:`Node.evaluate`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon._version import __version__
from fedanon.anonymizers import ANONYMIZERS
from fedanon.data.table import Table
from fedanon.errors import InfeasibleError
from fedanon.fields import build
from fedanon.learning.dp_training import train_privately
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.metrics import evaluate as measure
from fedanon.models.base import LocalState, Parameters, TrainingData, Update
from fedanon.models.encoding import Encoding
from fedanon.models.scores import classification_scores
from fedanon.models.target import target
from fedanon.release.gate import verify
from fedanon.release.release import Release

#: what a node measures of its own release and may report
REPORTED_METRICS = ("k_reached", "ncp", "ncp_published", "linkage_expected_share", "truthfulness", "suppressed_share")

#: what a node reports of an evaluation, on raw and on recoded test rows
SCORES = ("accuracy", "precision", "recall", "f1", "auc", "log_loss", "brier")
EVALUATION_SCORES = frozenset({*SCORES, *(f"{name}_recoded" for name in SCORES)})

#: what a node works out of its table once
PREPARED = ("release", "data", "test", "recoded_test", "facts")


@dataclass(frozen=True)
class NodeFacts:
    """What a node reports before the first round: sizes, hashes and metrics, no rows."""

    schema_sha256: str
    version: str
    width: int
    n_train: int
    n_test: int
    measures: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """For the wire and the manifest."""
        return asdict(self)


class Node:
    """One participant in a run.

    Parameters
    ----------
    table : its rows.
    settings : of the run.
    number : its number among the nodes; seeds its split, its anonymization and its training.
    """

    def __init__(self, table: Table, settings: RunSettings, number: int) -> None:
        self.settings = settings
        self.number = number
        self.model = make_model(settings)
        #: a malicious node of a simulation adds no noise for anybody's sake
        self.malicious = False
        self.encoding = Encoding.from_schema(table.schema, features=settings.features)
        #: what its release counts: people where the schema says who is who, else records
        self.unit = table.schema.unit
        self._table = table
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
        n_test = max(1, round(self.settings.test_share * count))
        if count - n_test < 1:
            raise InfeasibleError(f"A node with {count} people cannot be split into training and test rows.")
        tested = np.zeros(count, dtype=bool)
        tested[self._rng("split").permutation(count)[:n_test]] = True
        return self._table.select_rows(np.flatnonzero(~tested[people])), self._table.select_rows(
            np.flatnonzero(tested[people])
        )

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

    @cached_property
    def test(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Raw test rows and their target."""
        _, test = self._split
        return self.encoding.encode_table(test), target(test, test.schema)

    @cached_property
    def recoded_test(self) -> NDArray[np.float32]:
        """Test rows generalized like the training rows."""
        _, test = self._split
        return self.encoding.encode_release(self.release.recode(test))

    @cached_property
    def facts(self) -> NodeFacts:
        """What the node may report about itself."""
        train, test = self._split
        measures = measure(train, self.release, REPORTED_METRICS)
        return NodeFacts(
            schema_sha256=self._table.schema.sha256,
            version=__version__,
            width=self.width,
            n_train=len(self.data.target),
            n_test=len(test),
            measures=measures,
        )

    # ---- learning -------------------------------------------------------------------------------

    def train(self, parameters_: Parameters, round_number: int) -> Update:
        """One round of local training."""
        rng = self._rng("train", round_number)
        if self.settings.dp is not None and not self.malicious:
            return train_privately(
                self.model,
                self.settings,
                parameters_,
                self.data,
                round_number=round_number,
                rng=rng,
                state=self.state,
            )
        return self.model.train(parameters_, self.data, round_number=round_number, rng=rng, state=self.state)

    def evaluate(self, parameters_: Parameters) -> dict[str, float]:
        """Scores on raw and on recoded test rows, named apart."""
        features, truth = self.test
        states = self._test_states
        raw = _scores(truth, self.model.predict_proba(parameters_, features, state=states[0]))
        if self.recoded_test is features:
            recoded = raw
        else:
            recoded = _scores(truth, self.model.predict_proba(parameters_, self.recoded_test, state=states[1]))
        return raw | {f"{name}_recoded": value for name, value in recoded.items()}

    def __getstate__(self) -> dict[str, Any]:
        """A prepared node without its raw table and its training state: what a store keeps between processes."""
        for name in PREPARED:
            getattr(self, name)
        kept = {name: value for name, value in vars(self).items() if name not in ("_table", "_split")}
        return kept | {"state": LocalState(), "_test_states": (LocalState(), LocalState())}

    def _seed(self, purpose: str, *more: int) -> int:
        return int(self._rng(purpose, *more).integers(2**63))

    def _rng(self, purpose: str, *more: int) -> np.random.Generator:
        """A stream of its own for every purpose, node and round, so that nothing depends on the order of calls."""
        return np.random.default_rng([self.settings.seed, self.number, *purpose.encode(), *more])


def _people(table: Table) -> NDArray[np.int64]:
    """The person of every row, numbered as they appear."""
    if table.persons is None:
        return np.arange(len(table))
    _, first, person = np.unique(table.persons, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[person]


def _scores(truth: NDArray[np.int8], probability: NDArray[np.float64]) -> dict[str, float]:
    return classification_scores(truth, (probability >= 0.5).astype(np.int8), probability)
