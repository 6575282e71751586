"""A federation in a plain loop: no Flower, the same calls."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fedanon.anonymizers.base import Anonymizer
from fedanon.data import partition
from fedanon.data.table import Table
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.models.encoding import Encoding
from fedanon.models.tree_validation import TreeModel, read_trees
from fedanon.release.release import Release


@dataclass
class Node:
    """One client."""

    data: TrainingData
    state: LocalState = field(default_factory=LocalState)


def releases(table: Table, anonymizer: Anonymizer, clients: int) -> tuple[list[Release], Table]:
    """The anonymized training rows of every client, and the raw test rows of all."""
    parts = partition.iid(table, clients, np.random.default_rng(0))
    test = np.concatenate([part[::5] for part in parts])
    train = [np.setdiff1d(part, part[::5]) for part in parts]
    return [anonymizer.anonymize(table.select_rows(rows), rng=0) for rows in train], table.select_rows(test)


def run(model: Model, released: list[Release], encoding: Encoding, rounds: int) -> Parameters:
    """The global parameters after some rounds of all clients."""
    nodes = [Node(model.training_data(release, encoding, i)) for i, release in enumerate(released)]
    return (_trees if model.aggregation == "trees" else _mean)(model, nodes, encoding.width, rounds)


def _mean(model: Model, nodes: list[Node], width: int, rounds: int) -> Parameters:
    parameters = model.initial(width)
    for number in range(1, rounds + 1):
        updates = _train(model, parameters, nodes, number)
        shares = np.array([update.n_examples for update in updates], dtype=float)
        arrays = zip(*(update.parameters for update in updates), strict=True)
        parameters = [np.tensordot(shares / shares.sum(), np.stack(each), 1) for each in arrays]
    return parameters


def _trees(model: Model, nodes: list[Node], width: int, rounds: int) -> Parameters:
    whole, sent = TreeModel(width), 0
    for number in range(1, rounds + 1):
        news, sent = whole.to_array(sent), len(whole)
        updates = _train(model, [news], nodes, number)
        limits = model.update_limits()  # type: ignore[attr-defined]
        trees = [read_trees(u.parameters[0].tobytes(), n_features=width, limits=limits).trees for u in updates]
        whole.append(trees, [update.n_examples for update in updates])
    return [whole.to_array()]


def _train(model: Model, parameters: Parameters, nodes: list[Node], number: int) -> list[Update]:
    return [
        model.train(
            parameters, node.data, round_number=number, rng=np.random.default_rng((number, i)), state=node.state
        )
        for i, node in enumerate(nodes)
    ]
