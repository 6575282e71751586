"""Rows rebuilt from the trees of one node of a federation, and how good the federation's model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fedanon.attacks.gradient_inversion import Decoder
from fedanon.attacks.private_trees import PrivateTrees
from fedanon.attacks.row_rebuilding import Solver
from fedanon.attacks.tree_reconstruction import (
    COMPROMISED,
    VICTIM,
    Judge,
    OverheardTrees,
    flower_model,
    judge_all,
    overhear,
)
from fedanon.attacks.tree_sums import Wire
from fedanon.data.partition import parse_partition
from fedanon.federated.sources import data_of, whole_table
from fedanon.fields import parameter, same_field
from fedanon.harness.tasks import TASKS
from fedanon.harness.tasks.base import CellResult, MethodTask
from fedanon.learning.settings import RunSettings
from fedanon.models.encoding import Encoding
from fedanon.models.scores import auc
from fedanon.models.target import binary_target

#: of the rows, at least this share is kept for testing
TEST_SHARE = 0.2
#: private trees: few leaves, so that each holds more rows than noise; chosen on one split of stroke
PRIVATE_DEPTH, PRIVATE_ETA = 2, 0.3


@TASKS.register("reconstruction")
@dataclass(frozen=True, kw_only=True)
class ReconstructionTask(MethodTask):
    """A federation of trees on releases, and :class:`fedanon.attacks.TreeReconstruction` of its first node.

    ``rebuilt`` is the share of the node's raw cells that are right after the best matching; ``rebuilt_marginals``,
    ``rebuilt_own_rows`` and ``rebuilt_release`` the same of rows drawn from the marginals, of the attacker's own rows
    and of the rows the node's release shows. The AUC is that of raw rows which no node has.
    """

    takes_joint: ClassVar[bool] = True

    partition: str = same_field(RunSettings, "partition")
    nodes: int = same_field(RunSettings, "nodes", default=5)
    rows: int = parameter(2000, help="training rows of all nodes; all others are tested on", at_least=20)
    rounds: int = parameter(50, help="rounds of training", at_least=2)
    depth: int = parameter(6, help="depth of a tree", at_least=1, at_most=10)
    wire: Wire = parameter("document", help="what is sent: document, no_sum_hessian or leaf_weights")
    thresholds: Literal["values", "between"] = parameter("values", help="of raw rows: as they are, or between values")
    instances: Literal["draws", "leaves"] = parameter("draws", help="how released cells become features")
    epsilon: float = parameter(
        0.0, help="of differentially private trees on the rows; 0: none", at_least=0, optional=True
    )
    solver: Solver = parameter("entropy", help="how rows are assigned to leaves: entropy or milp")

    def _model(self) -> OverheardTrees:
        if self.epsilon:
            return PrivateTrees(
                epsilon=self.epsilon, rounds=self.rounds, max_depth=PRIVATE_DEPTH, eta=PRIVATE_ETA, thresholds="values"
            )
        return flower_model(self.depth, forced=self.thresholds == "between", draws=self.instances == "draws")

    def run(self) -> CellResult:
        """Deal out the rows, release, train, rebuild and judge."""
        table = whole_table(data_of(self))
        rng = np.random.default_rng([self.seed, *b"reconstruction"])
        order = rng.permutation(len(table))
        count = min(self.rows, int((1 - TEST_SHARE) * len(table)))
        train, test = (table.select_rows(np.sort(part)) for part in (order[:count], order[count:]))
        parts = parse_partition(self.partition)(train, self.nodes, rng)
        releases = self.releases([train.select_rows(rows) for rows in parts])
        encoding, labels = Encoding.from_schema(table.schema), binary_target(train, train.schema)
        raw = encoding.encode_table(train)
        model = self._model()
        overheard = overhear(model, releases, encoding, self.wire, self.rounds, rng)
        own = parts[min(COMPROMISED, len(parts) - 1)]
        rebuilt = overheard.rebuild(encoding, raw[own], labels[own], self.solver, rng)
        judge = Judge(Decoder(encoding, raw), raw[parts[VICTIM]])
        right, _, details = judge_all(judge, rebuilt, raw[own], releases[VICTIM], rng)
        predicted = model.predict_proba(overheard.parameters, encoding.encode_table(test))
        found = {"rebuilt": float(right.mean())}
        found |= {name.replace("rate_of", "rebuilt"): value for name, value in details.items()}
        found["auc"] = auc(binary_target(test, test.schema), predicted)
        return CellResult(found | {"rows_of_victim": float(len(right))})
