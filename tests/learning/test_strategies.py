"""Strategies on plain arrays: those with Flower's names give Flower's numbers, to the bit."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from flwr.app import Message, MetricRecord
from flwr.serverapp import strategy as flower

from fedanon.errors import ConfigError, InfeasibleError
from fedanon.federated import wire
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.fields import build
from fedanon.learning.strategies import STRATEGIES, make_model
from fedanon.learning.strategies.means import PROXIMAL_MU
from fedanon.models.base import Parameters
from tests.federated.conftest import settings

FLOWER = {
    "fedavg": (flower.FedAvg, {}),
    "fedprox": (flower.FedProx, {"proximal_mu": PROXIMAL_MU}),
    "fedmedian": (flower.FedMedian, {}),
    "trimmed_mean": (flower.FedTrimmedAvg, {"beta": 0.2}),
    "krum": (flower.Krum, {"num_malicious_nodes": 1}),
    "multikrum": (flower.MultiKrum, {"num_malicious_nodes": 1, "num_nodes_to_select": 5}),
    "bulyan": (flower.Bulyan, {"num_malicious_nodes": 1}),
}


def updates(seed: int, dtype: type, count: int = 9) -> tuple[list[Parameters], list[int]]:
    rng = np.random.default_rng(seed)
    arrays = [[rng.normal(size=shape).astype(dtype) for shape in ((31,), (3, 5), (1,))] for _ in range(count)]
    return arrays, rng.integers(1, 9_999, count).tolist()


def by_flower(name: str, arrays: list[Parameters], weights: list[int], **more: Any) -> Parameters:
    LocalGrid(client_app(), settings())  # messages can be made from now on
    component, chosen = FLOWER[name]
    strategy: Any = component(
        arrayrecord_key=wire.ARRAYS,
        weighted_by_key=wire.WEIGHT,
        train_metrics_aggr_fn=lambda _replies, _key: MetricRecord(),
        **(chosen | more),
    )
    replies: list[Message] = []
    for node, (update, weight) in enumerate(zip(arrays, weights, strict=True), start=1):
        request = wire.request(node, "train", 1, wire.request_content(1, wire.pack_arrays([])))
        replies.append(wire.reply_update(request, update, weight, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda *_: 0)  # Flower's Bulyan collects garbage once per update
        record, _ = strategy.aggregate_train(1, replies)
    return [record[str(place)].numpy() for place in range(len(record))]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", FLOWER)
def test_a_strategy_with_flowers_name_gives_flowers_bits(name: str, seed: int, dtype: type) -> None:
    arrays, weights = updates(seed, dtype)
    ours, theirs = STRATEGIES[name]().combine(arrays, weights), by_flower(name, arrays, weights)
    for mine, other in zip(ours, theirs, strict=True):
        assert np.array_equal(mine, other)
        assert mine.dtype == other.dtype


def test_every_strategy_but_ours_is_compared_with_flowers() -> None:
    assert {*FLOWER, "robust"} == set(STRATEGIES)


@pytest.mark.parametrize("name", STRATEGIES.names())
def test_equal_updates_stay_what_they_are(name: str) -> None:
    arrays, weights = updates(3, np.float64, 1)
    merged = STRATEGIES[name]().combine(arrays * 9, weights * 9)
    for mine, one in zip(merged, arrays[0], strict=True):
        np.testing.assert_allclose(mine, one, rtol=1e-12)
    assert len(arrays) == 1


def test_bulyan_says_how_many_updates_it_needs() -> None:
    with pytest.raises(InfeasibleError, match="at least 7 updates; 6 are usable"):
        STRATEGIES["bulyan"]().combine(*updates(0, np.float64, 6))


def test_settings_a_strategy_does_not_know() -> None:
    with pytest.raises(ConfigError, match="Median has no parameter beta"):
        build(STRATEGIES["fedmedian"], {"beta": 0.1})


def test_fedprox_pulls_the_nodes_towards_the_global_model() -> None:
    fedavg, fedprox = make_model(settings()), make_model(settings(strategy="fedprox"))
    assert (fedavg.mu, fedprox.mu) == (0.0, PROXIMAL_MU)  # type: ignore[attr-defined]
    chosen = settings(strategy="fedprox", strategy_settings={"proximal_mu": 0.7})
    assert make_model(chosen).mu == 0.7  # type: ignore[attr-defined]
    own = settings(strategy="fedprox", model_settings={"mu": 0.3})
    assert make_model(own).mu == 0.3  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="needs a model with a proximal term; 'xgb' has none"):
        make_model(settings(strategy="fedprox", model="xgb"))
