"""Checks of what learns: models, and the strategies by which a server combines what nodes have learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fedanon.data.table import Table
from fedanon.errors import ConfigError
from fedanon.learning.aggregators import AGGREGATORS, Aggregator, make_aggregator
from fedanon.learning.strategies import STRATEGIES, Strategy
from fedanon.learning.strategies.means import WeightedMean
from fedanon.models.base import LocalState, Model, Parameters, TrainingData, Update
from fedanon.models.encoding import Encoding
from fedanon.models.outcome import Outcome, OutcomeKind
from fedanon.models.target import outcome_of
from fedanon.testing.examples import check_settings, example_release, example_table, expect
from fedanon.types import AnyArray

ROUNDS = 3
#: columns of the example table, by the kind of target they are
TARGETS: dict[OutcomeKind, str] = {"binary": "readmitted", "multiclass": "illness", "regression": "cost"}


def check_model(model: Model) -> None:
    """Raise AssertionError unless a model can be trained in rounds by several nodes and predicts what it says it can.

    Its updates pass the validation every server applies; the same random numbers give the same update, whether the
    node remembers the rounds before or has lost its state; the arrays it is given stay as they are; a prediction is a
    probability for every row, of every class where there are several, or a number, with a state or without. All this
    for every kind of target among its ``outcomes``; targets of other kinds are refused.

    >>> from fedanon.models import LogisticRegression
    >>> check_model(LogisticRegression())

    Parameters
    ----------
    model : with its settings.
    """
    check_settings(model)
    name = type(model).__name__
    expect(getattr(model, "name", ""), f"{name} needs a name.")
    expect(model.aggregation in AGGREGATORS, f"{name}: there is no aggregation {model.aggregation!r}.")
    for kind, column in TARGETS.items():
        tables = [_predicting(column, 120, seed) for seed in (0, 1)]
        outcome = outcome_of(tables[0].schema)
        if kind in model.outcomes:
            _check_rounds(model.predicting(outcome), tables)
        else:
            _check_refusal(model, outcome)


def _predicting(column: str, rows: int, seed: int) -> Table:
    table = example_table(rows, seed=seed)
    return replace(table, schema=replace(table.schema, target=column))


def _check_refusal(model: Model, outcome: Outcome) -> None:
    try:
        model.predicting(outcome)
    except ConfigError:
        return
    raise AssertionError(f"{type(model).__name__} must refuse to predict {outcome}.")


def _check_rounds(model: Model, tables: Sequence[Table]) -> None:
    """A few rounds of two nodes."""
    name, encoding = type(model).__name__, Encoding.from_schema(tables[0].schema)
    nodes = [model.training_data(example_release(table), encoding, 0) for table in tables]
    first, second = model.initial(encoding.width), model.initial(encoding.width)
    expect(_equal(first, second), f"{name}.initial() must give the same arrays every time.")
    aggregator = _aggregator(model, encoding.width)
    states = [LocalState() for _ in nodes]
    for number in range(1, ROUNDS + 1):
        updates = []
        for node, (data, state) in enumerate(zip(nodes, states, strict=True)):
            sent = aggregator.pending_updates((node, "train"))
            updates.append(_check_training(model, sent, aggregator.parameters, data, number, state))
        read = [aggregator.read(update.parameters) for update in updates]
        aggregator.combine(number, read, [update.n_examples for update in updates])
    _check_predictions(model, aggregator.parameters, encoding)


def _aggregator(model: Model, width: int) -> Aggregator:
    known = [strategy for _, strategy in STRATEGIES.items() if model.aggregation in strategy.aggregations]
    expect(known, f"No strategy combines updates of the aggregation {model.aggregation!r}.")
    return make_aggregator(model, width, (WeightedMean if WeightedMean in known else known[0])())


def _check_training(
    model: Model, sent: Parameters, whole: Parameters, data: TrainingData, number: int, state: LocalState
) -> Update:
    """Train with what a node is sent and remembers, and again with the whole model and no memory."""
    name = type(model).__name__
    given = [array.copy() for array in sent]
    update = model.train(sent, data, round_number=number, rng=np.random.default_rng(number), state=state)
    expect(_equal(sent, given), f"{name}.train() changes the arrays it is given.")
    expect(update.n_examples == len(data.target), f"{name}.train() must count the rows it has learned from.")
    fresh = model.train(whole, data, round_number=number, rng=np.random.default_rng(number), state=LocalState())
    same = _equal(update.parameters, fresh.parameters)
    expect(same, f"{name}.train() gives another update with the same random numbers, or without its state.")
    return update


def _check_predictions(model: Model, parameters: Parameters, encoding: Encoding) -> None:
    name = type(model).__name__
    table = example_table(80, seed=2)
    features = encoding.encode_table(table)
    chances = model.predict_proba(parameters, features)
    width = model.outcome.n_scores
    shape = (len(table), width) if width > 1 else (len(table),)
    expect(chances.shape == shape, f"{name}.predict_proba() must give one number for every row, or class of it.")
    expect(bool(np.isfinite(chances).all()), f"{name}.predict_proba() must give finite numbers.")
    if model.outcome.kind != "regression":
        expect(bool(((chances >= 0) & (chances <= 1)).all()), f"{name}.predict_proba() must give probabilities.")
    if width > 1:
        expect(np.allclose(chances.sum(axis=1), 1), f"{name}.predict_proba() must share 1 among the classes.")
    remembered = model.predict_proba(parameters, features, state=LocalState())
    expect(np.array_equal(chances, remembered), f"{name}.predict_proba() depends on what a node remembers.")


def check_strategy(strategy: Strategy) -> None:
    """Raise AssertionError unless a strategy combines updates the way a server relies on.

    Nodes that agree are taken at their word; the shapes of arrays stay; neither the updates nor the order of the nodes
    change anything; what is finite stays finite.

    >>> from fedanon.learning.strategies.means import WeightedMean
    >>> check_strategy(WeightedMean())

    Parameters
    ----------
    strategy : with its settings; eleven nodes, one of them far off, must not be too few for it.
    """
    check_settings(strategy)
    name = type(strategy).__name__
    expect(getattr(strategy, "name", ""), f"{name} needs a name.")
    unknown = [kind for kind in strategy.aggregations if kind not in AGGREGATORS]
    expect(strategy.aggregations and not unknown, f"{name}.aggregations must name aggregations there are.")
    updates, weights = _example_updates()
    if "mean" in strategy.aggregations:
        _check_combination(strategy, updates, weights)
    if strategy.aggregations - {"mean"}:
        _check_choice(strategy, updates, weights)


def _example_updates() -> tuple[list[Parameters], list[float]]:
    rng = np.random.default_rng(0)
    updates: list[Parameters] = [[rng.normal(1, 0.1, (3, 2)), rng.normal(-1, 0.1, 4)] for _ in range(10)]
    updates.append([np.full((3, 2), 9.0), np.full(4, 9.0)])
    return updates, [float(10 + place) for place in range(len(updates))]


def _check_combination(strategy: Strategy, updates: list[Parameters], weights: list[float]) -> None:
    name = type(strategy).__name__
    before = [[array.copy() for array in arrays] for arrays in updates]
    combined = strategy.combine(updates, weights)
    unchanged = all(_equal(arrays, copy) for arrays, copy in zip(updates, before, strict=True))
    expect(unchanged, f"{name}.combine() changes the updates.")
    shapes = [array.shape for array in combined]
    expect(shapes == [array.shape for array in updates[0]], f"{name}.combine() must keep the shapes of the arrays.")
    expect(all(np.isfinite(array).all() for array in combined), f"{name}.combine() gives numbers that are not finite.")
    reverse = strategy.combine(updates[::-1], weights[::-1])
    expect(_close(combined, reverse), f"{name}.combine() depends on the order of the nodes.")
    alike = strategy.combine([updates[0]] * len(updates), weights)
    expect(_close(alike, updates[0]), f"{name}.combine() of equal updates must be that update.")


def _check_choice(strategy: Strategy, updates: list[Parameters], weights: list[float]) -> None:
    name = type(strategy).__name__
    vectors = np.array([np.concatenate([array.ravel() for array in arrays]) for arrays in updates])
    places, shares = strategy.choose(lambda: vectors, weights)
    valid = len(places) > 0 and len(set(places)) == len(places) and all(0 <= place < len(updates) for place in places)
    expect(valid, f"{name}.choose() must name some of the updates, each once.")
    expect(len(shares) == len(places) and min(shares) > 0, f"{name}.choose() must weigh every update it names.")


def _equal(arrays: Sequence[AnyArray], others: Sequence[AnyArray]) -> bool:
    return len(arrays) == len(others) and all(map(np.array_equal, arrays, others))


def _close(arrays: Sequence[AnyArray], others: Sequence[AnyArray]) -> bool:
    return len(arrays) == len(others) and all(map(np.allclose, arrays, others))
