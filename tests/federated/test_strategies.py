"""Strategies: the weighted mean is Flower's, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Message
from flwr.serverapp import strategy as flower

from fedanon.errors import ConfigError
from fedanon.federated import wire
from fedanon.federated.client import client_app
from fedanon.federated.engine_local import LocalGrid
from fedanon.federated.strategies import make_strategy
from fedanon.learning.node import PROXIMAL_MU, make_model
from tests.federated.conftest import settings


@pytest.fixture(autouse=True)
def grid() -> None:
    LocalGrid(client_app(), settings())  # messages can be made from now on


def replies(seed: int, dtype: type, read: bool) -> list[Message]:
    rng = np.random.default_rng(seed)
    found = []
    for node in range(1, 8):
        request = wire.request(node, "train", 1, wire.request_content(1, wire.pack_arrays([])))
        arrays = [rng.normal(size=shape).astype(dtype) for shape in ((31,), (3, 5), (1,))]
        reply = wire.reply_update(request, arrays, int(rng.integers(1, 9_999)), 1)
        found.append(wire.with_read_arrays(reply, arrays) if read else reply)
    return found


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_weighted_mean_is_flowers(dtype: type) -> None:
    ours, _ = make_strategy("fedavg", {}).aggregate_train(1, replies(0, dtype, read=True))
    theirs, _ = flower.FedAvg(arrayrecord_key=wire.ARRAYS, weighted_by_key=wire.WEIGHT).aggregate_train(
        1, replies(0, dtype, read=False)
    )
    assert ours is not None
    assert theirs is not None
    assert list(ours) == list(theirs)
    for name, array in theirs.items():
        assert np.array_equal(ours[name].numpy(), array.numpy())
        assert ours[name].numpy().dtype == array.numpy().dtype


@pytest.mark.parametrize("name", ["fedmedian", "trimmed_mean", "krum", "multikrum", "bulyan"])
def test_flowers_rules_read_arrays_that_were_read_already(name: str) -> None:
    read, sent = (make_strategy(name, {}).aggregate_train(1, replies(1, np.float64, read=r))[0] for r in (True, False))
    assert read is not None
    assert sent is not None
    for key, array in sent.items():
        assert np.array_equal(read[key].numpy(), array.numpy())


def test_fedprox_pulls_the_nodes_towards_the_global_model() -> None:
    fedavg, fedprox = make_model(settings()), make_model(settings(strategy="fedprox"))
    assert (fedavg.mu, fedprox.mu) == (0.0, PROXIMAL_MU)  # type: ignore[attr-defined]
    chosen = settings(strategy="fedprox", strategy_settings={"proximal_mu": 0.7})
    assert make_model(chosen).mu == 0.7  # type: ignore[attr-defined]
    own = settings(strategy="fedprox", model_settings={"mu": 0.3})
    assert make_model(own).mu == 0.3  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="needs a model with a proximal term; 'xgb' has none"):
        make_model(settings(strategy="fedprox", model="xgb"))
