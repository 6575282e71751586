"""Clients whose values were changed, not generalized: numbers beyond the declared range are learnt from as its ends."""

from __future__ import annotations

import numpy as np
import pytest

from fedanon.data.schema import Numeric
from fedanon.federated.client import client_app
from fedanon.federated.engines import LocalGrid
from fedanon.federated.server import FederatedRun
from fedanon.federated.sources import partition_rows, whole_table
from fedanon.learning.node import Node
from tests.federated.conftest import settings

METHODS = [("additive_noise", {"c": 1.0}), ("egadp", {})]


@pytest.mark.parametrize(("method", "parameters"), METHODS)
@pytest.mark.parametrize("model", ["lr", "xgb"])
def test_a_federation_learns_from_changed_values(method: str, parameters: dict[str, float], model: str) -> None:
    chosen = settings(model, method=method, method_settings=parameters)
    last = FederatedRun(LocalGrid(client_app(), chosen), chosen).run().rounds[-1]
    assert last["auc_client_mean"] > 0.75
    # new rows are left as they are: both test sets are the same
    assert last["auc_client_mean_recoded"] == last["auc_client_mean"]


@pytest.mark.parametrize(("method", "parameters"), METHODS)
def test_features_stay_within_the_declared_range(method: str, parameters: dict[str, float]) -> None:
    chosen = settings("lr", method=method, method_settings=parameters)
    node = Node(whole_table("adult").select_rows(partition_rows("adult", "iid", 5, 0)[0]), chosen, 0)
    age = node.release.schema["age"]
    assert isinstance(age, Numeric)
    published = node.release.to_frame()["age"].astype(float)
    assert ((published < age.low) | (published > age.high)).any(), "the noise goes beyond the range"
    place = node.encoding.names.index("age")
    expected = np.clip((published - age.low) / age.width, 0, 1).to_numpy(dtype=np.float32)
    np.testing.assert_allclose(node.encoding.encode_release(node.release)[:, place], expected, rtol=1e-6)
