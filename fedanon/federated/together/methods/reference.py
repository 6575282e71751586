"""Federated reference: any anonymizer, run on a population that the server draws from counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedanon import parameters
from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import KAnonymizer
from fedanon.data.hierarchy import IntArray
from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated.together import TOGETHER
from fedanon.federated.together.axes import MOST_BUCKETS, Axis
from fedanon.federated.together.bounds import expected_need
from fedanon.federated.together.boxes import BoxRegions, NearestBoxes
from fedanon.federated.together.learning import Learning
from fedanon.federated.together.method import Ask, FederatedAnonymizer
from fedanon.federated.together.questions import FINAL, Question
from fedanon.federated.together.reference_table import reference_table
from fedanon.federated.together.regions import Regions
from fedanon.parameters import parameter

#: rows a client should have in a class, in multiples of the threshold below which it is silent
ROOM = 2


@TOGETHER.register("federated_reference")
@dataclass(frozen=True, kw_only=True)
class FederatedReference(FederatedAnonymizer):
    """Draw a reference population from counts of pairs of columns, anonymise it, and recode by its classes.

    Hospitals send counts; the server runs any anonymizer on the population, and its classes become the regions all
    hospitals recode with. One recoding for all: k counts the people of the federation, k_local those of each hospital.
    """

    name: ClassVar[str] = "federated_reference"
    #: histograms of all columns, all pairs coarsely, the pairs of the tree, the final count
    shares: ClassVar[Mapping[int, float]] = {1: 0.05, 2: 0.05, 3: 0.1, FINAL: 0.8}

    reference: str = parameter("mondrian", help="anonymizer of the reference population; it must take k")
    reference_settings: str = parameter("{}", help="its other parameters, as JSON")
    seed: int = parameter(0, help="seed of the reference population", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._anonymizer(self.k)

    def _anonymizer(self, k: int) -> KAnonymizer:
        component = ANONYMIZERS[self.reference]
        if not issubclass(component, KAnonymizer):
            raise ConfigError(f"The reference {self.reference!r} does not promise k-anonymity.")
        try:
            chosen: dict[str, Any] = {**json.loads(self.reference_settings), "k": k}
        except (ValueError, TypeError):
            raise ConfigError("reference_settings is not a JSON object.") from None
        return parameters.build(component, chosen)

    def grow(self, axes: Sequence[Axis], n_clients: int, ask: Ask) -> Regions:
        """The classes of the reference population; where counts are exact, their boxes over the rows there are."""
        exact = self.disclosure.exact
        learning = Learning(axes, ask, noisy=self.noisy, exact=exact)
        population = learning.run()
        if learning.n_rows < self.k:
            raise InfeasibleError(
                f"All clients together seem to have only {learning.n_rows} rows, fewer than k={self.k}: "
                "nothing can be released."
            )
        rng = np.random.default_rng([self.seed, *b"reference"])
        boxes = self._boxes(axes, population.draw(learning.n_rows, rng), n_clients, rng)
        return fitted_boxes(boxes, ask) if exact else BoxRegions(boxes, boxes.low, boxes.high)

    def _boxes(self, axes: Sequence[Axis], bins: IntArray, n_clients: int, rng: np.random.Generator) -> NearestBoxes:
        anonymizer = self._anonymizer(min(self._size(n_clients), len(bins)))
        release = anonymizer.anonymize(reference_table(axes, bins), rng=rng)
        groups = release.groups
        low = np.column_stack([groups.minimum(bins[:, a]) for a in range(len(axes))])
        high = np.column_stack([groups.maximum(bins[:, a]) for a in range(len(axes))])
        both = np.unique(np.stack([low, high], axis=1), axis=0)
        return NearestBoxes(both[:, 0].copy(), both[:, 1].copy(), axes)

    def _size(self, n_clients: int) -> int:
        """People a class of the reference must have so that the final count can confirm k of them."""
        if self.counts == "threshold":
            return max(self.k, ROOM * self.threshold * n_clients)
        return expected_need(self.k, **self.final_noise(n_clients))


def fitted_boxes(boxes: NearestBoxes, ask: Ask) -> BoxRegions:
    """The boxes without those that hold no row, each published as what the rows dealt to it cover."""
    axes, asked = boxes.axes, boxes.leaves.astype(np.int32)
    whole = np.array([axis.n_bins for axis in axes], dtype=np.int32) - 1
    grain = np.full(boxes.low.shape, MOST_BUCKETS, dtype=np.int32)
    question = Question(boxes, asked, np.zeros_like(boxes.low), np.tile(whole, (len(asked), 1)), grain)
    layout, (rows, _) = question.layout(axes), ask(question)
    total = rows.sum(axis=0)[None]
    low, high = np.zeros_like(boxes.low), np.zeros_like(boxes.high)
    for a in range(len(axes)):
        starts = layout.starts(0, a)
        ends = np.append(starts[1:] - 1, whole[a])
        holds = np.array([layout.part(total, r, a)[0] > 0 for r in range(len(asked))])
        low[:, a] = starts[holds.argmax(axis=1)]
        high[:, a] = ends[holds.shape[1] - 1 - holds[:, ::-1].argmax(axis=1)]
    used = np.array([layout.part(total, r, 0).any() for r in range(len(asked))])
    kept = NearestBoxes(boxes.low[used], boxes.high[used], axes)
    return BoxRegions(kept, low[used], high[used])
