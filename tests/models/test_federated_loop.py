"""The models in a federation of ten, without Flower: what the release still teaches about raw rows."""

from __future__ import annotations

import pytest

from fedanon.anonymizers import ANONYMIZERS
from fedanon.datasets import load
from fedanon.errors import ConfigError
from fedanon.models import MODELS, scores
from fedanon.models.encoding import Encoding
from fedanon.models.target import target
from tests.models.federation import releases, run


@pytest.mark.parametrize(
    ("name", "rounds", "least_raw", "least_anonymous"), [("lr", 10, 0.865, 0.85), ("xgb", 20, 0.87, 0.85)]
)
def test_ten_clients(name: str, rounds: int, least_raw: float, least_anonymous: float) -> None:
    if name == "xgb":
        pytest.importorskip("xgboost")
    table = load("adult")
    encoding = Encoding.from_schema(table.schema)
    model = MODELS[name]()
    for method, least in ((ANONYMIZERS["identity"](), least_raw), (ANONYMIZERS["mondrian"](k=10), least_anonymous)):  # type: ignore[call-arg]
        released, test = releases(table, method, 10)
        parameters = run(model, released, encoding, rounds)
        probability = model.predict_proba(parameters, encoding.encode_table(test))
        assert scores.auc(target(test, table.schema), probability) > least


@pytest.mark.parametrize("name", MODELS.names())
def test_settings_are_checked(name: str) -> None:
    with pytest.raises(ConfigError, match="n_draws"):
        MODELS[name](n_draws=0)
