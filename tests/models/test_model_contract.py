"""What every model keeps, by :func:`fedanon.testing.check_model`."""

from __future__ import annotations

from typing import Any

import pytest

from fedanon.fields import build
from fedanon.models import MODELS
from fedanon.testing import check_model

#: the library a model needs
NEEDS = {"mlp": "torch", "lr_thesis": "sklearn", "xgb": "xgboost", "xgb_thesis": "xgboost"}
VARIANTS: dict[str, list[dict[str, Any]]] = {"lr": [{}, {"mu": 0.1}, {"instances": "draws", "n_draws": 2}]}
CASES = [(name, variant) for name in MODELS.names() for variant in VARIANTS.get(name, [{}])]


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_contract(name: str, variant: dict[str, Any]) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    check_model(build(MODELS[name], variant))
