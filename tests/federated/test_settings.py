"""Settings of a run: what travels of them, and the names they had before."""

from __future__ import annotations

import hashlib
import json

import pytest

from fedanon.federated.wire import decode_settings, encode_settings
from fedanon.learning.checkpoints import Checkpoints
from fedanon.learning.settings import RunSettings

CHOSEN = RunSettings(method="mondrian", method_settings={"k": 5}, nodes=4, dp_settings={}, min_replies=1)


def test_settings_travel_as_scalars_and_come_back() -> None:
    config = encode_settings(CHOSEN)
    assert {type(value) for value in config.values()} <= {str, int, float, bool}
    assert config["method-settings"] == '{"k": 5}'
    assert decode_settings({**config, "foreign": 1}) == CHOSEN


def test_a_deployed_result_leaves_out_what_is_simulated() -> None:
    simulated = {"dataset", "partition", "nodes", "protocol", "malicious", "malicious-attack", "malicious-settings"}
    assert set(encode_settings(CHOSEN)) - set(encode_settings(CHOSEN, simulated=False)) == simulated


def test_the_settings_of_an_old_result_are_read() -> None:
    old = {"clients": 4, "method": "mondrian", "method-settings": '{"k": 5}', "min-replies": 1.0, "hostile": 0}
    with pytest.warns(FutureWarning, match="is now called"):
        assert decode_settings(old) == CHOSEN


def test_a_run_finds_the_checkpoint_it_had_before_settings_were_renamed() -> None:
    identity = {
        "dataset": "adult", "partition": "iid", "clients": 4, "method": "mondrian", "method-settings": '{"k": 5}',
        "model": "lr", "model-settings": "{}", "strategy": "fedavg", "strategy-settings": "{}",
        "clients-per-round": 0, "min-replies": 1.0, "evaluate-every": 1, "test-share": 0.2,
        "features": "quasi_identifiers", "protocol": "corrected", "max-move": 5.0, "exclude-suspects": False,
        "hostile": 0, "tampering": "sign_flip", "tampering-settings": "{}", "dp-settings": "{}", "seed": 0,
    }  # fmt: skip
    name = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:32]
    assert Checkpoints.name(CHOSEN) == name
