"""The federations whose models are frozen; run as a program, it prints what they learned as JSON.

`test_models.py` runs it in a process of its own, for which it chooses the instructions the libraries may use.
"""

from __future__ import annotations

import json
from typing import Any

from tests.snapshot import house

CLIENTS, ROWS, ROUNDS = 3, 150, 5
ALONE = {"method": "mondrian", "method_settings": {"k": 5}}
JOINT = {"method": "federated_mondrian", "method_settings": {"k": 10, "k_local": 2, "counts": "plain"}}
ROBUST = {"strategy": "robust", "malicious": 1, "malicious_attack": "sign_flip"}
THESIS = {"protocol": "as_published", "method": "gfkmc", "method_settings": {"k": 5, "profile": "thesis"}}
# few parameters and many steps: five rounds of the defaults would hardly move it
MLP = {"model": "mlp", "model_settings": {"hidden": 4, "batch_size": 16, "learning_rate": 0.01}}
RUNS: dict[str, dict[str, Any]] = {
    "lr alone": {"model": "lr", **ALONE},
    "lr joint": {"model": "lr", **JOINT},
    "lr robust": {"model": "lr", **ALONE, **ROBUST},
    "lr as_published": {"model": "lr", **THESIS},
    # what the thesis's code trained itself: one pass of SAGA a round
    "saga as_published": {"model": "lr_thesis", **THESIS},
    "xgb alone": {"model": "xgb", **ALONE},
    "xgb joint": {"model": "xgb", **JOINT},
    "xgb robust": {"model": "xgb", **ALONE, **ROBUST},
    "xgb as_published": {"model": "xgb", **THESIS},
    # the same of its trees: Flower's bagging
    "xgb_published as_published": {"model": "xgb_thesis", **THESIS},
    "mlp alone": {**MLP, **ALONE},
    "mlp joint": {**MLP, **JOINT},
    "mlp robust": {**MLP, **ALONE, **ROBUST},
    # no "mlp as_published": the label codes of that protocol are float64, the network's weights float32, and it fails
    # no run is joint as well as as_published: hospitals that anonymise together refuse that protocol
}


if __name__ == "__main__":
    print(json.dumps({name: house.train(CLIENTS, ROWS, rounds=ROUNDS, **chosen) for name, chosen in RUNS.items()}))
